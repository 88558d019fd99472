#include "app/plan/remedies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cost/framework/framework.h"
#include "cost/layer/measured.h"
#include "cost/op/adapters.h"
#include "io/cluster/catalogue.h"
#include "plan/names.h"
#include "report/quantities.h"

namespace plait {
namespace {

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

std::string without_all(const std::vector<PinNote>& notes) {
  std::vector<std::string> words;
  for (const PinNote& note : notes) words.push_back(note.words);
  return fmt::format("without {}", fmt::join(words, " "));
}

Pins without(Pins pins, const std::vector<PinNote>& notes) {
  for (const PinNote& note : notes) note.drop(pins);
  return pins;
}

// Which pins stand in the way: single ones first, else all of them, else none.
std::vector<Remedy> pins_to_drop(const Problem& problem, const Trial& trial,
                                 const std::vector<PinNote>& notes) {
  std::vector<Remedy> enough;
  for (const PinNote& note : notes)
    if (is_solvable(problem, trial, without(trial.options.pins, {note})))
      enough.push_back({.without = {note.dimension}, .words = "without " + note.words});
  if (!enough.empty() || notes.size() <= 1) return enough;
  if (!is_solvable(problem, trial, without(trial.options.pins, notes))) return enough;
  Remedy all{.words = without_all(notes)};
  for (const PinNote& note : notes) all.without.push_back(note.dimension);
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

std::optional<Remedy> host_memory(const Problem& problem, const Trial& trial, Pins pins) {
  if (problem.job.adapters || pins.offload) return std::nullopt;
  pins.offload = 1;
  if (!is_solvable_thriftily(problem, trial, pins)) return std::nullopt;
  return Remedy{.offload = 1, .words = "with `offload` 1"};
}

std::optional<Remedy> smaller_job(const Problem& problem, const Trial& trial, const Pins& pins) {
  if (problem.job.precision == Precision::pure_bf16) return std::nullopt;
  // What was measured alone was measured in one precision.
  if (std::ranges::any_of(problem.model.kinds, is_only_measured)) return std::nullopt;
  Problem lean = problem;
  lean.job.precision = Precision::pure_bf16;
  if (!is_solvable_thriftily(lean, trial, pins)) return std::nullopt;
  return Remedy{.precision = Precision::pure_bf16, .words = "with `precision` pure-bf16"};
}

// The same plans by another framework; nothing where that cannot be.
bool is_solvable_by(std::string_view framework, Problem problem, Trial trial, const Pins& pins) {
  problem.job.framework = find_framework(builtin_catalogue(), framework, "framework");
  trial.options.target = *target_named(problem.job.framework.target);
  return !why_not(trial.options.target, problem.job) && is_solvable_thriftily(problem, trial, pins);
}

// Adapters beside weights in 4 bits, as PyTorch runs them; programs that keep none are replaced.
std::optional<Remedy> four_bits(const Problem& problem, const Trial& trial, const Pins& pins) {
  const Job& job = problem.job;
  if (job.four_bit_weights || !job.adapters || job.adapter_rank == 0) return std::nullopt;
  Problem lean = problem;
  lean.job.four_bit_weights = true;
  if (!is_solvable_by("fsdp", lean, trial, pins)) return std::nullopt;
  const bool replaced = why_not(trial.options.target, lean.job).has_value();
  return Remedy{.words = fmt::format("with {}`qlora` {}", replaced ? "`framework` fsdp and " : "",
                                     job.adapter_rank)};
}

// What people do who tune a network that is too large for what they have.
std::optional<Remedy> adapters_alone(const Problem& problem, const Trial& trial, const Pins& pins) {
  constexpr int kUsualRank = 16;
  if (problem.job.adapters || pins.offload.value_or(0) > 0 ||
      trained_parameters(problem.model, problem.job) <
          stored_parameters(problem.model, problem.job))
    return std::nullopt;
  Problem lean = problem;
  lean.job.adapters = true;
  lean.job.adapter_rank = kUsualRank;
  // Who names no program gets PyTorch's with adapters.
  const Framework usual = find_framework(builtin_catalogue(), "", "framework");
  const bool is_usual = trial.options.target.name == usual.target;
  if (!why_not(trial.options.target, lean.job) && is_solvable_thriftily(lean, trial, pins) &&
      (!is_usual || is_solvable_by("fsdp", lean, trial, pins)))
    return Remedy{.words = fmt::format("with `lora` {}, which trains adapters alone", kUsualRank)};
  std::optional<Remedy> four = four_bits(lean, trial, pins);
  if (four) four->words += ", which trains adapters alone";
  return four;
}

// The default's program cuts sequences, layers and products, where another cuts states alone.
std::optional<Remedy> other_program(const Problem& problem, const Trial& trial, const Pins& pins) {
  const Framework usual = find_framework(builtin_catalogue(), "", "framework");
  const std::string_view target = trial.options.target.name;
  if (target == "any" || target == usual.target) return std::nullopt;
  if (!is_solvable_by(usual.name, problem, trial, pins)) return std::nullopt;
  return Remedy{.words = fmt::format("with `framework` {}", usual.name)};
}

constexpr int kLargestCluster = 512;  // devices, of one that is tried instead

// The fewest clusters with which a plan is found: doubled until one is, then halved between. With a
// sample for every device where `with_samples`: too few samples keep devices from sharing states.
std::optional<Remedy> larger_machine(const Problem& problem, const Trial& trial, const Pins& pins,
                                     bool with_samples) {
  constexpr int kMostTimes = 64;
  constexpr double kRoom = 1.06;  // for the reserve and a little more
  const auto fits = [&](int times) {
    Problem larger = problem;
    larger.cluster = repeated(problem.cluster, times);
    if (with_samples)
      larger.job.global_batch = std::max(problem.job.global_batch, larger.cluster.device_count());
    return memory_of(larger) >= kRoom * state_of(problem, pins) &&
           is_solvable_thriftily(larger, trial, pins);
  };
  int enough = 2;
  while (!fits(enough)) {
    enough *= 2;
    if (enough > kMostTimes || problem.cluster.device_count() * enough > kLargestCluster)
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

// What would help under these pins: what changes nothing in the training first.
std::vector<Remedy> changes(const Problem& problem, const Trial& trial, const Pins& pins) {
  std::vector<Remedy> found;
  const auto add = [&](std::optional<Remedy> remedy) {
    if (remedy) found.push_back(*std::move(remedy));
  };
  add(host_memory(problem, trial, pins));
  add(four_bits(problem, trial, pins));
  add(smaller_job(problem, trial, pins));
  if (found.empty()) add(other_program(problem, trial, pins));
  auto larger = larger_machine(problem, trial, pins, false);
  if (!larger && found.empty() && problem.job.global_batch < kLargestCluster / 2)
    larger = larger_machine(problem, trial, pins, true);
  if (found.empty()) add(adapters_alone(problem, trial, pins));
  add(std::move(larger));
  return found;
}

}  // namespace

std::vector<Remedy> remedies_for(const Problem& problem, const Trial& trial) {
  const Pins& pins = trial.options.pins;
  const std::vector<PinNote> notes = notes_of(pins);
  std::vector<Remedy> found = pins_to_drop(problem, trial, notes);
  if (!found.empty()) return found;
  found = changes(problem, trial, pins);
  if (!found.empty() || notes.empty()) return found;
  found = changes(problem, trial, without(pins, notes));
  for (Remedy& remedy : found) {
    for (const PinNote& note : notes) remedy.without.push_back(note.dimension);
    remedy.words += " and " + without_all(notes);
  }
  return found;
}

bool tried_larger_machines(const Problem& problem) {
  return 2 * problem.cluster.device_count() <= kLargestCluster;
}

}  // namespace plait
