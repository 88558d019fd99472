#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "cli/fitted_constants.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "io/format/csv.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "plan/describe.h"
#include "report/quantities.h"
#include "validation/published_runs.h"
#include "validation/validation.h"

namespace plait {
namespace {

struct ValidateArguments {
  std::string runs;
  RunGrouping by = RunGrouping::source;
  std::string rows;
  std::string profile;
  std::string grades;
  double least_step = 0;
  std::vector<std::string> catalogues;
  std::string constants;
  bool show_constants = false;
  bool literal = false;
  bool json = false;
};

std::string optional_percent(const std::optional<double>& value, bool with_sign = false) {
  if (!value) return "";
  return with_sign ? fmt::format("{:+.1f}", 100 * *value) : fmt::format("{:.1f}", 100 * *value);
}

std::string optional_number(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "";
}

std::string as_text(const std::vector<Accuracy>& all, const ValidateArguments& arguments) {
  const Style style = style_of(stdout);
  const bool by_source = arguments.by == RunGrouping::source;
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
  for (const Accuracy& a : all) {
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
  for (const Accuracy& a : all)
    for (const auto& [reason, rows] : a.refusals)
      refused += fmt::format("  {}: {}: {}\n", a.name, counted(rows, "row"), reason);
  if (!refused.empty()) out += "\n" + style.bold("Refused") + "\n" + refused;
  return out;
}

std::string optional_json(const std::optional<double>& value) {
  return value ? json_number(*value) : "null";
}

std::string accuracy_json(const Accuracy& a, const std::string& key) {
  JsonObject object;
  object.text(key, a.name).number("rows", a.rows).number("predicted", a.predicted);
  object.number("refused", a.refused());
  JsonObject reasons;
  for (const auto& [reason, rows] : a.refusals) reasons.number(reason, rows);
  object.json("refusals", reasons.str()).number("timed", a.timed);
  object.json("mape", optional_json(a.mape)).json("median_ape", optional_json(a.median_ape));
  object.json("bias", optional_json(a.bias)).text("worst_row", a.worst_row);
  object.json("worst_error", optional_json(a.worst_error));
  object.json("spearman", optional_json(a.spearman)).number("jobs", a.jobs);
  object.json("top1_regret", optional_json(a.top1_regret));
  object.json("top1_regret_mean", optional_json(a.top1_regret_mean));
  object.json("top5_regret", optional_json(a.top5_regret));
  object.text("other", a.other).number("other_rows", a.with_other);
  object.json("other_mape", optional_json(a.others_mape));
  object.json("mape_beside_other", optional_json(a.mape_beside_other));
  object.number("memory_rows", a.with_memory).json("memory_mape", optional_json(a.memory_mape));
  object.json("memory_bias", optional_json(a.memory_bias));
  object.number("oom_right", a.failed_not_fitting).number("oom_missed", a.failed_fitting);
  object.number("oom_false", a.ran_not_fitting);
  JsonObject grades;
  for (const auto& [grade, mape] : a.mape_by_grade) grades.number(grade, mape);
  return object.json("mape_by_grade", grades.str()).str();
}

std::string as_json(const std::vector<Accuracy>& all, const ValidateArguments& arguments) {
  const bool by_source = arguments.by == RunGrouping::source;
  std::vector<std::string> items;
  for (const Accuracy& a : all) items.push_back(accuracy_json(a, by_source ? "source" : "device"));
  return lay_out_json(JsonObject().json(by_source ? "sources" : "devices", json_list(items)).str());
}

std::string joined(const std::vector<std::string>& sentences) {
  std::string out;
  for (const std::string& sentence : sentences) out += (out.empty() ? "" : "; ") + sentence;
  return out;
}

std::string rows_csv(const std::vector<MeasuredRun>& runs,
                     const std::vector<RunPrediction>& predictions) {
  std::string out = csv_line({"row_id", "source_id", "grade", "device", "predicted_s", "measured_s",
                              "error", "predicted_GiB", "measured_GiB", "memory_error", "fits",
                              "failed", "refused", "plan", "assumed"});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const MeasuredRun& run = runs[i];
    const RunPrediction& p = predictions[i];
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
                     joined(run.assumptions)});
  }
  return out;
}

int validate(const ValidateArguments& arguments) {
  RunReading reading{.literal = arguments.literal, .profile = arguments.profile};
  if (!arguments.catalogues.empty()) reading.catalogue = load_catalogue(arguments.catalogues);
  if (!arguments.constants.empty()) apply_constants(arguments.constants, reading.catalogue);
  if (arguments.show_constants) {
    print(constants_json(reading.catalogue));
    return kDone;
  }
  std::vector<MeasuredRun> runs =
      arguments.runs.empty()
          ? shipped_runs(reading)
          : read_published_runs(arguments.runs, read_text_file(arguments.runs), reading);
  std::erase_if(runs, [&](const MeasuredRun& run) {
    const bool other_grade = !arguments.grades.empty() && !run.grade.empty() &&
                             arguments.grades.find(run.grade) == std::string::npos;
    return other_grade || (run.step && run.step->value < arguments.least_step);
  });
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
  const std::vector<RunPrediction> predictions = predict_runs(runs, threads);
  if (!arguments.rows.empty()) write_text_file(arguments.rows, rows_csv(runs, predictions));
  const std::vector<Accuracy> all = accuracy_by(arguments.by, runs, predictions);
  print(arguments.json ? as_json(all, arguments) : as_text(all, arguments));
  return kDone;
}

Setter into_grouping(RunGrouping& into) {
  return [&into](const std::string& flag, const std::string& text) {
    static const std::vector<std::string_view> kNames{"source", "gpu"};
    if (text != "source" && text != "gpu") refuse_choice(flag, text, kNames);
    into = text == "gpu" ? RunGrouping::device : RunGrouping::source;
  };
}

}  // namespace

Command validate_command() {
  const auto arguments = std::make_shared<ValidateArguments>();
  ValidateArguments& a = *arguments;
  Command command;
  command.groups = {
      {"Flags",
       {{.name = "--runs",
         .value = "FILE",
         .help = "CSV of measured runs (default: a small set that is built in)",
         .set = into_text(a.runs)},
        {.name = "--by",
         .value = "WHAT",
         .help = "one line for each source or for each gpu (default: source)",
         .set = into_grouping(a.by),
         .choices = {"source", "gpu"}},
        {.name = "--grade",
         .value = "LETTERS",
         .help = "only rows of these grades: A, AB (default: all)",
         .set = into_text(a.grades)},
        {.name = "--least-step",
         .value = "TIME",
         .help = "leave out steps shorter than this: 50ms",
         .set = [&a](const std::string& flag,
                     const std::string& text) { a.least_step = parse_seconds(flag, text); }},
        {.name = "--literal",
         .value = "",
         .help = "take every column as it stands, without the known corrections",
         .set = into_switch(a.literal)},
        {.name = "--profile",
         .value = "PATH",
         .help = "measurements, used for the rows whose model and device they cover",
         .set = into_text(a.profile)},
        {.name = "--catalogue",
         .value = "FILE",
         .help = "more devices, or other constants for known ones",
         .set = [&a](const std::string&, const std::string& text) { a.catalogues.push_back(text); },
         .repeats = true},
        {.name = "--rows",
         .value = "FILE",
         .help = "write the prediction of every row there, as CSV",
         .set = into_text(a.rows)},
        {.name = "--json", .value = "", .help = "print JSON", .set = into_switch(a.json)}}},
      // For scripts/calibrate.
      {"",
       {{.name = "--constants",
         .value = "FILE",
         .help = "constants of the analytic model to try",
         .set = into_text(a.constants)},
        {.name = "--show-constants",
         .value = "",
         .help = "print the constants of the analytic model",
         .set = into_switch(a.show_constants)}}}};
  command.run = [arguments] { return validate(*arguments); };
  return command;
}

}  // namespace plait
