#include "app/measured/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/measured/fitted_constants.h"
#include "app/request/ranked_plan_json.h"
#include "app/request/request_error.h"
#include "base/printable.h"
#include "io/format/json_writer.h"
#include "io/format/text_file.h"
#include "report/quantities.h"
#include "validation/published_runs.h"
#include "validation/validation.h"

namespace plait {
namespace {

// All rows are predicted again for every factor that is tried.
constexpr int kMostRows = 2000;

// log(predicted / measured) of the runs that have both, in their order.
std::vector<double> errors_of(const std::vector<MeasuredRun>& runs, int threads) {
  const std::vector<RunPrediction> predictions = predict_runs(runs, threads);
  std::vector<double> errors;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (predictions[i].made && runs[i].step)
      errors.push_back(std::log(predictions[i].step / *runs[i].step));
  return errors;
}

Catalogue scaled(Catalogue catalogue, const std::vector<OwnConstant>& constants,
                 const std::vector<double>& factors) {
  for (std::size_t c = 0; c < constants.size(); ++c) scale(constants[c], factors[c], catalogue);
  return catalogue;
}

bool is_changed(const CalibrateAnswer& answer, const std::string& owner, bool host) {
  for (std::size_t c = 0; c < answer.constants.size(); ++c)
    if (answer.constants[c].owner == owner && answer.calibration.factors[c] != 1 &&
        (answer.constants[c].kind == ConstantKind::host) == host)
      return true;
  return false;
}

std::string catalogue_text(const CalibrateAnswer& answer, const Catalogue& catalogue) {
  const std::string note =
      fmt::format("fitted to {} of {}", counted(answer.rows, "run"), answer.runs);
  std::vector<std::string> devices;
  for (const DeviceEntry& entry : catalogue.devices)
    if (is_changed(answer, entry.type.name, false))
      devices.push_back(fitted_device_json(entry, note));
  std::vector<std::string> frameworks;
  for (const FrameworkEntry& entry : catalogue.frameworks)
    if (is_changed(answer, entry.framework.name, true))
      frameworks.push_back(fitted_framework_json(entry.framework));
  return lay_out_json(JsonObject()
                          .number("plait_catalogue", 1)
                          .json("devices", json_list(devices))
                          .json("frameworks", json_list(frameworks))
                          .str());
}

bool is_last_tried(double factor) {
  constexpr double kRounding = 1e-9;
  return factor > kMostFactor - kRounding || factor < 1 / kMostFactor + kRounding;
}

// Sizes of logarithms as people read errors: 0.1 -> "10.5 %".
std::string error_in_words(double size) { return percent(std::expm1(size)); }

}  // namespace

CalibrateAnswer answer(const CalibrateRequest& request, const Session& session) {
  const Stopwatch watch;
  RunReading reading{.profile = request.profile};
  if (!request.catalogue.empty()) reading.catalogue = load_catalogue(request.catalogue);
  const std::string text = read_text_file(request.runs);
  const std::vector<MeasuredRun> runs = read_published_runs(request.runs, text, reading);
  CalibrateAnswer out;
  out.runs = request.runs;
  for (const MeasuredRun& run : runs) {
    if (run.problem && run.step)
      ++out.rows;
    else
      out.refused.push_back(fmt::format(
          "row {}: {}", run.id, run.refusal.empty() ? "its time is not stated" : run.refusal));
  }
  if (out.rows < 2)
    throw RequestError(
        "runs",
        fmt::format("needs two rows or more that state their time and can be predicted, has {}{}",
                    out.rows, out.refused.empty() ? "" : "; " + out.refused.front()));
  if (out.rows > kMostRows)
    throw RequestError("runs", fmt::format("has {} rows that can be predicted, and at most {} are "
                                           "taken: a handful will do",
                                           out.rows, kMostRows));
  out.constants = own_constants(runs);
  const ErrorsAt errors_at = [&](const std::vector<double>& factors) {
    RunReading changed = reading;
    changed.catalogue = scaled(reading.catalogue, out.constants, factors);
    return errors_of(read_published_runs(request.runs, text, changed), request.threads);
  };
  out.calibration = calibrate(static_cast<int>(out.constants.size()), errors_at, [&] {
    return session.stop.stop_requested() || watch.elapsed() >= request.time_limit;
  });
  out.interrupted = out.calibration.cut_short && session.stop.stop_requested();
  if (out.calibration.changed())
    out.catalogue =
        catalogue_text(out, scaled(reading.catalogue, out.constants, out.calibration.factors));
  return out;
}

std::string reason(const CalibrateAnswer& answer) {
  if (answer.calibration.changed()) return "";
  if (answer.calibration.cut_short)
    return fmt::format("no constant that was tried before {} makes the {} of {} better predicted",
                       answer.interrupted ? "the stop" : "the end of `time_limit`",
                       counted(answer.rows, "run"), answer.runs);
  return fmt::format(
      "no constant makes the {} of {} better predicted that it has not seen; the catalogue stays "
      "as it is",
      counted(answer.rows, "run"), answer.runs);
}

std::string as_text(const CalibrateAnswer& answer, const Style& style) {
  const Calibration& found = answer.calibration;
  Table table({{"constant", Align::left}, {"factor"}, {"left-out error"}, {"", Align::left}});
  table.row({"as it was", "", error_in_words(found.before), ""});
  for (const ConstantTrial& trial : found.trials)
    table.row({printable(in_words(answer.constants[trial.constant])),
               trial.kept ? fmt::format("{:.3g}", found.factors[trial.constant]) : "",
               error_in_words(trial.left_out), trial.kept ? "kept" : "not better"});
  std::string out = table.str(style) + "\n";
  out += paragraph(
      found.changed()
          ? fmt::format("{} were off by {} in the mean, and are by {} when each is predicted with "
                        "constants that have not seen it ({} when they have).",
                        counted(answer.rows, "run"), error_in_words(found.before),
                        error_in_words(found.left_out), error_in_words(found.in_sample))
          : reason(answer),
      style);
  for (const ConstantTrial& trial : found.trials)
    if (trial.kept && is_last_tried(found.factors[trial.constant]))
      out += paragraph(
          fmt::format("{:.3g} is as far as factors are tried. What is so far off is often not the "
                      "device: see whether the table says what ran (recompute, precision, batch).",
                      found.factors[trial.constant]),
          style, 2);
  if (found.changed() && found.cut_short)
    out += paragraph("Cut short: other constants may be worth a factor, too.", style, 2);
  for (const std::string& sentence : answer.refused)
    out += paragraph("Not used: " + printable(sentence) + ".", style, 2);
  return out;
}

std::string to_json(const CalibrateAnswer& answer) {
  const Calibration& found = answer.calibration;
  std::vector<std::string> constants;
  for (std::size_t c = 0; c < answer.constants.size(); ++c)
    constants.push_back(JsonObject()
                            .text("constant", in_words(answer.constants[c]))
                            .number("factor", found.factors[c])
                            .boolean("kept", found.factors[c] != 1)
                            .str());
  return lay_out_json(JsonObject()
                          .number("runs", answer.rows)
                          .number("error_before", std::expm1(found.before))
                          .number("error_left_out", std::expm1(found.left_out))
                          .number("error_in_sample", std::expm1(found.in_sample))
                          .json("constants", json_list(constants))
                          .boolean("cut_short", found.cut_short)
                          .json("not_used", sentences_json(answer.refused))
                          .str());
}

}  // namespace plait
