#include "cli/nothing_fits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/plan_report.h"
#include "cost/engine.h"
#include "cost/framework/framework.h"
#include "plan/describe.h"
#include "plan/names.h"
#include "report/quantities.h"
#include "report/summary.h"
#include "search/space/space.h"

namespace plait {
namespace {

const Planner& usual_planner() { return planners().front(); }

// Bytes that all devices together must hold, and can.
Bytes state_of(const Problem& problem) {
  const StateBytes each = state_bytes(problem.job);
  return Bytes((each.weight + each.gradient + each.optimizer) * problem.model.parameters());
}

Bytes memory_of(const Cluster& cluster) {
  Bytes memory;
  for (const Device& device : cluster.devices) memory += cluster.device_types[device.type].memory;
  return memory;
}

// Some plan of the problem under these pins: the first that turns up is enough.
std::optional<Plan> any_plan(const Problem& problem, SearchOptions options, const Pins& pins) {
  constexpr Seconds kPatience(2);
  if (is_hopeless(problem) || !contradiction_in(problem, pins).empty()) return std::nullopt;
  options.pins = pins;
  options.keep = 1;
  options.time_limit = std::min(options.time_limit, kPatience);
  std::stop_source found;
  const SearchContext context{.problem = problem,
                              .options = options,
                              .stop = found.get_token(),
                              .on_improvement = [&](const RankedPlan&) { found.request_stop(); },
                              .on_progress = {}};
  const SearchResult result = run_search(usual_planner(), context);
  if (result.plans.empty()) return std::nullopt;
  return result.plans.front().plan;
}

bool is_solvable(const Problem& problem, const SearchOptions& options, const Pins& pins) {
  return any_plan(problem, options, pins).has_value();
}

// The plan that would fit if the devices had a little more memory: as little more as makes a
// difference. Nothing when memory is not what is missing.
std::optional<RankedPlan> nearest_plan(const Problem& problem, const SearchOptions& options) {
  constexpr double kMost = 4096;
  const double close_enough = problem.cluster.device_count() <= 16 ? 1.1 : 1.5;
  const auto with_memory = [&](double factor) {
    Problem larger = problem;
    for (DeviceType& type : larger.cluster.device_types) type.memory = type.memory * factor;
    return any_plan(larger, options, options.pins);
  };
  double low = 1;
  double high = 2;
  std::optional<Plan> nearest = with_memory(high);
  for (; !nearest && high < kMost; nearest = with_memory(high)) {
    low = high;
    high *= 2;
  }
  if (!nearest) return std::nullopt;
  while (high / low > close_enough) {
    const double middle = std::sqrt(low * high);
    if (auto plan = with_memory(middle)) {
      nearest = std::move(plan);
      high = middle;
    } else {
      low = middle;
    }
  }
  return RankedPlan{*nearest, CostEngine(problem).simulate(*nearest)};
}

struct PinNote {
  std::string words;  // how the user said it
  void (*drop)(Pins&);
};

template <typename T>
void note_number(std::vector<PinNote>& notes, const char* flag, const std::optional<T>& value,
                 void (*drop)(Pins&)) {
  if (value) notes.push_back({fmt::format("{} {}", flag, *value), drop});
}

template <typename T>
void note_choice(std::vector<PinNote>& notes, const char* flag, const std::optional<T>& value,
                 void (*drop)(Pins&)) {
  if (value) notes.push_back({fmt::format("{} {}", flag, name_of(*value)), drop});
}

std::vector<PinNote> notes_of(const Pins& pins) {
  std::vector<PinNote> notes;
  note_choice(notes, "--recompute", pins.recompute, [](Pins& p) { p.recompute.reset(); });
  note_choice(notes, "--zero", pins.zero, [](Pins& p) { p.zero.reset(); });
  note_number(notes, "--micro-batch", pins.micro_batch, [](Pins& p) { p.micro_batch.reset(); });
  note_number(notes, "--micro-batches", pins.micro_batches,
              [](Pins& p) { p.micro_batches.reset(); });
  note_choice(notes, "--schedule", pins.schedule, [](Pins& p) { p.schedule.reset(); });
  note_number(notes, "--tp", pins.tensor, [](Pins& p) { p.tensor.reset(); });
  note_number(notes, "--dp", pins.data, [](Pins& p) { p.data.reset(); });
  note_number(notes, "--pp", pins.pipeline, [](Pins& p) { p.pipeline.reset(); });
  note_number(notes, "--cp", pins.context, [](Pins& p) { p.context.reset(); });
  note_number(notes, "--ep", pins.expert, [](Pins& p) { p.expert.reset(); });
  note_number(notes, "--chunks", pins.chunks, [](Pins& p) { p.chunks.reset(); });
  if (pins.sequence_parallel)
    notes.push_back({*pins.sequence_parallel ? "--sp" : "--no-sp",
                     [](Pins& p) { p.sequence_parallel.reset(); }});
  if (!pins.stages.empty()) notes.push_back({"--stages", [](Pins& p) { p.stages.clear(); }});
  return notes;
}

// Which flags stand in the way: single ones first, else all of them, else none.
std::vector<std::string> pins_to_drop(const Problem& problem, const SearchOptions& options) {
  const std::vector<PinNote> notes = notes_of(options.pins);
  std::vector<std::string> enough;
  for (const PinNote& note : notes) {
    Pins fewer = options.pins;
    note.drop(fewer);
    if (is_solvable(problem, options, fewer)) enough.push_back("without " + note.words);
  }
  if (enough.empty() && notes.size() > 1 && is_solvable(problem, options, {})) {
    std::vector<std::string> all;
    for (const PinNote& note : notes) all.push_back(note.words);
    enough.push_back(fmt::format("without {}", fmt::join(all, " ")));
  }
  return enough;
}

// The cluster, `times` over.
Cluster repeated(const Cluster& cluster, int times) {
  Cluster large = cluster;
  const int nodes = static_cast<int>(cluster.nodes.size());
  for (int k = 1; k < times; ++k) {
    for (const Node& node : cluster.nodes) {
      large.nodes.push_back(node);
      large.nodes.back().name += fmt::format("-copy{}", k);
    }
    for (const Device& device : cluster.devices)
      large.devices.push_back({.type = device.type, .node = device.node + k * nodes});
  }
  return large;
}

// Where memory is short, small micro-batches and full recomputation are what fits if anything does.
bool is_solvable_thriftily(const Problem& problem, SearchOptions options) {
  constexpr std::size_t kSmallest = 4;  // micro-batches
  std::vector<int> counts = divisors_of(problem.job.global_batch);
  if (counts.size() > kSmallest) counts.erase(counts.begin(), counts.end() - kSmallest);
  options.promising_micro_batches = counts;
  return is_solvable(problem, options, {.recompute = Recompute::full});
}

std::vector<std::string> larger_machines(const Problem& problem, const SearchOptions& options) {
  constexpr int kMostDevices = 512;
  constexpr int kMostTimes = 64;
  constexpr double kRoom = 1.2;  // for activations and the reserve; with less it seldom fits
  for (int times = 2; times <= kMostTimes; times *= 2) {
    if (problem.cluster.device_count() * times > kMostDevices) return {};
    Problem larger = problem;
    larger.cluster = repeated(problem.cluster, times);
    if (memory_of(larger.cluster) < kRoom * state_of(problem)) continue;
    if (is_solvable_thriftily(larger, options))
      return {fmt::format("with {} times this cluster ({})", times,
                          counted(larger.cluster.device_count(), "device"))};
  }
  return {};
}

std::vector<std::string> smaller_jobs(const Problem& problem, const SearchOptions& options) {
  std::vector<std::string> helps;
  if (problem.job.precision != Precision::pure_bf16) {
    Problem lean = problem;
    lean.job.precision = Precision::pure_bf16;
    if (is_solvable_thriftily(lean, options)) helps.emplace_back("with --precision pure-bf16");
  }
  return helps;
}

std::string why(const Problem& problem, const SearchOptions& options, const SearchResult& result) {
  if (is_hopeless(problem))
    return fmt::format(
        "the weights, gradients and optimizer state of {} need {}, all devices together have {}",
        problem.model.name, in_words(state_of(problem)), in_words(memory_of(problem.cluster)));
  std::optional<RankedPlan> nearest = result.nearest;
  if (!nearest) nearest = nearest_plan(problem, options);
  if (nearest)
    return fmt::format("in the nearest plan ({}) {}", short_description(nearest->plan),
                       shortage(problem, *nearest));
  return result.reason.empty() ? "no plan has the shape that the flags ask for" : result.reason;
}

}  // namespace

std::string shortage(const Problem& problem, const RankedPlan& plan) {
  const int index = tightest_stage(plan.cost);
  const StageCost& stage = plan.cost.stages[index];
  return fmt::format("stage {} needs {} and {} has {} to give: {} too much", index + 1,
                     in_words(stage.peak_memory()),
                     types_of(problem.cluster, {plan.plan.stages[index].devices.front()}).substr(2),
                     in_words(stage.capacity - stage.reserve), in_words(Bytes(0) - stage.spare()));
}

bool is_hopeless(const Problem& problem) { return memory_of(problem.cluster) < state_of(problem); }

std::string why_nothing_fits(const Problem& problem, const PlanArguments& arguments,
                             const SearchResult& result) {
  if (result.cut_short && !result.nearest)
    return "nothing found before the search was cut short; give it more --time-limit";
  std::string text = "nothing fits: " + why(problem, arguments.search, result);
  std::vector<std::string> helps = pins_to_drop(problem, arguments.search);
  if (helps.empty()) {
    helps = smaller_jobs(problem, arguments.search);
    const std::vector<std::string> machines = larger_machines(problem, arguments.search);
    helps.insert(helps.end(), machines.begin(), machines.end());
  }
  if (helps.empty())
    return text + (is_hopeless(problem)
                       ? "; a smaller model or far more devices would help"
                       : "; a smaller model, a shorter --seq or far more devices would help");
  return text + fmt::format("; it fits {}", fmt::join(helps, ", or "));
}

}  // namespace plait
