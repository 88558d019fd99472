#include "io/plan/aceso_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "cost/known_times.h"
#include "io/cluster/catalogue.h"
#include "io/format/json_reader.h"
#include "io/profile/aceso_models.h"
#include "io/profile/import_aceso.h"
#include "io/profile/profile_path.h"
#include "model/op_cuts.h"
#include "plan/check.h"

namespace plait {
namespace {

constexpr int kMostPlanDegree = 1'000'000;
constexpr int kMostStages = 10'000;

// How one op of the configuration runs.
struct OpChoice {
  int tensor = 1;
  int data = 1;
  int algorithm = 0;
  bool recomputed = false;
  friend bool operator==(const OpChoice&, const OpChoice&) = default;
};

std::vector<int> integers(const JsonValue& value, int least, int most) {
  std::vector<int> out;
  for (const JsonValue& item : value.items()) out.push_back(item.integer(least, most));
  return out;
}

// One list for each stage, each with as many numbers as the stage has ops.
std::vector<std::vector<int>> by_stage(const JsonValue& root, std::string_view key,
                                       const std::vector<int>& ops, int most) {
  const JsonValue value = root.at(key);
  std::vector<std::vector<int>> out;
  for (const JsonValue& stage : value.items()) {
    out.push_back(integers(stage, 0, most));
    const std::size_t s = out.size() - 1;
    if (s < ops.size() && static_cast<int>(out[s].size()) != ops[s])
      throw InputError(stage.where(), fmt::format("has {} ops, but num_ops_in_each_stage says {}",
                                                  out[s].size(), ops[s]));
  }
  if (out.size() != ops.size())
    throw InputError(value.where(), fmt::format("has {} stages, but num_ops_in_each_stage has {}",
                                                out.size(), ops.size()));
  return out;
}

class Reader {
 public:
  Reader(const std::string& path, const Cluster& cluster)
      : root_(read_json_file(path)), cluster_(cluster) {}

  AcesoPlan read(const std::string& database) {
    read_sizes();
    AcesoPlan out;
    out.problem.cluster = cluster_;
    out.problem.job = job();
    read_tables(database, out.problem);
    out.plan = plan(out.problem.model);
    const std::vector<Violation> faults = check_plan(out.problem, out.plan);
    if (!faults.empty())
      throw InputError(root_.where(), faults.front().where + ": " + faults.front().what);
    refuse_unknown_times(out.problem, out.plan);
    return out;
  }

 private:
  void read_sizes() {
    family_ = root_.at("model_name").text();
    size_ = root_.at("model_size").text();
    const JsonValue layers = root_.at("num_layers");
    layers_ = layers.is_array() ? integers(layers, 1, kMostPlanDegree)
                                : std::vector<int>{layers.integer(1, kMostPlanDegree)};
    ops_ = aceso_op_list(family_, layers_);
    global_batch_ = root_.at("global_batch_size").integer(1, 1'000'000'000);
    const JsonValue micro_batch = root_.at("micro_batch_size");
    micro_batch_ = micro_batch.integer(1, global_batch_);
    if (global_batch_ % micro_batch_ != 0)
      throw InputError(micro_batch.where(), fmt::format("must divide global_batch_size {}, is {}",
                                                        global_batch_, micro_batch_));
    const JsonValue counts = root_.at("num_ops_in_each_stage");
    stage_ops_ = integers(counts, 1, static_cast<int>(ops_.size()));
    if (stage_ops_.empty() || stage_ops_.size() > kMostStages)
      throw InputError(counts.where(), "must have at least one stage");
    const long long sum = std::accumulate(stage_ops_.begin(), stage_ops_.end(), 0LL);
    if (sum != static_cast<long long>(ops_.size()))
      throw InputError(counts.where(),
                       fmt::format("adds up to {}, but {} of {} layers has {} ops", sum, family_,
                                   fmt::join(layers_, ", "), ops_.size()));
    const JsonValue devices = root_.at("num_gpus");
    devices_ = integers(devices, 1, kMostPlanDegree);
    if (devices_.size() != stage_ops_.size())
      throw InputError(devices.where(), fmt::format("has {} stages, but num_ops_in_each_stage {}",
                                                    devices_.size(), stage_ops_.size()));
    const long long needed = std::accumulate(devices_.begin(), devices_.end(), 0LL);
    if (needed > cluster_.device_count())
      throw InputError(devices.where(), fmt::format("needs {} devices, the cluster has {}", needed,
                                                    cluster_.device_count()));
  }

  Job job() const {
    Job job;
    job.global_batch = global_batch_;
    job.precision = family_ == "resnet" ? Precision::fp32 : Precision::fp16;
    job.attention = AttentionKernel::plain;
    job.framework = find_framework(builtin_catalogue(), "aceso", "catalogue");
    return job;
  }

  void read_tables(const std::string& database, Problem& problem) {
    const ProfilePath files = find_profile_files(database);
    const AcesoTable table = read_aceso_ops(files, table_name());
    const DeviceType& device = cluster_.device_types[cluster_.devices.front().type];
    add_aceso_ops(table, ops_, device, problem.profile);
    read_aceso_links(files, device.name, problem.profile);
    problem.profile.provenance.source = "aceso";
    problem.model = chain_of_ops(table, ops_, problem.job.precision == Precision::fp32 ? 4 : 2);
    problem.model.name = model_name();
    problem.model.sequence_length = root_.integer_or("seq_length", 1, kMostPlanDegree, 1);
    if (const auto encoder = root_.find("encoder_seq_length"))
      problem.model.sequence_length = encoder->integer(1, kMostPlanDegree);
  }

  std::string model_name() const {
    return family_ == "scale-layer" ? family_ : family_ + "_" + size_;
  }

  // T5 22B has the ops of 11B.
  std::string table_name() const {
    const AcesoModel* known = find_aceso_model(model_name());
    return known != nullptr ? known->table : model_name();
  }

  Plan plan(const Model& model) const {
    const auto tensor =
        by_stage(root_, "model_parallel_size_of_each_op", stage_ops_, kMostPlanDegree);
    const auto data = by_stage(root_, "data_parallel_size_of_each_op", stage_ops_, kMostPlanDegree);
    const auto recompute = by_stage(root_, "recompute_ops", stage_ops_, 1);
    const auto algorithm = by_stage(root_, "algo_of_each_op", stage_ops_, 1000);
    Plan plan;
    plan.micro_batches = global_batch_ / micro_batch_;
    int unit = 0;
    int device = 0;
    for (std::size_t s = 0; s < stage_ops_.size(); ++s) {
      Stage stage;
      for (int i = 0; i < devices_[s]; ++i) stage.devices.push_back(DeviceId{device++});
      OpChoice last;
      for (int k = 0; k < stage_ops_[s]; ++k, ++unit) {
        const OpChoice choice{tensor[s][k], data[s][k], algorithm[s][k], recompute[s][k] != 0};
        check(choice, s, k, model.unit(unit));
        if (stage.spans.empty() || choice != last)
          stage.spans.push_back(
              {.units = {unit, unit},
               .tensor = choice.tensor,
               .data = choice.data,
               .split = choice.algorithm,
               .recompute = choice.recomputed ? Recompute::full : Recompute::none});
        ++stage.spans.back().units.end;
        last = choice;
      }
      plan.stages.push_back(std::move(stage));
    }
    return plan;
  }

  void check(const OpChoice& choice, std::size_t stage, int op, const LayerKind& unit) const {
    const int ways = ways_to_cut(unit);
    if (choice.algorithm >= ways)
      throw InputError(fmt::format("{}/algo_of_each_op/{}/{}", root_.where(), stage, op),
                       fmt::format("is {}, but {} can be cut in {}", choice.algorithm, unit.name,
                                   ways == 1 ? "one way only" : "two ways: 0 and 1"));
    const std::string where =
        fmt::format("{}/model_parallel_size_of_each_op/{}/{}", root_.where(), stage, op);
    if (static_cast<long long>(choice.tensor) * choice.data != devices_[stage])
      throw InputError(where,
                       fmt::format("{} x {} data parallel is not the {} devices of the stage",
                                   choice.tensor, choice.data, devices_[stage]));
    if (micro_batch_ % choice.data != 0)
      throw InputError(where, fmt::format("{} data parallel does not divide micro_batch_size {}",
                                          choice.data, micro_batch_));
  }

  JsonValue root_;
  const Cluster& cluster_;
  std::string family_;
  std::string size_;
  std::vector<int> layers_;
  std::vector<std::string> ops_;
  std::vector<int> stage_ops_;
  std::vector<int> devices_;
  int global_batch_ = 1;
  int micro_batch_ = 1;
};

}  // namespace

AcesoPlan read_aceso_plan(const std::string& path, const std::string& database,
                          const Cluster& cluster) {
  return Reader(path, cluster).read(database);
}

}  // namespace plait
