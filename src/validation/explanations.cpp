#include "validation/explanations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
namespace plait {
namespace {

constexpr int kFewestRows = 3;
constexpr double kWorthSaying = 0.9;  // of the error that is left

// Two parts of a predicted step: what the factor multiplies, and the rest; over the measured step.
struct Part {
  double term = 0;
  double rest = 0;

  double error(double factor) const { return std::abs(factor * term + rest - 1); }
};

double mean_error(const std::vector<Part>& parts, double factor, std::size_t left_out) {
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (i != left_out) sum += parts[i].error(factor);
  return sum;
}

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// The sum of |f term + rest - 1| is convex and piecewise linear: its least value is where one of
// the rows is right. Factors beyond a fifth and five are not explanations.
double best_factor(const std::vector<Part>& parts, std::size_t left_out) {
  double best = 1;
  double least = mean_error(parts, 1, left_out);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i == left_out || parts[i].term <= 0) continue;
    const double factor = std::clamp((1 - parts[i].rest) / parts[i].term, 0.2, 5.0);
    const double error = mean_error(parts, factor, left_out);
    if (error < least) {
      least = error;
      best = factor;
    }
  }
  return best;
}

double left_out_error(const std::vector<Part>& parts) {
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) sum += parts[i].error(best_factor(parts, i));
  return sum / static_cast<double>(parts.size());
}

std::vector<Part> parts_of(const std::vector<std::size_t>& rows, const StepTerm& term,
                           const std::vector<MeasuredRun>& runs,
                           const std::vector<RunPrediction>& predictions) {
  std::vector<Part> parts;
  for (const std::size_t i : rows) {
    const double share = predictions[i].terms.*term.value / *runs[i].step;
    parts.push_back({.term = share, .rest = predictions[i].step / *runs[i].step - share});
  }
  return parts;
}

}  // namespace

std::vector<ErrorExplanation> explanations(const std::vector<MeasuredRun>& runs,
                                           const std::vector<RunPrediction>& predictions) {
  std::vector<std::string> sources;
  std::map<std::string, std::vector<std::size_t>> rows_of;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!predictions[i].made || !runs[i].step) continue;
    std::vector<std::size_t>& rows = rows_of[runs[i].source];
    if (rows.empty()) sources.push_back(runs[i].source);
    rows.push_back(i);
  }
  std::vector<ErrorExplanation> out;
  for (const std::string& source : sources) {
    const std::vector<std::size_t>& rows = rows_of[source];
    if (static_cast<int>(rows.size()) < kFewestRows) continue;
    ErrorExplanation best{.source = source, .rows = static_cast<int>(rows.size())};
    best.before = mean_error(parts_of(rows, kStepTerms[0], runs, predictions), 1, kNone) /
                  static_cast<double>(rows.size());
    best.after = kWorthSaying * best.before;
    for (const StepTerm& term : kStepTerms) {
      const std::vector<Part> parts = parts_of(rows, term, runs, predictions);
      const double after = left_out_error(parts);
      if (after >= best.after) continue;
      best.after = after;
      best.term = term.name;
      best.factor = best_factor(parts, kNone);
    }
    if (!best.term.empty()) out.push_back(std::move(best));
  }
  return out;
}

}  // namespace plait
