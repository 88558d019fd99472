// FASOP's table: nodes under its names, and the price of a training of 12,500,000 steps, which is
// its default. Costs are plait's.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cost/engine.h"
#include "cost/price.h"
#include "export/exporter.h"
#include "export/paper_plans.h"

namespace plait {
namespace {

constexpr double kFasopSteps = 12'500'000;  // of a training, when nothing is said

// FASOP's name for a node of these devices; "" = it has none.
std::string fasop_node(const std::string& type) {
  const std::string family = type.substr(0, type.find('-'));
  if (family == "A100") return "p4d.24xlarge";
  return family == "A10" || family == "A10G" ? "g5.24xlarge" : "";
}

// Units of each stage. FASOP's T5 has no head: the last layer stands for it.
Exported fasop_partition(const Model& model, const Plan& plan) {
  std::vector<int> units;
  for (const Stage& stage : plan.stages) units.push_back(stage.spans.front().units.size());
  if (is_encoder_decoder(model) && --units.back() == 0)
    return {"", "its last stage is the head alone, which FASOP does not count"};
  return {fmt::format("[{}]", fmt::join(units, ", ")), ""};
}

// FASOP's "fsdp": the same plan with its optimizer states cut over the replicas.
Estimate sharded(const Problem& problem, Plan plan) {
  plan.zero = ZeroStage::optimizer;
  return CostEngine(problem).simulate(plan);
}

}  // namespace

void limit_fasop(const Problem&, Target& target) {
  limit_to_one_layout(target);
  target.program = "FASOP";
}

Exported fasop_row(const Problem& problem, const RankedPlan& ranked, int) {
  const Plan& plan = ranked.plan;
  if (std::string fault = not_uniform(problem, plan); !fault.empty()) return {"", fault};
  std::vector<int> nodes;
  std::vector<std::string> placement;
  int a100 = 0;
  for (const DeviceId id : devices_in_order(plan)) {
    const int node = problem.cluster.device(id).node;
    if (!nodes.empty() && nodes.back() == node) continue;
    if (std::ranges::find(nodes, node) != nodes.end()) return {"", "a node is not in one piece"};
    const std::string& type = problem.cluster.type_of(id).name;
    const std::string name = fasop_node(type);
    if (name.empty()) return {"", fmt::format("FASOP knows A100 and A10, not {}", type)};
    nodes.push_back(node);
    a100 += name == "p4d.24xlarge" ? 1 : 0;
    placement.push_back("'" + name + "'");
  }
  Exported partition = fasop_partition(problem.model, plan);
  if (!partition.refusal.empty()) return partition;
  Seconds gradients;
  for (const StageCost& stage : ranked.cost.stages)
    gradients = std::max(gradients, stage.gradient_sync);
  const auto gib = [](const Estimate& cost) { return cost.peak_memory().value / 0x1p30; };
  const auto flag = [](bool value) { return value ? "True" : "False"; };
  const Estimate fsdp = sharded(problem, plan);
  const double price = price_of(problem.cluster, plan).value * ranked.cost.step.value;
  const Span& span = plan.stages.front().spans.front();
  return {fmt::format("{},{},{},{}.0,\"[{}]\",{},{},\"{}\",{},{},{},{},{},{},tensor([{:.4f}]),{},"
                      "tensor([{:.4f}]),{}\n",
                      micro_batch_of(problem, plan), span.tensor, span.data, plan.stage_count(),
                      fmt::join(placement, ", "), a100, static_cast<int>(nodes.size()) - a100,
                      partition.text, ranked.cost.step.value, ranked.cost.pipeline.value,
                      gradients.value, ranked.cost.stages.front().tied_sync.value, price,
                      flag(!ranked.cost.fits), gib(ranked.cost), flag(!fsdp.fits), gib(fsdp),
                      price * kFasopSteps),
          ""};
}

}  // namespace plait
