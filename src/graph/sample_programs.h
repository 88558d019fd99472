#pragma once
// Programs for tests of the graph layer.

#include <fstream>
#include <sstream>
#include <string>

#include "cluster/cluster.h"
#include "source_tree.h"

namespace plait::graph::samples {

// A file of examples/graph/hlo.
inline std::string example(const std::string& name) {
  std::ifstream in(source_dir() + "/examples/graph/hlo/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// A training step of an MLP of square layers under SGD, as JAX would lower it:
//   y = relu(x W1), ..., loss = sum of the last layer's results, W -= gradient
inline std::string mlp_step(int layers, int batch, int width) {
  const std::string x = "f32[" + std::to_string(batch) + "," + std::to_string(width) + "]";
  const std::string w = "f32[" + std::to_string(width) + "," + std::to_string(width) + "]";
  const auto n = [](const std::string& name, int i) { return name + std::to_string(i); };
  std::string out =
      "HloModule mlp\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
      "  ROOT c = f32[] add(a, b)\n}\n\nENTRY main {\n";
  for (int i = 1; i <= layers; ++i)
    out += "  " + n("w", i) + " = " + w + " parameter(" + std::to_string(i - 1) + ")\n";
  out += "  y0 = " + x + " parameter(" + std::to_string(layers) +
         ")\n  zero = f32[] constant(0)\n" + "  zeros = " + x + " broadcast(zero), dimensions={}\n";
  for (int i = 1; i <= layers; ++i) {
    out += "  " + n("h", i) + " = " + x + " dot(" + n("y", i - 1) + ", " + n("w", i) +
           "), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
    out += "  " + n("y", i) + " = " + x + " maximum(" + n("h", i) + ", zeros)\n";
  }
  out += "  loss = f32[] reduce(" + n("y", layers) + ", zero), dimensions={0,1}, to_apply=sum\n";
  out += "  one = f32[] constant(1)\n  " + n("g", layers) + " = " + x +
         " broadcast(one), dimensions={}\n";
  for (int i = layers; i >= 1; --i) {
    out += "  " + n("m", i) + " = pred" + x.substr(3) + " compare(" + n("h", i) +
           ", zeros), direction=GT\n";
    out += "  " + n("d", i) + " = " + x + " select(" + n("m", i) + ", " + n("g", i) + ", zeros)\n";
    out += "  " + n("u", i) + " = " + w + " dot(" + n("y", i - 1) + ", " + n("d", i) +
           "), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n";
    if (i > 1)
      out += "  " + n("g", i - 1) + " = " + x + " dot(" + n("d", i) + ", " + n("w", i) +
             "), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n";
    out += "  " + n("v", i) + " = " + w + " subtract(" + n("w", i) + ", " + n("u", i) + ")\n";
  }
  std::string types;
  std::string names;
  for (int i = 1; i <= layers; ++i) {
    types += w + ", ";
    names += n("v", i) + ", ";
  }
  return out + "  ROOT r = (" + types + "f32[]) tuple(" + names + "loss)\n}\n";
}

// One square layer under SGD with momentum, whose state is given up and made anew:
//   loss = sum(x W), m' = 0.9 m + gradient, W' = W - m'
// The gradient of x is a result as well, so that both passes use the weight.
inline std::string momentum_step(int batch, int width) {
  const std::string x = "f32[" + std::to_string(batch) + "," + std::to_string(width) + "]";
  const std::string w = "f32[" + std::to_string(width) + "," + std::to_string(width) + "]";
  return "HloModule momentum, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, "
         "may-alias) "
         "}\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
         "  ROOT c = f32[] add(a, b)\n}\n\nENTRY main {\n"
         "  w = " +
         w + " parameter(0)\n  m = " + w + " parameter(1)\n  x = " + x +
         " parameter(2)\n  zero = f32[] constant(0)\n  y = " + x +
         " dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
         "  loss = f32[] reduce(y, zero), dimensions={0,1}, to_apply=sum\n"
         "  one = f32[] constant(1)\n  ones = " +
         x +
         " broadcast(one), dimensions={}\n"
         "  gradient = " +
         w +
         " dot(x, ones), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
         "  decay = f32[] constant(0.9)\n  decays = " +
         w +
         " broadcast(decay), dimensions={}\n"
         "  less = " +
         w + " multiply(m, decays)\n  new_m = " + w +
         " add(less, gradient)\n"
         "  new_w = " +
         w +
         " subtract(w, new_m)\n"
         "  dx = " +
         x +
         " dot(ones, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
         "  ROOT r = (" +
         w + ", " + w + ", f32[], " + x + ") tuple(new_w, new_m, loss, dx)\n}\n";
}

// Devices of one node; a slow link and no latency make bytes decide.
inline Cluster cluster_of(int devices, double bandwidth = 1e9) {
  DeviceType type;
  type.name = "device";
  type.memory = Bytes(80e9);
  type.memory_bandwidth = BytesPerSecond(2e12);
  for (FlopsPerSecond& peak : type.peak) peak = FlopsPerSecond(3e14);
  type.intra = {BytesPerSecond(bandwidth), Seconds(1e-12)};
  Cluster cluster;
  cluster.device_types = {type};
  cluster.zones = {"zone"};
  cluster.nodes = {{"node", 0, type.intra, type.intra, {}}};
  cluster.devices.assign(devices, {0, 0});
  return cluster;
}

}  // namespace plait::graph::samples
