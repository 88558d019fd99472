#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "cost/framework/framework.h"
#include "cost/op/kernels.h"
#include "cost/op/op_time.h"
#include "io/cluster/catalogue.h"
#include "io/format/csv.h"
#include "io/format/unit_factors.h"
#include "io/profile/aceso_mapping.h"
#include "io/profile/import_aceso.h"
#include "io/profile/write_profiles.h"

namespace plait {
namespace {

// A unit's measured times, divided over its ops as the analytic model divides them.
class Division {
 public:
  Division(const Model& model, const Job& job, const DeviceType& device, const WholePoint& point)
      : model_(model), job_(job), device_(device), point_(point) {
    sharding_.samples = point.micro_batch;
    sharding_.tensor = point.tensor;
  }

  std::string row(const AcesoMapping& mapping) const {
    int unit = 0;
    while (unit < model_.unit_count() && model_.unit(unit).name != mapping.kind) ++unit;
    if (unit == model_.unit_count())
      throw InputError(model_.name, fmt::format("has no unit '{}', as a GPT has", mapping.kind));
    const ComputeSample& sample = *point_.units[unit];
    Seconds all_forward, all_backward, forward, backward;
    double parameters = 0, output = 0, input = 0;
    bool found = false;
    const LayerKind& kind = model_.unit(unit);
    double before = unit > 0 ? model_.unit(unit - 1).output : 0;
    for (const Op& op : kind.ops) {
      const OpTime time = op_time(job_, model_, device_, op, sharding_);
      const Seconds back = time.backward + time.weight_gradient;
      all_forward += time.forward;
      all_backward += back;
      if (matches(mapping, op)) {
        if (!found) input = before;
        found = true;
        forward += time.forward * mapping.share;
        backward += back * mapping.share;
        parameters += parameters_per_device(op, sharding_);
        output = op.boundary;
      }
      before = op.boundary;
    }
    if (!found)
      throw InputError(model_.name, fmt::format("has no op '{}', as a GPT has", mapping.op));
    const Seconds sum = sample.both ? *sample.both : *sample.forward + *sample.backward;
    const double analytic = (all_forward + all_backward).value;
    const Seconds measured_forward =
        sample.both ? sum * (all_forward.value / analytic) : *sample.forward;
    const Seconds measured_backward = sum - measured_forward;
    const double element = activation_bytes(job_.precision) * sharding_.samples / kMebibyte;
    const bool repeated = mapping.share != 1;
    return csv_line({std::string(mapping.aceso),
                     number(measured_forward.value * (forward / all_forward) / kMicrosecond),
                     number(measured_backward.value * (backward / all_backward) / kMicrosecond),
                     number(element * input), number(element * output),
                     number(repeated ? 0 : parameters * state_bytes(job_).weight / kMebibyte),
                     number(element * output), number(0),
                     number(sample.workspace.value_or(Bytes(0)).value / kMebibyte)});
  }

 private:
  static std::string number(double value) { return fmt::format("{:.6g}", value); }

  const Model& model_;
  const Job& job_;
  const DeviceType& device_;
  const WholePoint& point_;
  Sharding sharding_;
};

std::string plain(const std::string& name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return out;
}

void add_curves(const Profile& profile, const std::string& name, TextFiles& files) {
  for (const auto& [key, curve] : profile.collectives) {
    if (key.collective == "send") {
      std::vector<std::string> sizes, rates;
      for (const CollectivePoint& point : curve)
        if (point.time > Seconds(0)) {
          sizes.push_back(fmt::format("{:.6g}", point.size.value / kMebibyte));
          rates.push_back(fmt::format("{:.6g}", point.size.value / point.time.value / 1e9));
        }
      files[key.nodes == 1 ? "p2p_intra_node.csv" : "p2p_inter_node.csv"] =
          csv_line(sizes) + csv_line(rates);
      continue;
    }
    if (key.nodes != 1) continue;
    const double parts = key.collective == "all_gather" ? key.devices_per_node : 1;
    std::string text = csv_line({"data_size(MB)", "time(ms)"});
    for (const CollectivePoint& point : curve)
      text += csv_line({fmt::format("{:.6g}", point.size.value / parts / kMebibyte),
                        fmt::format("{:.6g}", point.time.value * 1e3)});
    files[fmt::format("prim_{}_{}_{}gpus.csv", name, key.collective, key.devices_per_node)] = text;
  }
}

}  // namespace

TextFiles aceso_files(const Profile& profile, const Model& model, const Job& job) {
  const std::string name = "gpt_" + plain(model.name);
  TextFiles files;
  for (const WholePoint& point : whole_points(profile, model)) {
    const DeviceEntry* known = lookup_device(builtin_catalogue(), point.device_type);
    const DeviceType device = known != nullptr ? known->type : builtin_catalogue().devices[0].type;
    const Division division(model, job, device, point);
    std::string text =
        csv_line({"op_name", "forward-compute", "backward-compute", "input_size", "output_size",
                  "weights", "activations", "fwd_reserved", "bwd_reserved"});
    for (const AcesoMapping& mapping : aceso_mappings("gpt")) text += division.row(mapping);
    files[fmt::format("{}_mbs{}_tp{}_algo0.csv", name, point.micro_batch, point.tensor)] = text;
  }
  add_curves(profile, name, files);
  return files;
}

}  // namespace plait
