// AMP's trials: degrees, micro-batch and the bounds of the stages in AMP's own units, and the entry
// of its list of settings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "export/exporter.h"
#include "export/paper_plans.h"

namespace plait {
namespace {

// Whether the model is a stack of layers between an embedding and a head.
bool is_plain_stack(const Model& model) {
  return model.unit_count() > 2 && model.unit(0).name == "embedding" &&
         model.unit(model.unit_count() - 1).name == "head" && !is_encoder_decoder(model);
}

// Where a unit begins among AMP's own: an embedding is two of them and a head four; TransGAN's 31
// units are 56: three make the latent layer, 26 the five enlargements, three the image.
int amp_bound(const Model& model, int unit) {
  if (model.unit(0).name == "latent") {
    if (unit <= 1) return 3 * unit;
    if (unit <= 13) return unit + 2;
    if (unit <= 18) return 15 + static_cast<int>(std::lround(5.2 * (unit - 13)));
    return unit + (unit < model.unit_count() ? 23 : 25);
  }
  if (unit == 0) return 0;
  return unit == model.unit_count() ? unit + 4 : unit + 1;
}

// "((1, {'mp_deg': tensor([1.]), ..}, defaultdict(<class 'list'>, {0: [0, 1], ..}), [0, 30]),
// tensor([1.2443]))": an entry of the list that AMP sorts and tries.
std::string amp_setting(const Problem& problem, const Plan& plan, const std::vector<int>& bounds,
                        Seconds step) {
  std::vector<std::string> nodes;
  for (std::size_t n = 0; n < problem.cluster.nodes.size(); ++n) {
    std::vector<int> ranks;
    for (int i = 0; i < problem.cluster.device_count(); ++i)
      if (problem.cluster.devices[i].node == static_cast<int>(n)) ranks.push_back(i);
    nodes.push_back(fmt::format("{}: [{}]", n, fmt::join(ranks, ", ")));
  }
  const Span& span = plan.stages.front().spans.front();
  return fmt::format(
      "(({}, {{'mp_deg': tensor([{}.]), 'dp_deg': tensor([{}.]), 'pp_deg': tensor([{}.])}}, "
      "defaultdict(<class 'list'>, {{{}}}), [{}]), tensor([{:.4f}]))",
      micro_batch_of(problem, plan), span.tensor, span.data, plan.stage_count(),
      fmt::join(nodes, ", "), fmt::join(bounds, ", "), step.value);
}

}  // namespace

void limit_amp(const Problem&, Target& target) {
  limit_to_one_layout(target);
  target.program = "AMP";
}

Exported amp_row(const Problem& problem, const RankedPlan& ranked, int) {
  const Plan& plan = ranked.plan;
  if (std::string fault = not_uniform(problem, plan); !fault.empty()) return {"", fault};
  const bool gan = problem.model.name == "transgan";
  if (!gan && !is_plain_stack(problem.model))
    return {"", "AMP knows stacks of layers between embedding and head, and TransGAN"};
  const std::vector<DeviceId> ids = devices_in_order(plan);
  if (!std::ranges::is_sorted(ids)) return {"", "its devices are not in rank order"};
  std::vector<int> bounds = stage_bounds(plan);
  for (int& bound : bounds) bound = amp_bound(problem.model, bound);
  std::vector<int> units;
  for (std::size_t i = 1; i < bounds.size(); ++i) units.push_back(bounds[i] - bounds[i - 1]);
  const Span& span = plan.stages.front().spans.front();
  return {fmt::format("{},{},{},{},{},{},{},{},identity,{},\"{}\"\n", span.tensor, span.data,
                      plan.stage_count(), micro_batch_of(problem, plan), plan.micro_batches,
                      problem.job.global_batch, fmt::join(bounds, "-"), fmt::join(units, "-"),
                      ranked.cost.step.value, amp_setting(problem, plan, bounds, ranked.cost.step)),
          ""};
}

}  // namespace plait
