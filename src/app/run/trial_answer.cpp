#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/request/ranked_plan_json.h"
#include "app/run/trial.h"
#include "io/format/json_writer.h"
#include "report/quantities.h"
#include "validation/validation.h"

namespace plait {
namespace {

using runtime::TrialEnd;
using runtime::TrialRow;

std::string signed_percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:+.1f} %", 100 * *fraction) : "";
}

// "devices=..." says little in a table; the rest of the description does.
std::string shortened(const std::string& plan) { return plan.substr(0, plan.find(" devices=")); }

}  // namespace

TrialAgreement agreement_of(const std::vector<TrialRow>& rows) {
  TrialAgreement out;
  std::vector<double> predicted, measured, errors;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].result.step) continue;
    predicted.push_back(rows[i].predicted.value);
    measured.push_back(rows[i].result.step->value);
    errors.push_back(std::abs(*rows[i].error()));
    if (out.best < 0 ||
        *rows[i].result.step < *rows[static_cast<std::size_t>(out.best)].result.step)
      out.best = static_cast<int>(i);
  }
  out.measured = static_cast<int>(measured.size());
  if (errors.empty()) return out;
  out.spearman = spearman(predicted, measured);
  std::sort(errors.begin(), errors.end());
  out.worst_error = errors.back();
  const std::size_t middle = errors.size() / 2;
  out.median_error =
      errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
  return out;
}

std::string as_text(const TrialAnswer& answer, const Style& style) {
  const std::vector<TrialRow>& rows = answer.rows;
  const TrialAgreement agreement = agreement_of(rows);
  Table table({{"#"},
               {"predicted"},
               {"measured"},
               {"error"},
               {"GiB predicted", Align::right, 3},
               {"GiB measured", Align::right, 2},
               {"outcome", Align::left, 1},
               {"plan", Align::left}});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TrialRow& row = rows[i];
    const bool best = static_cast<int>(i) == agreement.best;
    table.row({std::to_string(i + 1), in_words(row.predicted),
               row.result.step ? in_words(*row.result.step) : "", signed_percent(row.error()),
               in_gibibytes(row.predicted_memory),
               row.result.memory ? in_gibibytes(*row.result.memory) : "",
               best ? "best" : std::string(name_of(row.result.end)), shortened(row.plan)});
  }
  std::string out = table.str(style);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].result.end != TrialEnd::measured && !rows[i].result.reason.empty())
      out += paragraph(fmt::format("{}: {}", i + 1, rows[i].result.reason), style, 3);
  if (agreement.best < 0) return out + "\nNo plan could be measured.\n";
  out += "\n";
  std::string words =
      agreement.best == 0
          ? std::string("The plan that was predicted to be the best is the best measured.")
          : fmt::format("Plan {} is the best measured.", agreement.best + 1);
  if (agreement.best > 0 && rows[0].result.step)
    words += fmt::format(
        " The predicted best takes {} longer.",
        percent(*rows[0].result.step / *rows[static_cast<std::size_t>(agreement.best)].result.step -
                1));
  words += fmt::format(" Predictions are off by {} in the median and {} at worst",
                       percent(*agreement.median_error), percent(*agreement.worst_error));
  words += agreement.spearman ? fmt::format("; their order agrees with Spearman's rho {:.2f}.",
                                            *agreement.spearman)
                              : std::string(".");
  return out + paragraph(words, style);
}

std::string to_json(const TrialAnswer& answer) {
  const TrialAgreement agreement = agreement_of(answer.rows);
  std::vector<std::string> trials;
  for (const TrialRow& row : answer.rows) {
    const auto& result = row.result;
    JsonObject object;
    object.text("id", row.id)
        .text("plan", row.plan)
        .text("outcome", name_of(result.end))
        .number("predicted_s", row.predicted.value)
        .json("measured_s", result.step ? json_number(result.step->value) : "null")
        .json("error", number_or_null(row.error()))
        .number("predicted_memory_GiB", row.predicted_memory.value / 0x1p30)
        .json("measured_memory_GiB",
              result.memory ? json_number(result.memory->value / 0x1p30) : "null")
        .number("steps", result.steps)
        .number("elapsed_s", result.elapsed.value);
    if (!result.reason.empty()) object.text("reason", result.reason);
    trials.push_back(object.str());
  }
  return lay_out_json(
      JsonObject()
          .json("trials", json_list(trials))
          .json("best", agreement.best < 0 ? "null" : std::to_string(agreement.best))
          .number("measured", agreement.measured)
          .json("median_error", number_or_null(agreement.median_error))
          .json("worst_error", number_or_null(agreement.worst_error))
          .json("spearman", number_or_null(agreement.spearman))
          .str());
}

}  // namespace plait
