#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "app/measured/validate.h"
#include "io/plan/plan_json.h"
#include "runtime/trial/shell_words.h"
#include "validation/explanations.h"

namespace plait {
namespace {

constexpr std::size_t kWorstRows = 8;

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}", 100 * *value) : "";
}

std::string signed_percent(const std::optional<double>& value) {
  return value ? fmt::format("{:+.1f}", 100 * *value) : "";
}

double error_of(const ValidateAnswer& answer, std::size_t i) {
  return answer.predictions[i].step / *answer.runs[i].step - 1;
}

// The timed rows, those furthest off first, and at most one of a source in turn.
std::vector<std::size_t> worst_rows(const ValidateAnswer& answer) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < answer.runs.size(); ++i)
    if (answer.predictions[i].made && answer.runs[i].step) rows.push_back(i);
  std::ranges::stable_sort(rows, [&](std::size_t a, std::size_t b) {
    return std::abs(std::log1p(error_of(answer, a))) > std::abs(std::log1p(error_of(answer, b)));
  });
  if (rows.size() > kWorstRows) rows.resize(kWorstRows);
  return rows;
}

// "compute x1.4, data x3.1": each alone would make the prediction right.
std::string what_would_change(const RunPrediction& prediction, Seconds measured) {
  std::string out;
  for (const StepTerm& term : kStepTerms)
    if (const auto factor = needed_factor(prediction.terms.*term.value, prediction.step, measured))
      out += fmt::format("{}{} x{:.2g}", out.empty() ? "" : ", ", term.name, *factor);
  return out;
}

std::string file_name(const std::string& text) {
  std::string out = text;
  for (char& c : out)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  return out;
}

// One for each row that is predicted. Rows of one name get numbers.
std::vector<std::string> plan_names(const ValidateAnswer& answer) {
  std::set<std::string> taken;
  std::map<std::string, int> copies;
  std::vector<std::string> names(answer.runs.size());
  for (std::size_t i = 0; i < answer.runs.size(); ++i) {
    if (!answer.predictions[i].made) continue;
    const std::string name = file_name(answer.runs[i].source + "-" + answer.runs[i].id);
    names[i] = name;
    while (!taken.insert(names[i]).second)
      names[i] = fmt::format("{}-{}", name, ++copies[name] + 1);
  }
  return names;
}

}  // namespace

std::string as_table(const ValidateAnswer& answer, const Style& style) {
  const bool by_source = answer.by == RunGrouping::source;
  Table table({{by_source ? "source" : "device", Align::left},
               {"rows"},
               {"time %"},
               {"bias %"},
               {"memory rows"},
               {"memory %"},
               {"ran, called out of memory"}});
  for (const Accuracy& a : answer.accuracy) {
    if (a.predicted == 0) continue;
    table.row({a.name, std::to_string(a.predicted), percent(a.mape), signed_percent(a.bias),
               a.with_memory > 0 ? std::to_string(a.with_memory) : "", percent(a.memory_mape),
               a.ran_not_fitting > 0 ? std::to_string(a.ran_not_fitting) : ""});
  }
  const MeanOverSources mean = mean_over(answer.accuracy);
  table.row({fmt::format("mean over {}", mean.sources), std::to_string(mean.rows),
             percent(mean.mape), "",
             mean.memory_sources > 0 ? fmt::format("mean over {}", mean.memory_sources) : "",
             percent(mean.memory_mape), std::to_string(mean.ran_not_fitting)});
  return table.str(style) + "\n" + worst_rows_text(answer, style);
}

std::string worst_rows_text(const ValidateAnswer& answer, const Style& style) {
  std::vector<RunPrediction> predictions = answer.predictions;
  tell_host_apart(answer.runs, predictions, answer.threads);
  Table worst({{"row", Align::left},
               {"predicted s", Align::right, 2},
               {"measured s", Align::right, 1},
               {"error %"},
               {"right if one changed", Align::left}});
  for (const std::size_t i : worst_rows(answer)) {
    const MeasuredRun& run = answer.runs[i];
    const RunPrediction& prediction = predictions[i];
    worst.row({run.source + " " + run.id, fmt::format("{:.4g}", prediction.step.value),
               fmt::format("{:.4g}", run.step->value), signed_percent(error_of(answer, i)),
               what_would_change(prediction, *run.step)});
  }
  std::string out = style.bold("Furthest off") + "\n" + worst.str(style);
  const std::vector<ErrorExplanation> found = explanations(answer.runs, predictions);
  if (found.empty()) return out;
  Table reasons({{"source", Align::left},
                 {"rows"},
                 {"all of it", Align::left},
                 {"time %"},
                 {"would be %", Align::right}});
  for (const ErrorExplanation& e : found)
    reasons.row({e.source, std::to_string(e.rows), fmt::format("{} x{:.2g}", e.term, e.factor),
                 percent(e.before), percent(e.after)});
  return out + "\n" + style.bold("One change for all rows of a source") +
         " (each row by the others)\n" + reasons.str(style);
}

void for_each_row_plan(const ValidateAnswer& answer,
                       const std::function<void(const RowPlan& plan)>& take) {
  const std::vector<std::string> names = plan_names(answer);
  for (std::size_t i = 0; i < answer.runs.size(); ++i)
    if (answer.predictions[i].made)
      take({names[i],
            plan_file_to_json(*answer.runs[i].problem, answer.runs[i].plan, std::nullopt, "")});
}

std::string row_commands(const ValidateAnswer& answer, const std::string& folder) {
  const std::vector<std::string> names = plan_names(answer);
  std::string out;
  for (std::size_t i = 0; i < answer.runs.size(); ++i)
    if (answer.predictions[i].made)
      out += fmt::format("plait estimate {}   # step_s {:.6g}\n",
                         runtime::shell_quoted(folder + "/" + names[i] + ".json"),
                         answer.predictions[i].step.value);
  return out;
}

}  // namespace plait
