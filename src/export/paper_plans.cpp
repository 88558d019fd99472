#include "export/paper_plans.h"

#include <algorithm>

namespace plait {

std::string beyond_the_papers(const Problem& problem, const Plan& plan) {
  if (plan.schedule != Schedule::one_f_one_b) return "its schedule is not 1F1B";
  if (plan.zero != ZeroStage::off) return "it cuts states by ZeRO";
  if (plan.context > 1 || plan.expert > 1) return "it has context or expert parallelism";
  std::size_t used = 0;
  for (const Stage& stage : plan.stages) {
    used += stage.devices.size();
    if (stage.spans.size() != 1) return "its stages are cut in several ways";
    if (stage.spans.front().recompute != Recompute::none) return "it recomputes activations";
  }
  if (static_cast<int>(used) != problem.cluster.device_count()) return "it leaves devices idle";
  return "";
}

void narrow_to_papers(Pins& pins) {
  if (!pins.zero) pins.zero = ZeroStage::off;
  if (!pins.recompute) pins.recompute = Recompute::none;
  if (!pins.schedule) pins.schedule = Schedule::one_f_one_b;
  if (!pins.context) pins.context = 1;
  if (!pins.expert) pins.expert = 1;
}

std::string not_uniform(const Problem& problem, const Plan& plan) {
  if (std::string fault = beyond_the_papers(problem, plan); !fault.empty()) return fault;
  const Span& first = plan.stages.front().spans.front();
  for (const Stage& stage : plan.stages) {
    if (stage.spans.front().tensor != first.tensor || stage.spans.front().data != first.data)
      return "its stages have different degrees";
    if (!stage.shares.empty()) return "its replicas have unequal shares";
  }
  return "";
}

void limit_to_one_layout(Target& target) {
  target.one_layout = target.ranks_in_order = true;
  target.unequal_shares = target.idle_in_node = false;
  target.cuts = CutRule::between_layers;
}

std::vector<DeviceId> devices_in_order(const Plan& plan) {
  std::vector<DeviceId> ids;
  for (const Stage& stage : plan.stages)
    ids.insert(ids.end(), stage.devices.begin(), stage.devices.end());
  return ids;
}

std::vector<int> stage_bounds(const Plan& plan) {
  std::vector<int> bounds{0};
  for (const Stage& stage : plan.stages) bounds.push_back(stage.spans.back().units.end);
  return bounds;
}

int micro_batch_of(const Problem& problem, const Plan& plan) {
  return problem.job.global_batch / plan.micro_batches / plan.stages.front().spans.front().data;
}

bool is_encoder_decoder(const Model& model) {
  return std::ranges::any_of(
      model.kinds, [](const LayerKind& kind) { return kind.name == "decoder_embedding"; });
}

}  // namespace plait
