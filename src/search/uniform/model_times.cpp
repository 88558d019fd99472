#include "search/uniform/model_times.h"

#include "base/parallel.h"
#include "cost/span_frame.h"

namespace plait {

ModelTimes::ModelTimes(const CostEngine& engine, const std::vector<NodeKind>& kinds)
    : engine_(engine), kinds_(kinds) {}

void ModelTimes::want(const ReplicaCut& cut) {
  if (!times_.contains(cut)) wanted_.insert(cut);
}

void ModelTimes::make(int threads) {
  const std::vector<ReplicaCut> cuts(wanted_.begin(), wanted_.end());
  std::vector<ModelTime> made_now(cuts.size());
  parallel_for(static_cast<int>(cuts.size()), threads, [&](int i) { made_now[i] = made(cuts[i]); });
  for (std::size_t i = 0; i < cuts.size(); ++i) times_.emplace(cuts[i], std::move(made_now[i]));
  wanted_.clear();
}

ModelTime ModelTimes::made(const ReplicaCut& cut) const {
  const Problem& problem = engine_.problem();
  const Model& model = problem.model;
  const NodeKind& kind = kinds_[cut.kind];
  const int wanted = cut.tensor * cut.context * cut.data;
  const int nodes = (wanted + kind.devices() - 1) / kind.devices();
  std::vector<DeviceId> devices = devices_in(kinds_, std::vector<int>(nodes, cut.kind));
  devices.resize(wanted);
  PlanSettings settings;
  settings.context = cut.context;
  settings.expert = cut.expert;
  settings.zero = cut.zero;
  settings.sequence_parallel = cut.sequence_parallel;
  settings.micro_batches = problem.job.global_batch / (cut.data * cut.micro_batch);
  const TableSource tables = [this](const ReplicaShape& shape) -> const UnitTable& {
    return engine_.table(shape);
  };
  const SpanFrame frame(problem, settings, devices, cut.tensor, cut.data, {}, tables);
  // The slowest replica: its times add up, and a stage takes no less.
  const UnitRange whole{0, model.unit_count()};
  int slowest = 0;
  for (int r = 1; r < frame.replica_count(); ++r)
    if (frame.time_on(r, whole, cut.recompute).total() >
        frame.time_on(slowest, whole, cut.recompute).total())
      slowest = r;
  ModelTime time;
  for (int u = 0; u < model.unit_count(); ++u) {
    const double own = frame.time_on(slowest, {u, u + 1}, cut.recompute).total().value;
    time.by_unit.push_back(own);
    time.total += own;
  }
  return time;
}

}  // namespace plait
