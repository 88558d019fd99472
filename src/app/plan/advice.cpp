#include "app/plan/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/engine.h"
#include "cost/framework/framework.h"
#include "plan/names.h"
#include "report/plan_tables.h"
#include "report/quantities.h"
#include "search/space/space.h"

namespace plait {
namespace {

// How advice is searched for: as the user searched, until the session is asked to stop.
struct Trial {
  const SearchOptions& options;
  const Session& session;
};

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
std::optional<Plan> any_plan(const Problem& problem, const Trial& trial, const Pins& pins) {
  constexpr Seconds kPatience(2);
  if (trial.session.stop.stop_requested()) return std::nullopt;
  if (is_hopeless(problem) || violation_of(problem, pins, trial.options.target))
    return std::nullopt;
  SearchOptions options = trial.options;
  options.pins = pins;
  options.keep = 1;
  options.time_limit = std::min(options.time_limit, kPatience);
  std::stop_source found;
  const SearchContext context{.problem = problem,
                              .options = options,
                              .stop = found.get_token(),
                              .on_improvement = [&](const RankedPlan&) { found.request_stop(); },
                              .on_progress =
                                  [&](double) {
                                    if (trial.session.stop.stop_requested()) found.request_stop();
                                  }};
  const SearchResult result = run_search(usual_planner(), context);
  if (result.plans.empty()) return std::nullopt;
  return result.plans.front().plan;
}

bool is_solvable(const Problem& problem, const Trial& trial, const Pins& pins) {
  return any_plan(problem, trial, pins).has_value();
}

// The plan that would fit if the devices had a little more memory: as little more as makes a
// difference. Nothing when memory is not what is missing.
std::optional<RankedPlan> nearest_plan(const Problem& problem, const Trial& trial) {
  constexpr double kMost = 4096;
  const double close_enough = problem.cluster.device_count() <= 16 ? 1.1 : 1.5;
  const auto with_memory = [&](double factor) {
    Problem larger = problem;
    for (DeviceType& type : larger.cluster.device_types) type.memory = type.memory * factor;
    return any_plan(larger, trial, trial.options.pins);
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
  Dimension dimension;
  std::string words;  // "`tensor` 8"
  void (*drop)(Pins&);
};

template <typename T>
void note_number(std::vector<PinNote>& notes, Dimension dimension, const std::optional<T>& value,
                 void (*drop)(Pins&)) {
  if (value) notes.push_back({dimension, fmt::format("`{}` {}", name_of(dimension), *value), drop});
}

template <typename T>
void note_choice(std::vector<PinNote>& notes, Dimension dimension, const std::optional<T>& value,
                 void (*drop)(Pins&)) {
  if (value)
    notes.push_back({dimension, fmt::format("`{}` {}", name_of(dimension), name_of(*value)), drop});
}

// The pins, those first that most often are in the way.
std::vector<PinNote> notes_of(const Pins& pins) {
  using enum Dimension;
  std::vector<PinNote> notes;
  note_choice(notes, recompute, pins.recompute, [](Pins& p) { p.recompute.reset(); });
  note_choice(notes, zero, pins.zero, [](Pins& p) { p.zero.reset(); });
  note_number(notes, micro_batch, pins.micro_batch, [](Pins& p) { p.micro_batch.reset(); });
  note_number(notes, micro_batches, pins.micro_batches, [](Pins& p) { p.micro_batches.reset(); });
  note_choice(notes, schedule, pins.schedule, [](Pins& p) { p.schedule.reset(); });
  note_number(notes, tensor, pins.tensor, [](Pins& p) { p.tensor.reset(); });
  note_number(notes, data, pins.data, [](Pins& p) { p.data.reset(); });
  note_number(notes, pipeline, pins.pipeline, [](Pins& p) { p.pipeline.reset(); });
  note_number(notes, context, pins.context, [](Pins& p) { p.context.reset(); });
  note_number(notes, expert, pins.expert, [](Pins& p) { p.expert.reset(); });
  note_number(notes, chunks, pins.chunks, [](Pins& p) { p.chunks.reset(); });
  if (pins.sequence_parallel)
    notes.push_back({sequence_parallel,
                     *pins.sequence_parallel ? "`sequence_parallel`" : "`no_sequence_parallel`",
                     [](Pins& p) { p.sequence_parallel.reset(); }});
  if (!pins.stages.empty())
    notes.push_back({stages, "`stages`", [](Pins& p) { p.stages.clear(); }});
  return notes;
}

// Which pins stand in the way: single ones first, else all of them, else none.
std::vector<Remedy> pins_to_drop(const Problem& problem, const Trial& trial) {
  const Pins& pins = trial.options.pins;
  const std::vector<PinNote> notes = notes_of(pins);
  std::vector<Remedy> enough;
  for (const PinNote& note : notes) {
    Pins fewer = pins;
    note.drop(fewer);
    if (is_solvable(problem, trial, fewer))
      enough.push_back({.without = {note.dimension}, .words = "without " + note.words});
  }
  if (!enough.empty() || notes.size() <= 1 || !is_solvable(problem, trial, {})) return enough;
  Remedy all;
  std::vector<std::string> words;
  for (const PinNote& note : notes) {
    all.without.push_back(note.dimension);
    words.push_back(note.words);
  }
  all.words = fmt::format("without {}", fmt::join(words, " "));
  return {all};
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
bool is_solvable_thriftily(const Problem& problem, const Trial& trial) {
  constexpr std::size_t kSmallest = 4;  // micro-batches
  SearchOptions options = trial.options;
  std::vector<int> counts = divisors_of(problem.job.global_batch);
  if (counts.size() > kSmallest) counts.erase(counts.begin(), counts.end() - kSmallest);
  options.promising_micro_batches = counts;
  return is_solvable(problem, {options, trial.session}, {.recompute = Recompute::full});
}

std::optional<Remedy> smaller_job(const Problem& problem, const Trial& trial) {
  if (problem.job.precision == Precision::pure_bf16) return std::nullopt;
  Problem lean = problem;
  lean.job.precision = Precision::pure_bf16;
  if (!is_solvable_thriftily(lean, trial)) return std::nullopt;
  return Remedy{.precision = Precision::pure_bf16, .words = "with `precision` pure-bf16"};
}

std::optional<Remedy> larger_machine(const Problem& problem, const Trial& trial) {
  constexpr int kMostDevices = 512;
  constexpr int kMostTimes = 64;
  constexpr double kRoom = 1.2;  // for activations and the reserve; with less it seldom fits
  for (int times = 2; times <= kMostTimes; times *= 2) {
    if (problem.cluster.device_count() * times > kMostDevices) return std::nullopt;
    Problem larger = problem;
    larger.cluster = repeated(problem.cluster, times);
    if (memory_of(larger.cluster) < kRoom * state_of(problem)) continue;
    if (is_solvable_thriftily(larger, trial))
      return Remedy{.cluster_times = times,
                    .words = fmt::format("with {} times this cluster ({})", times,
                                         counted(larger.cluster.device_count(), "device"))};
  }
  return std::nullopt;
}

std::string why(const Problem& problem, const Trial& trial, const SearchResult& result) {
  if (is_hopeless(problem))
    return fmt::format(
        "the weights, gradients and optimizer state of {} need {}, all devices together have {}",
        problem.model.name, in_words(state_of(problem)), in_words(memory_of(problem.cluster)));
  std::optional<RankedPlan> nearest = result.nearest;
  if (!nearest) nearest = nearest_plan(problem, trial);
  if (nearest)
    return fmt::format("in the nearest plan ({}) {}", short_description(nearest->plan),
                       shortage(problem, *nearest));
  return result.reason.empty() ? "no plan has the shape that the pins ask for" : result.reason;
}

}  // namespace

bool is_hopeless(const Problem& problem) { return memory_of(problem.cluster) < state_of(problem); }

NoPlan why_no_plan(const Problem& problem, const SearchOptions& options, const SearchResult& result,
                   const Session& session) {
  NoPlan out;
  out.cut_short = result.cut_short && !result.nearest;
  if (out.cut_short) return out;
  const Trial trial{options, session};
  out.hopeless = is_hopeless(problem);
  out.why = why(problem, trial, result);
  out.remedies = pins_to_drop(problem, trial);
  if (!out.remedies.empty()) return out;
  if (auto remedy = smaller_job(problem, trial)) out.remedies.push_back(std::move(*remedy));
  if (auto remedy = larger_machine(problem, trial)) out.remedies.push_back(std::move(*remedy));
  return out;
}

std::string in_words(const NoPlan& no_plan) {
  if (no_plan.cut_short)
    return "nothing found before the search was cut short; give it more `time_limit`";
  const std::string text = "nothing fits: " + no_plan.why;
  if (no_plan.remedies.empty())
    return text + (no_plan.hopeless
                       ? "; a smaller model or far more devices would help"
                       : "; a smaller model, a shorter `sequence` or far more devices would help");
  std::vector<std::string> helps;
  for (const Remedy& remedy : no_plan.remedies) helps.push_back(remedy.words);
  return text + fmt::format("; it fits {}", fmt::join(helps, ", or "));
}

}  // namespace plait
