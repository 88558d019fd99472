#include "search/space/units/layers.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "model/fingerprint.h"

namespace plait {
namespace {

// "decoder" of "decoder.attention.core": the name up to that of the op. Of others, which are named
// by themselves, "conv1..relu1": the first op's name is that of its own measurements.
std::string layer_name(const LayerKind& first_op, const LayerKind* last_op) {
  const std::string& op = first_op.ops.front().name;
  if (first_op.name.size() > op.size() + 1 && first_op.name.ends_with("." + op))
    return first_op.name.substr(0, first_op.name.size() - op.size() - 1);
  return last_op == nullptr ? first_op.name : first_op.name + ".." + last_op->name;
}

LayerKind merged(const Model& model, const std::vector<int>& kinds) {
  LayerKind layer;
  layer.name = layer_name(model.kinds[kinds.front()],
                          kinds.size() > 1 ? &model.kinds[kinds.back()] : nullptr);
  for (const int kind : kinds) {
    const LayerKind& part = model.kinds[kind];
    layer.ops.insert(layer.ops.end(), part.ops.begin(), part.ops.end());
  }
  layer.output = model.kinds[kinds.back()].output;
  layer.starts_layer = model.kinds[kinds.front()].starts_layer;
  return layer;
}

// The measurements of one unit.
using Samples = std::map<ComputeKey, ComputeSample>;

Samples samples_of(const Problem& problem, const LayerKind& kind) {
  Samples samples;
  const std::string shape = fingerprint(problem.model, kind);
  const auto& all = problem.profile.compute;
  for (auto at =
           all.lower_bound({.unit = kind.name, .device_type = "", .tensor = 0, .micro_batch = 0});
       at != all.end() && at->first.unit == kind.name; ++at) {
    ComputeKey key = at->first;
    if (key.split != 0 || (!key.shape.empty() && key.shape != shape)) continue;
    key.unit.clear();
    key.shape.clear();
    samples.emplace(std::move(key), at->second);
  }
  return samples;
}

template <typename T>
void add(std::optional<T>& sum, const std::optional<T>& part) {
  if (sum && part)
    *sum += *part;
  else
    sum.reset();
}

void add(ComputeSample& sum, const ComputeSample& part) {
  add(sum.forward, part.forward);
  add(sum.backward, part.backward);
  add(sum.both, part.both);
  add(sum.saved_activations, part.saved_activations);
  add(sum.optimizer, part.optimizer);
  if (sum.workspace || part.workspace)
    sum.workspace = std::max(sum.workspace.value_or(Bytes(0)), part.workspace.value_or(Bytes(0)));
  if (sum.spread || part.spread)
    sum.spread = std::max(sum.spread.value_or(0), part.spread.value_or(0));
}

// Whether one is the sum of parts that were measured in the same way.
bool adds_up(const ComputeSample& a, const ComputeSample& b) {
  return a.communication_inside == b.communication_inside && a.synchronised == b.synchronised &&
         !a.out_of_memory && !b.out_of_memory;
}

// Of all ops of a layer at once, where each was measured.
Samples summed(const Problem& problem, const std::vector<int>& kinds) {
  Samples sums = samples_of(problem, problem.model.kinds[kinds.front()]);
  for (std::size_t i = 1; i < kinds.size() && !sums.empty(); ++i) {
    const Samples own = samples_of(problem, problem.model.kinds[kinds[i]]);
    for (auto at = sums.begin(); at != sums.end();) {
      const auto part = own.find(at->first);
      if (part != own.end() && adds_up(at->second, part->second)) {
        add(at->second, part->second);
        ++at;
      } else {
        at = sums.erase(at);
      }
    }
  }
  // What only the whole's total says cannot be added up; hosts are late by layers.
  for (auto& [key, sample] : sums) {
    sample.memory.reset();
    sample.reserved.reset();
    sample.forward_launch.reset();
    sample.backward_launch.reset();
    sample.flags.clear();
  }
  return sums;
}

}  // namespace

Problem by_layers(const Problem& in_ops, const LayerView& view) {
  Problem out = in_ops;
  out.model = view.model;
  std::set<std::string> measured;
  for (const auto& [key, sample] : in_ops.profile.compute) measured.insert(key.unit);
  if (measured.empty()) return out;
  std::set<int> met;
  for (int layer = 0; layer < view.model.unit_count(); ++layer) {
    const LayerKind& kind = view.model.unit(layer);
    if (!met.insert(view.model.units[layer]).second || measured.contains(kind.name)) continue;
    const auto first = in_ops.model.units.begin();
    const std::vector<int> kinds(first + view.first_unit[layer],
                                 first + view.first_unit[layer + 1]);
    for (auto& [key, sample] : summed(in_ops, kinds)) {
      ComputeKey named = key;
      named.unit = kind.name;
      out.profile.compute.emplace(std::move(named), sample);
    }
  }
  return out;
}

std::optional<LayerView> seen_by_layers(const Model& model) {
  LayerView view{model, {}};
  view.model.kinds.clear();
  view.model.units.clear();
  std::vector<std::vector<int>> layers;  // the kinds of their ops
  std::vector<int> layer_of;             // by op
  for (int u = 0; u < model.unit_count(); ++u) {
    if (u == 0 || model.unit(u).starts_layer) {
      view.first_unit.push_back(u);
      layers.emplace_back();
    }
    layers.back().push_back(model.units[u]);
    layer_of.push_back(static_cast<int>(layers.size()) - 1);
  }
  if (layers.size() == model.units.size()) return std::nullopt;
  std::map<std::vector<int>, int> known;
  for (const std::vector<int>& kinds : layers) {
    const auto [at, is_new] = known.try_emplace(kinds, static_cast<int>(view.model.kinds.size()));
    if (is_new) view.model.kinds.push_back(merged(model, kinds));
    view.model.units.push_back(at->second);
  }
  const auto op_in_layer = [&](int unit, int op) {
    for (int u = view.first_unit[layer_of[unit]]; u < unit; ++u)
      op += static_cast<int>(model.unit(u).ops.size());
    return op;
  };
  for (Tie& tie : view.model.ties) {
    tie.first_op = op_in_layer(tie.first, tie.first_op);
    tie.second_op = op_in_layer(tie.second, tie.second_op);
    tie.first = layer_of[tie.first];
    tie.second = layer_of[tie.second];
  }
  view.first_unit.push_back(model.unit_count());
  return view;
}

Plan in_ops(const Plan& plan, const LayerView& view) {
  Plan fine = plan;
  for (Stage& stage : fine.stages)
    for (Span& span : stage.spans)
      span.units = {view.first_unit[span.units.begin], view.first_unit[span.units.end]};
  return fine;
}

}  // namespace plait
