#include "app/measured/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/measured/fitted_constants.h"
#include "app/request/ranked_plan_json.h"
#include "io/format/csv.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "plan/describe.h"
#include "report/quantities.h"
#include "validation/run_kind.h"

namespace plait {
namespace {

RunReading reading_of(const ValidateRequest& request) {
  RunReading reading{.literal = request.literal, .profile = request.profile};
  if (!request.catalogue.empty()) reading.catalogue = load_catalogue(request.catalogue);
  if (!request.constants.empty()) apply_constants(request.constants, reading.catalogue);
  return reading;
}

std::string optional_percent(const std::optional<double>& value, bool with_sign = false) {
  if (!value) return "";
  return with_sign ? fmt::format("{:+.1f}", 100 * *value) : fmt::format("{:.1f}", 100 * *value);
}

std::string optional_number(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "";
}

std::string accuracy_json(const Accuracy& a, const std::string& key) {
  JsonObject object;
  object.text(key, a.name).number("rows", a.rows).number("predicted", a.predicted);
  object.number("refused", a.refused());
  JsonObject reasons;
  for (const auto& [reason, rows] : a.refusals) reasons.number(reason, rows);
  object.json("refusals", reasons.str()).number("timed", a.timed);
  object.json("mape", number_or_null(a.mape)).json("median_ape", number_or_null(a.median_ape));
  object.json("bias", number_or_null(a.bias)).text("worst_row", a.worst_row);
  object.json("worst_error", number_or_null(a.worst_error));
  object.json("spearman", number_or_null(a.spearman)).number("jobs", a.jobs);
  object.json("top1_regret", number_or_null(a.top1_regret));
  object.json("top1_regret_mean", number_or_null(a.top1_regret_mean));
  object.json("top5_regret", number_or_null(a.top5_regret));
  object.text("other", a.other).number("other_rows", a.with_other);
  object.json("other_mape", number_or_null(a.others_mape));
  object.json("mape_beside_other", number_or_null(a.mape_beside_other));
  object.number("memory_rows", a.with_memory).json("memory_mape", number_or_null(a.memory_mape));
  object.json("memory_bias", number_or_null(a.memory_bias));
  object.number("oom_right", a.failed_not_fitting).number("oom_missed", a.failed_fitting);
  object.number("oom_false", a.ran_not_fitting).number("oom_unstated", a.ran_unstated);
  JsonObject grades;
  for (const auto& [grade, mape] : a.mape_by_grade) grades.number(grade, mape);
  return object.json("mape_by_grade", grades.str()).str();
}

std::string joined(const std::vector<std::string>& sentences) {
  std::string out;
  for (const std::string& sentence : sentences) out += (out.empty() ? "" : "; ") + sentence;
  return out;
}

// "nodes experts": the properties that the run has.
std::string properties_of(const RunKind& kind) {
  std::string out;
  for (const RunProperty& property : kRunProperties)
    if (kind.*property.value) out += (out.empty() ? "" : " ") + std::string(property.name);
  return out;
}

}  // namespace

ValidateAnswer answer(const ValidateRequest& request) {
  const RunReading reading = reading_of(request);
  ValidateAnswer out;
  out.by = request.by;
  out.threads = request.threads;
  if (request.runs.empty()) {
    out.runs = shipped_runs(reading);
  } else {
    const std::string text = read_text_file(request.runs);
    out.runs = read_published_runs(request.runs, text, reading);
    out.unread = unread_columns(request.runs, text);
  }
  std::erase_if(out.runs, [&](const MeasuredRun& run) {
    const bool other_grade = !request.grades.empty() && !run.grade.empty() &&
                             request.grades.find(run.grade) == std::string::npos;
    return other_grade || (run.step && *run.step < request.least_step);
  });
  out.predictions = predict_runs(out.runs, request.threads);
  out.accuracy = accuracy_by(request.by, out.runs, out.predictions);
  return out;
}

std::string constants_json(const ValidateRequest& request) {
  return constants_json(reading_of(request).catalogue);
}

std::string as_text(const ValidateAnswer& answer, const Style& style) {
  const bool by_source = answer.by == RunGrouping::source;
  Table table({{by_source ? "source" : "device", Align::left},
               {"rows"},
               {"predicted", Align::right, 8},
               {"MAPE %"},
               {"others' %", Align::right, 4},
               {"median %", Align::right, 6},
               {"bias %", Align::right, 1},
               {"worst %", Align::right, 4},
               {"row", Align::right, 9},
               {"Spearman", Align::right, 3},
               {"jobs", Align::right, 5},
               {"top-1", Align::right, 2},
               {"top-5", Align::right, 5},
               {"memory %", Align::right, 1},
               {"OOM seen", Align::right, 7},
               {"false OOM", Align::right, 7}});
  for (const Accuracy& a : answer.accuracy) {
    const int failed = a.failed_fitting + a.failed_not_fitting;
    table.row({a.name, std::to_string(a.rows), std::to_string(a.predicted),
               optional_percent(a.mape), optional_percent(a.others_mape),
               optional_percent(a.median_ape), optional_percent(a.bias, true),
               optional_percent(a.worst_error, true), a.worst_row, optional_number(a.spearman),
               a.jobs > 0 ? std::to_string(a.jobs) : "", optional_number(a.top1_regret),
               optional_number(a.top5_regret), optional_percent(a.memory_mape),
               failed > 0 ? fmt::format("{}/{}", a.failed_not_fitting, failed) : "",
               a.ran_not_fitting > 0 ? std::to_string(a.ran_not_fitting) : ""});
  }
  std::string out = table.str(style);
  std::string refused;
  for (const Accuracy& a : answer.accuracy)
    for (const auto& [reason, rows] : a.refusals)
      refused += fmt::format("  {}: {}: {}\n", a.name, counted(rows, "row"), reason);
  if (!refused.empty()) out += "\n" + style.bold("Refused") + "\n" + refused;
  if (!answer.unread.empty())
    out += fmt::format("\nColumns that are not read: {}\n", fmt::join(answer.unread, ", "));
  return out + "\n" + worst_rows_text(answer, style);
}

std::string to_json(const ValidateAnswer& answer) {
  const bool by_source = answer.by == RunGrouping::source;
  std::vector<std::string> items;
  for (const Accuracy& a : answer.accuracy)
    items.push_back(accuracy_json(a, by_source ? "source" : "device"));
  std::vector<std::string> unread;
  for (const std::string& column : answer.unread) unread.push_back(json_text(column));
  return lay_out_json(JsonObject()
                          .json(by_source ? "sources" : "devices", json_list(items))
                          .json("unread_columns", json_list(unread))
                          .str());
}

std::string rows_csv(const ValidateAnswer& answer) {
  std::string out = csv_line({"row_id", "source_id", "grade", "device", "predicted_s", "measured_s",
                              "error", "predicted_GiB", "measured_GiB", "memory_error", "fits",
                              "failed", "refused", "plan", "assumed", "job", "framework", "kind"});
  for (std::size_t i = 0; i < answer.runs.size(); ++i) {
    const MeasuredRun& run = answer.runs[i];
    const RunPrediction& p = answer.predictions[i];
    const RunKind kind = run.problem ? kind_of(*run.problem, run.plan) : RunKind{};
    const auto number = [](bool known, double value) {
      return known ? fmt::format("{:.6g}", value) : std::string();
    };
    out += csv_line({run.id, run.source, run.grade, run.device, number(p.made, p.step.value),
                     number(run.step.has_value(), run.step.value_or(Seconds(0)).value),
                     number(p.made && run.step, run.step ? p.step / *run.step - 1 : 0),
                     number(p.made, p.memory.value / 0x1p30),
                     number(run.memory.has_value(), run.memory.value_or(Bytes(0)).value / 0x1p30),
                     number(p.made && run.memory, run.memory ? p.memory / *run.memory - 1 : 0),
                     !p.made  ? ""
                     : p.fits ? "1"
                              : "0",
                     run.failed ? "1" : "0", run.refusal, p.made ? describe(run.plan) : "",
                     joined(run.assumptions), run.job, run.problem ? kind.framework : "",
                     run.problem ? properties_of(kind) : ""});
  }
  return out;
}

}  // namespace plait
