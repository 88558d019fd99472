#include "app/plan/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cost/engine.h"
#include "cost/framework/framework.h"
#include "cost/op/adapters.h"
#include "io/cluster/catalogue.h"
#include "plan/names.h"
#include "report/plan_tables.h"
#include "report/quantities.h"
#include "search/space/space.h"

namespace plait {
namespace {

using Clock = std::chrono::steady_clock;

// How advice is searched for: as the user searched, until the session is asked to stop or all
// searches for it together have taken as long as the user gives a search.
struct Trial {
  const SearchOptions& options;
  const Session& session;
  Clock::time_point end;

  Seconds left() const {
    return Seconds(std::chrono::duration<double>(end - Clock::now()).count());
  }
};

Trial trial_of(const SearchOptions& options, const Session& session) {
  constexpr double kLongest = 1e6;  // seconds
  const std::chrono::duration<double> limit(std::min(options.time_limit.value, kLongest));
  return {options, session, Clock::now() + std::chrono::duration_cast<Clock::duration>(limit)};
}

const Planner& usual_planner() { return planners().front(); }

// Bytes that all devices together must hold, and can.
Bytes state_of(const Problem& problem, const Pins& pins) {
  const StateBytes each = state_bytes(problem.job);
  const double trained = each.gradient + each.optimizer * (1 - pins.offload.value_or(0));
  return Bytes(each.weight * stored_parameters(problem.model, problem.job) +
               trained * trained_parameters(problem.model, problem.job));
}

// Together, up to the limit of the job; the reserve may be broken, which makes it a bound.
Bytes memory_of(const Problem& problem) {
  const Cluster& cluster = problem.cluster;
  const Bytes limit = problem.job.memory_limit;
  Bytes memory;
  for (const Device& device : cluster.devices) {
    const Bytes own = cluster.device_types[device.type].memory;
    memory += limit > Bytes(0) ? std::min(limit, own) : own;
  }
  return memory;
}

// Some plan of the problem under these pins: the first that turns up is enough.
std::optional<Plan> any_plan(const Problem& problem, const Trial& trial, const Pins& pins) {
  constexpr Seconds kPatience(2);
  const Seconds left = trial.left();
  if (trial.session.stop.stop_requested() || left <= Seconds(0)) return std::nullopt;
  if (is_hopeless(problem, pins) || violation_of(problem, pins, trial.options.target))
    return std::nullopt;
  SearchOptions options = trial.options;
  options.pins = pins;
  options.keep = 1;
  options.time_limit = std::min(left, kPatience);
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

// Stages that recompute as many layers as fit in more memory than there is recompute all of them.
void recompute_throughout(Plan& plan) {
  for (Stage& stage : plan.stages) {
    Recompute most = Recompute::none;
    for (const Span& span : stage.spans) most = std::max(most, span.recompute);
    for (Span& span : stage.spans) span.recompute = most;
    join_alike(stage);
  }
}

std::optional<RankedPlan> nearest_of(const Problem& problem, const Trial& trial,
                                     std::optional<double> within = std::nullopt) {
  constexpr double kMost = 4096;
  const double usual = problem.cluster.device_count() <= 16 ? 1.1 : 1.5;
  const double close_enough = within.value_or(usual);
  const auto with_memory = [&](double factor) {
    Problem larger = problem;
    for (DeviceType& type : larger.cluster.device_types) type.memory = type.memory * factor;
    larger.job.memory_limit = larger.job.memory_limit * factor;
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
  recompute_throughout(*nearest);
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
  note_number(notes, recompute_layers, pins.recompute_layers,
              [](Pins& p) { p.recompute_layers.reset(); });
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
  note_number(notes, offload, pins.offload, [](Pins& p) { p.offload.reset(); });
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

// Numbers of micro-batches that are small: the largest ones, and those with one sample for each of
// as many replicas as the devices can be, up to all of them (FSDP has no others).
std::vector<int> counts_of_small_micro_batches(const Problem& problem) {
  constexpr std::size_t kSmallest = 4;
  const int batch = problem.job.global_batch;
  std::vector<int> counts = divisors_of(batch);
  if (counts.size() > kSmallest) counts.erase(counts.begin(), counts.end() - kSmallest);
  for (const int replicas : divisors_of(problem.cluster.device_count()))
    if (batch % replicas == 0) counts.push_back(batch / replicas);
  std::ranges::sort(counts);
  counts.erase(std::ranges::unique(counts).begin(), counts.end());
  return counts;
}

// Where memory is short, small micro-batches and full recomputation are what fits if anything does.
bool is_solvable_thriftily(const Problem& problem, const Trial& trial, Pins pins = {}) {
  SearchOptions options = trial.options;
  if (!pins.micro_batches && !pins.micro_batch)
    options.promising_micro_batches = counts_of_small_micro_batches(problem);
  if (!pins.recompute && !pins.recompute_layers) pins.recompute = Recompute::full;
  return is_solvable(problem, {options, trial.session, trial.end}, pins);
}

std::optional<Remedy> host_memory(const Problem& problem, const Trial& trial) {
  if (problem.job.adapters || trial.options.pins.offload) return std::nullopt;
  if (!is_solvable_thriftily(problem, trial, {.offload = 1})) return std::nullopt;
  return Remedy{.offload = 1, .words = "with `offload` 1"};
}

std::optional<Remedy> smaller_job(const Problem& problem, const Trial& trial) {
  if (problem.job.precision == Precision::pure_bf16) return std::nullopt;
  Problem lean = problem;
  lean.job.precision = Precision::pure_bf16;
  if (!is_solvable_thriftily(lean, trial)) return std::nullopt;
  return Remedy{.precision = Precision::pure_bf16, .words = "with `precision` pure-bf16"};
}

// Adapters beside weights in 4 bits, as PyTorch runs them.
std::optional<Remedy> four_bits(const Problem& problem, const Trial& trial) {
  const Job& job = problem.job;
  if (job.four_bit_weights || !job.adapters || job.adapter_rank == 0) return std::nullopt;
  Problem lean = problem;
  lean.job.four_bit_weights = true;
  lean.job.framework = find_framework(builtin_catalogue(), "fsdp", "framework");
  SearchOptions options = trial.options;
  options.target = *target_named(lean.job.framework.target);
  if (!is_solvable_thriftily(lean, {options, trial.session, trial.end})) return std::nullopt;
  return Remedy{.words = fmt::format("with `qlora` {}", job.adapter_rank)};
}

// The fewest clusters with which a plan is found: doubled until one is, then halved between. With a
// sample for every device where `with_samples`: too few samples keep devices from sharing states.
std::optional<Remedy> larger_machine(const Problem& problem, const Trial& trial,
                                     bool with_samples) {
  constexpr int kMostDevices = 512;
  constexpr int kMostTimes = 64;
  constexpr double kRoom = 1.06;  // for the reserve and a little more
  const auto fits = [&](int times) {
    Problem larger = problem;
    larger.cluster = repeated(problem.cluster, times);
    if (with_samples)
      larger.job.global_batch = std::max(problem.job.global_batch, larger.cluster.device_count());
    return memory_of(larger) >= kRoom * state_of(problem, {}) &&
           is_solvable_thriftily(larger, trial);
  };
  int enough = 2;
  while (!fits(enough)) {
    enough *= 2;
    if (enough > kMostTimes || problem.cluster.device_count() * enough > kMostDevices)
      return std::nullopt;
  }
  for (int few = enough / 2; enough - few > 1;) {
    const int middle = (few + enough) / 2;
    (fits(middle) ? enough : few) = middle;
  }
  const int devices = problem.cluster.device_count() * enough;
  Remedy found{
      .cluster_times = enough,
      .words = fmt::format("with {} times this cluster ({})", enough, counted(devices, "GPU"))};
  if (with_samples)
    found.words +=
        fmt::format(" and `global_batch` {}", std::max(problem.job.global_batch, devices));
  return found;
}

std::string why(const Problem& problem, const Pins& pins, const SearchResult& result,
                const std::optional<RankedPlan>& nearest) {
  if (is_hopeless(problem, pins))
    return fmt::format(
        "weights, gradients and optimizer state of {} need {}, and all devices together have {}{}: "
        "{} too little",
        problem.model.name, in_words(state_of(problem, pins)), in_words(memory_of(problem)),
        problem.job.memory_limit > Bytes(0) ? " under the limit" : "",
        in_words(state_of(problem, pins) - memory_of(problem)));
  if (nearest)
    return fmt::format("in the nearest plan ({}) {}", short_description(nearest->plan),
                       shortage(problem, *nearest));
  return result.reason.empty() ? "no plan has the shape that the pins ask for" : result.reason;
}

}  // namespace

bool is_hopeless(const Problem& problem, const Pins& pins) {
  return memory_of(problem) < state_of(problem, pins);
}

std::optional<RankedPlan> nearest_plan(const Problem& problem, const SearchOptions& options,
                                       const Session& session) {
  constexpr double kWithin = 1.01;
  return nearest_of(problem, trial_of(options, session), kWithin);
}

bool fits_thriftily(const Problem& problem, const SearchOptions& options, const Session& session) {
  return is_solvable_thriftily(problem, trial_of(options, session), options.pins);
}

NoPlan why_no_plan(const Problem& problem, const SearchOptions& options, const SearchResult& result,
                   const Session& session) {
  NoPlan out;
  out.cut_short = result.cut_short;
  if (out.cut_short) {
    out.nearest = result.nearest;
    if (out.nearest) out.why = why(problem, options.pins, result, out.nearest);
    return out;
  }
  const Trial trial = trial_of(options, session);
  out.hopeless = is_hopeless(problem, options.pins);
  out.nearest = result.nearest;
  // Of a hopeless problem it only shows what takes the memory, which is not worth a long search.
  constexpr int kMostUnits = 500;
  constexpr int kMostDevices = 256;
  const bool quick =
      problem.model.unit_count() <= kMostUnits && problem.cluster.device_count() <= kMostDevices;
  if (!out.nearest && (quick || !out.hopeless)) out.nearest = nearest_of(problem, trial);
  out.why = why(problem, options.pins, result, out.nearest);
  out.remedies = pins_to_drop(problem, trial);
  if (!out.remedies.empty()) return out;
  if (auto remedy = host_memory(problem, trial)) out.remedies.push_back(std::move(*remedy));
  if (auto remedy = four_bits(problem, trial)) out.remedies.push_back(std::move(*remedy));
  if (auto remedy = smaller_job(problem, trial)) out.remedies.push_back(std::move(*remedy));
  auto larger = larger_machine(problem, trial, false);
  if (!larger && out.remedies.empty() && problem.job.global_batch < kMostDevices)
    larger = larger_machine(problem, trial, true);
  if (larger) out.remedies.push_back(std::move(*larger));
  out.hurried = trial.left() <= Seconds(0);
  return out;
}

std::string in_words(const NoPlan& no_plan) {
  if (no_plan.cut_short)
    return "nothing found before the search was cut short; give it more `time_limit`" +
           (no_plan.why.empty() ? "" : "; " + no_plan.why);
  const std::string text = "nothing fits: " + no_plan.why;
  if (no_plan.remedies.empty() && no_plan.hurried)
    return text + "; there was no time to try what would help: give it more `time_limit`";
  if (no_plan.remedies.empty())
    return text + (no_plan.hopeless
                       ? "; a smaller model or far more devices would help"
                       : "; a smaller model, a shorter `sequence` or far more devices would help");
  std::vector<std::string> helps;
  for (const Remedy& remedy : no_plan.remedies) helps.push_back(remedy.words);
  return text + fmt::format("; it fits {}", fmt::join(helps, ", or "));
}

}  // namespace plait
