#include "cli/peer_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "cost/price.h"

namespace plait {
namespace {

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

Row amp_row(const Problem& problem, const RankedPlan& ranked, int) {
  const Plan& plan = ranked.plan;
  if (std::string fault = not_uniform(problem, plan); !fault.empty()) return {"", fault};
  const std::vector<DeviceId> ids = in_order(plan);
  if (!std::ranges::is_sorted(ids)) return {"", "its devices are not in rank order"};
  std::vector<int> bounds = bounds_of(plan);
  for (int& bound : bounds) {
    if (bound == problem.model.unit_count())
      bound += 4;
    else if (bound > 0)
      bound += 1;
  }
  std::vector<int> units;
  for (std::size_t i = 1; i < bounds.size(); ++i) units.push_back(bounds[i] - bounds[i - 1]);
  const Span& span = plan.stages.front().spans.front();
  return {fmt::format("{},{},{},{},{},{},{},{},identity,{}\n", span.tensor, span.data,
                      plan.stage_count(), micro_batch_of(problem, plan), plan.micro_batches,
                      problem.job.global_batch, fmt::join(bounds, "-"), fmt::join(units, "-"),
                      ranked.cost.step.value),
          ""};
}

Row fasop_row(const Problem& problem, const RankedPlan& ranked, int) {
  const Plan& plan = ranked.plan;
  if (std::string fault = not_uniform(problem, plan); !fault.empty()) return {"", fault};
  std::vector<int> nodes;
  for (const DeviceId id : in_order(plan)) {
    const int node = problem.cluster.device(id).node;
    if (!nodes.empty() && nodes.back() == node) continue;
    if (std::ranges::find(nodes, node) != nodes.end()) return {"", "a node is not in one piece"};
    nodes.push_back(node);
  }
  std::vector<std::string> placement;
  int a100 = 0;
  for (const int node : nodes) {
    const auto device = std::ranges::find(problem.cluster.devices, node, &Device::node);
    const std::string name = short_name(problem.cluster.device_types[device->type]);
    a100 += name == "A100" ? 1 : 0;
    placement.push_back("'" + name + "'");
  }
  std::vector<int> units;
  Seconds gradients;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    units.push_back(plan.stages[s].spans.front().units.size());
    gradients = std::max(gradients, ranked.cost.stages[s].gradient_sync);
  }
  const double gib = ranked.cost.peak_memory().value / 0x1p30;
  const double price = price_of(problem.cluster, plan).value * ranked.cost.step.value;
  const Span& span = plan.stages.front().spans.front();
  return {fmt::format("{},{},{},{},\"[{}]\",{},{},\"[{}]\",{},{},{},{},{},False,{},False,{},\n",
                      micro_batch_of(problem, plan), span.tensor, span.data, plan.stage_count(),
                      fmt::join(placement, ", "), a100, static_cast<int>(nodes.size()) - a100,
                      fmt::join(units, ", "), ranked.cost.step.value, ranked.cost.pipeline.value,
                      gradients.value, ranked.cost.stages.front().tied_sync.value, price, gib, gib),
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
     "rank_map,predicted_s\n",
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
        fmt::format("plan {} has no row in {}'s form: {}", plan + 1, format, row.fault));
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
