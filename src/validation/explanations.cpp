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

double total_error(const std::vector<Part>& parts, double factor) {
  double sum = 0;
  for (const Part& part : parts) sum += part.error(factor);
  return sum;
}

// The sum of |f term + rest - 1| is convex and piecewise linear: its least value is at the median
// of the factors that make one row right, each with the weight of its term. Factors beyond a fifth
// and five are not explanations.
class BestFactors {
 public:
  explicit BestFactors(const std::vector<Part>& parts)
      : parts_(parts), place_(parts.size(), kNone) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i].term > 0) order_.push_back(i);
    std::ranges::stable_sort(order_, {}, [&](std::size_t i) { return right_for(i); });
    for (const std::size_t i : order_) {
      place_[i] = until_.size();
      until_.push_back((until_.empty() ? 0 : until_.back()) + parts[i].term);
    }
  }

  double of_all() const { return best(kNone, 0); }
  double without(std::size_t row) const {
    return best(place_[row], place_[row] == kNone ? 0 : parts_[row].term);
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  double right_for(std::size_t row) const { return (1 - parts_[row].rest) / parts_[row].term; }

  // Leaves out the row at this place of the order, which has this weight.
  double best(std::size_t left_out, double weight) const {
    const double half = order_.empty() ? 0 : (until_.back() - weight) / 2;
    if (half <= 0) return 1;  // of no row that is left
    std::size_t low = 0;
    for (std::size_t high = order_.size() - 1; low < high;) {
      const std::size_t middle = low + (high - low) / 2;
      const double until = until_[middle] - (middle >= left_out ? weight : 0);
      if (until < half)
        low = middle + 1;
      else
        high = middle;
    }
    return std::clamp(right_for(order_[low]), 0.2, 5.0);
  }

  const std::vector<Part>& parts_;
  std::vector<std::size_t> order_;  // rows, by the factor that makes them right
  std::vector<std::size_t> place_;  // of each row in it
  std::vector<double> until_;       // sum of the terms up to each place
};

double left_out_error(const std::vector<Part>& parts) {
  const BestFactors best(parts);
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) sum += parts[i].error(best.without(i));
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
    best.before = total_error(parts_of(rows, kStepTerms[0], runs, predictions), 1) /
                  static_cast<double>(rows.size());
    best.after = kWorthSaying * best.before;
    for (const StepTerm& term : kStepTerms) {
      const std::vector<Part> parts = parts_of(rows, term, runs, predictions);
      const double after = left_out_error(parts);
      if (after >= best.after) continue;
      best.after = after;
      best.term = term.name;
      best.factor = BestFactors(parts).of_all();
    }
    if (!best.term.empty()) out.push_back(std::move(best));
  }
  return out;
}

}  // namespace plait
