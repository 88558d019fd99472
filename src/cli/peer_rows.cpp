#include "cli/peer_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "cost/engine.h"
#include "cost/price.h"

namespace plait {
namespace {

constexpr double kFasopSteps = 12'500'000;  // of a training, when nothing is said

bool is_encoder_decoder(const Model& model) {
  return std::ranges::any_of(
      model.kinds, [](const LayerKind& kind) { return kind.name == "decoder_embedding"; });
}

// "A100" of "A100-80GB".
std::string short_name(const DeviceType& type) { return type.name.substr(0, type.name.find('-')); }

// "" or what the programs of all three papers have no words for.
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

// "" or why the plan is not one set of degrees with devices in rank order.
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

std::vector<DeviceId> in_order(const Plan& plan) {
  std::vector<DeviceId> ids;
  for (const Stage& stage : plan.stages)
    ids.insert(ids.end(), stage.devices.begin(), stage.devices.end());
  return ids;
}

// Bounds of the stages: 0, .., number of units.
std::vector<int> bounds_of(const Plan& plan) {
  std::vector<int> bounds{0};
  for (const Stage& stage : plan.stages) bounds.push_back(stage.spans.back().units.end);
  return bounds;
}

int micro_batch_of(const Problem& problem, const Plan& plan) {
  return problem.job.global_batch / plan.micro_batches / plan.stages.front().spans.front().data;
}

struct Row {
  std::string text;
  std::string fault;  // why there is none
};

Row metis_row(const Problem& problem, const Plan& plan, Seconds cost, int rank) {
  if (std::string fault = beyond_the_papers(problem, plan); !fault.empty()) return {"", fault};
  std::vector<int> types;
  for (const DeviceId id : in_order(plan)) {
    const int type = problem.cluster.device(id).type;
    if (!types.empty() && types.back() == type) continue;
    if (std::ranges::find(types, type) != types.end())
      return {"", "devices of one type are not next to each other"};
    types.push_back(type);
  }
  std::vector<std::string> names;
  for (const int type : types) {
    const std::string name = short_name(problem.cluster.device_types[type]);
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    names.push_back(fmt::format("<DeviceType.{}: '{}'>", name, lower));
  }
  std::vector<std::size_t> groups;
  std::vector<std::string> strategies;
  for (const Stage& stage : plan.stages) {
    groups.push_back(stage.devices.size());
    strategies.push_back(
        fmt::format("({}, {})", stage.spans.front().data, stage.spans.front().tensor));
  }
  return {fmt::format("{}, {}, ({}{}), [{}], [{}], {}, [{}]\n", rank, 1e3 * cost.value,
                      fmt::join(names, ", "), names.size() == 1 ? "," : "", fmt::join(groups, ", "),
                      fmt::join(strategies, ", "), plan.micro_batches,
                      fmt::join(bounds_of(plan), ", ")),
          ""};
}

Row metis_row(const Problem& problem, const RankedPlan& ranked, int rank) {
  return metis_row(problem, ranked.plan, ranked.cost.step, rank);
}

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

Row amp_row(const Problem& problem, const RankedPlan& ranked, int) {
  const Plan& plan = ranked.plan;
  if (std::string fault = not_uniform(problem, plan); !fault.empty()) return {"", fault};
  const bool gan = problem.model.name == "transgan";
  if (!gan && !is_plain_stack(problem.model))
    return {"", "AMP knows stacks of layers between embedding and head, and TransGAN"};
  const std::vector<DeviceId> ids = in_order(plan);
  if (!std::ranges::is_sorted(ids)) return {"", "its devices are not in rank order"};
  std::vector<int> bounds = bounds_of(plan);
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

// FASOP's name for a node of these devices; "" = it has none.
std::string fasop_node(const std::string& type) {
  const std::string family = type.substr(0, type.find('-'));
  if (family == "A100") return "p4d.24xlarge";
  return family == "A10" || family == "A10G" ? "g5.24xlarge" : "";
}

// Units of each stage. FASOP's T5 has no head: the last layer stands for it.
Row fasop_partition(const Model& model, const Plan& plan) {
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

Row fasop_row(const Problem& problem, const RankedPlan& ranked, int) {
  const Plan& plan = ranked.plan;
  if (std::string fault = not_uniform(problem, plan); !fault.empty()) return {"", fault};
  std::vector<int> nodes;
  std::vector<std::string> placement;
  int a100 = 0;
  for (const DeviceId id : in_order(plan)) {
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
  Row partition = fasop_partition(problem.model, plan);
  if (!partition.fault.empty()) return partition;
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

struct PeerFormat {
  std::string_view name;
  std::string_view heading;
  Row (*row)(const Problem&, const RankedPlan&, int rank);
};

constexpr std::string_view kMetisHeading =
    "rank, cost, node_sequence, device_groups, strategies(dp_deg, tp_deg), "
    "batches(number of batch), layer_partition\n";

constexpr PeerFormat kFormats[] = {
    {"metis", kMetisHeading, metis_row},
    {"amp",
     "tp,dp,pp,micro_batch,num_micro_batches,global_batch,partition_bounds,units_per_stage,"
     "rank_map,predicted_s,setting\n",
     amp_row},
    {"fasop",
     "mbs,tp,dp,pp,node placement,num_a100,num_a10,partition,estimated time (s/step),"
     "pipeline time,DP all-reduce time,embedding layer all-reduce time,price_per_step,is_oom,"
     "oom_gpumem,is_fsdp_oom,fsdpoom_gpumem,train_cost\n",
     fasop_row}};

void add(PeerRows& rows, const Row& row, std::size_t plan, const std::string& format) {
  rows.text += row.text;
  if (row.fault.empty())
    ++rows.written;
  else
    rows.left_out.push_back(
        fmt::format("plan {} has no row in the form of {}: {}", plan + 1, format, row.fault));
}

}  // namespace

std::vector<std::string> peer_formats() {
  std::vector<std::string> names;
  for (const PeerFormat& format : kFormats) names.emplace_back(format.name);
  return names;
}

PeerRows peer_rows(const std::string& format, const Problem& problem,
                   std::span<const RankedPlan> plans) {
  PeerRows out;
  const auto chosen = std::ranges::find(kFormats, format, &PeerFormat::name);
  out.text = chosen->heading;
  for (std::size_t i = 0; i < plans.size(); ++i)
    add(out, chosen->row(problem, plans[i], out.written + 1), i, format);
  return out;
}

PeerRows metis_rows(const Problem& problem, std::span<const MetisRanked> plans) {
  PeerRows out;
  out.text = kMetisHeading;
  for (std::size_t i = 0; i < plans.size(); ++i)
    add(out, metis_row(problem, plans[i].plan, plans[i].cost.total(), out.written + 1), i, "metis");
  return out;
}

}  // namespace plait
