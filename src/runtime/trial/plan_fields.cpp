#include "runtime/trial/plan_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "io/format/json_reader.h"
#include "plan/describe.h"
#include "plan/names.h"
#include "report/summary.h"
#include "runtime/trial/shell_words.h"

namespace plait::runtime {
namespace {

// Said once when all stages say the same, and else by stage; inside a stage, spans that differ are
// joined by "+", as describe() does it.
std::string by_stage(const Plan& plan, const std::function<std::string(const Span&)>& value) {
  std::vector<std::string> stages;
  for (const Stage& stage : plan.stages) {
    std::vector<std::string> spans;
    for (const Span& span : stage.spans) spans.push_back(value(span));
    const bool same = std::all_of(spans.begin(), spans.end(),
                                  [&](const std::string& s) { return s == spans.front(); });
    stages.push_back(same ? spans.front() : fmt::format("{}", fmt::join(spans, "+")));
  }
  const bool same = std::all_of(stages.begin(), stages.end(),
                                [&](const std::string& s) { return s == stages.front(); });
  return same ? stages.front() : fmt::format("{}", fmt::join(stages, ","));
}

std::string micro_batch_of(const Plan& plan, int samples) {
  std::vector<std::string> stages;
  for (const Stage& stage : plan.stages)
    stages.push_back(stage.shares.empty() ? by_stage(Plan{.stages = {stage}},
                                                     [&](const Span& span) {
                                                       return std::to_string(samples / span.data);
                                                     })
                                          : share_runs(stage.shares));
  const bool same = std::all_of(stages.begin(), stages.end(),
                                [&](const std::string& s) { return s == stages.front(); });
  return same ? stages.front() : fmt::format("{}", fmt::join(stages, ","));
}

std::string counts_by_stage(const Plan& plan, const std::function<bool(int unit)>& counts) {
  std::vector<int> stages;
  for (const Stage& stage : plan.stages) {
    int count = 0;
    for (const Span& span : stage.spans)
      for (int unit = span.units.begin; unit < span.units.end; ++unit) count += counts(unit);
    stages.push_back(count);
  }
  return fmt::format("{}", fmt::join(stages, ","));
}

// The value of a field as it can stand after `before`.
std::string as_word(const PlanFields::value_type& field, const std::string& before) {
  const std::string& name = field.first;
  const std::string& value = field.second;
  if (!value.empty() && is_plain_word(value)) return value;
  const bool nested = shell_state_after(before) == ShellState::nested;
  // Blanks in what the user or plait itself has named do no harm inside quotes.
  std::string others = value;
  std::erase_if(others, [&](char c) { return c == ' ' || (c == '|' && name == "describe"); });
  if (nested && (name == "plan" || name == "describe") && is_plain_word(others)) return value;
  const bool one_line = std::none_of(value.begin(), value.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (one_line && !nested) return shell_quoted(value);
  throw InputError(
      "`launch`",
      fmt::format("{{{}}} is '{}', which the shell could take for more than a word inside quotes, "
                  "$(...), `...`, a here-document or a comment: write \"${}\" there, or {{{}}} "
                  "outside of them, where plait quotes it",
                  name, printable(value), variable_of(name), name));
}

}  // namespace

PlanFields plan_fields(const Problem& problem, const Plan& plan, const std::string& plan_path) {
  const Model& model = problem.model;
  std::vector<DeviceId> devices;
  std::set<int> nodes;
  for (const Stage& stage : plan.stages)
    for (const DeviceId device : stage.devices) {
      devices.push_back(device);
      nodes.insert(problem.cluster.device(device).node);
    }
  std::sort(devices.begin(), devices.end());
  const auto text = [](auto value) { return std::to_string(value); };
  const auto layers = [&](int unit) { return is_layer(model.unit(unit)); };
  return {
      {"plan", plan_path},
      {"describe", describe(plan)},
      {"tp", by_stage(plan, [&](const Span& span) { return text(span.tensor); })},
      {"pp", text(plan.stage_count())},
      {"dp", by_stage(plan, [&](const Span& span) { return text(span.data); })},
      {"cp", text(plan.context)},
      {"ep", text(plan.expert)},
      {"micro_batch", micro_batch_of(plan, problem.job.global_batch / plan.micro_batches)},
      {"micro_batches", text(plan.micro_batches)},
      {"global_batch", text(problem.job.global_batch)},
      {"layers", text(layer_count(model))},
      {"layers_per_stage", counts_by_stage(plan, layers)},
      {"units_per_stage", counts_by_stage(plan, [](int) { return true; })},
      {"schedule", std::string(name_of(plan.schedule))},
      {"chunks", text(chunk_count(plan.stages.front()))},
      {"zero", std::string(name_of(plan.zero))},
      {"sp", plan.sequence_parallel ? "1" : "0"},
      {"recompute",
       by_stage(plan, [](const Span& span) { return std::string(name_of(span.recompute)); })},
      {"seq", text(model.sequence_length)},
      {"model", model.name},
      {"precision", std::string(name_of(problem.job.precision))},
      {"world", text(devices.size())},
      {"nodes", text(nodes.size())},
      {"devices", device_ranges(devices)},
  };
}

std::string with_fields(const std::string& command, const PlanFields& fields) {
  std::string out;
  std::vector<std::string_view> names;
  for (const auto& [name, value] : fields) names.push_back(name);
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if ((c == '{' || c == '}') && i + 1 < command.size() && command[i + 1] == c) {
      out += c;
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < command.size() &&
           (std::islower(static_cast<unsigned char>(command[end])) != 0 || command[end] == '_'))
      ++end;
    const bool shells = i > 0 && command[i - 1] == '$';
    if (c != '{' || shells || end == i + 1 || end == command.size() || command[end] != '}') {
      out += c;
      continue;
    }
    const std::string name = command.substr(i + 1, end - i - 1);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw InputError("`launch`",
                       fmt::format("{{{}}} is not a field of a plan{}; write {{{{{}}}}} "
                                   "for the braces themselves",
                                   name, suggestion(name, names), name));
    out += as_word(fields[static_cast<std::size_t>(found - names.begin())], out);
    i = end;
  }
  return out;
}

std::string train_command(const std::string& program, int steps, const std::string& more) {
  return fmt::format("{} train \"$PLAIT_PLAN\" --local {{world}} --steps {} {}",
                     shell_quoted(program), steps, more);
}

std::string variable_of(const std::string& field) {
  std::string name = "PLAIT_" + field;
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace plait::runtime
