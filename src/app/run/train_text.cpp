#include <fmt/format.h>

#include <cmath>

#include "app/run/train.h"
#include "io/format/json_writer.h"
#include "report/quantities.h"

namespace plait {
namespace {

// The loss of a run that diverges is not a number.
std::string finite_or_null(double value) {
  return std::isfinite(value) ? json_number(value) : "null";
}

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values)
    text += fmt::format("{}{:.6g}", text.empty() ? "" : ", ", value);
  return "[" + text + "]";
}

double error_of(const TrainAnswer& answer) {
  return answer.predicted->value / answer.measured->value - 1;
}

}  // namespace

std::string to_json(const TrainStep& step) {
  const runtime::StepReport& report = step.report;
  return JsonObject()
      .number("step", static_cast<double>(report.step))
      .json("loss", finite_or_null(report.loss))
      .json("gradient_norm", finite_or_null(report.gradient_norm))
      .number("step_s", report.seconds)
      .number("tokens_per_s", step.samples_per_second)
      .number("mfu", step.mfu)
      .number("peak_memory_GiB", report.peak_bytes / 0x1p30)
      .json("busy_s", numbers(report.busy))
      .json("idle_s", numbers(report.idle))
      .str();
}

std::string as_text(const TrainStep& step) {
  const runtime::StepReport& report = step.report;
  std::string line =
      fmt::format("step {} | loss {:.6f} | time {:.4g} s | {} {}/s | MFU {}", report.step,
                  report.loss, report.seconds, grouped(step.samples_per_second),
                  step.tokens ? "tokens" : "images", percent(step.mfu));
  line += fmt::format(" | memory {:.2f} GiB | norm {:.3g}", report.peak_bytes / 0x1p30,
                      report.gradient_norm);
  if (report.busy.size() < 2) return line;
  line += " | busy";
  for (const double busy : report.busy) line += " " + percent(busy / report.seconds);
  return line;
}

std::string to_json(const TrainAnswer& answer) {
  if (!answer.measured) return "";
  return JsonObject()
      .number("measured_step_s", answer.measured->value)
      .number("predicted_step_s", answer.predicted->value)
      .number("prediction_error", error_of(answer))
      .str();
}

std::string as_text(const TrainAnswer& answer) {
  if (!answer.measured) return "";
  return fmt::format("measured {} a step (median of {}), predicted {}: {:+.1f} %",
                     in_words(*answer.measured), answer.counted_steps, in_words(*answer.predicted),
                     100 * error_of(answer));
}

}  // namespace plait
