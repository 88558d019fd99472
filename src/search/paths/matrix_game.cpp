#include "search/paths/matrix_game.h"

#include <algorithm>
#include <numeric>

namespace plait {
namespace {

// Plays in proportion to what would have been gained by always playing a move, where that is
// positive (regret matching+, Tammelin 2014). Later rounds count more.
class Player {
 public:
  explicit Player(std::size_t moves)
      : regret_(moves, 0), sum_(moves, 0), now_(moves, 1.0 / static_cast<double>(moves)) {}

  const std::vector<double>& now() const { return now_; }

  void learn(const std::vector<double>& gain, double weight) {
    double mean = 0;
    for (std::size_t i = 0; i < now_.size(); ++i) mean += now_[i] * gain[i];
    double total = 0;
    for (std::size_t i = 0; i < now_.size(); ++i) {
      regret_[i] = std::max(0.0, regret_[i] + gain[i] - mean);
      total += regret_[i];
    }
    for (std::size_t i = 0; i < now_.size(); ++i) {
      if (total > 0) now_[i] = regret_[i] / total;
      sum_[i] += weight * now_[i];
    }
  }

  std::vector<double> mixture() const {
    const double total = std::accumulate(sum_.begin(), sum_.end(), 0.0);
    if (total <= 0) return now_;
    std::vector<double> out = sum_;
    for (double& part : out) part /= total;
    return out;
  }

 private:
  std::vector<double> regret_;
  std::vector<double> sum_;
  std::vector<double> now_;
};

// Sums, with their weights, of rows of a matrix that are in use; most are not, after a few rounds.
class WeightedSums {
 public:
  WeightedSums(std::size_t rows, std::size_t columns) : columns_(columns), value_(rows * columns) {}

  double& at(std::size_t row, std::size_t column) { return value_[row * columns_ + column]; }
  void operator()(const std::vector<double>& weights, double sign, std::vector<double>& out) const {
    std::ranges::fill(out, 0.0);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double weight = sign * weights[i];
      if (weight == 0) continue;
      const double* row = value_.data() + i * columns_;
      for (std::size_t j = 0; j < columns_; ++j) out[j] += weight * row[j];
    }
  }

 private:
  std::size_t columns_;
  std::vector<double> value_;
};

}  // namespace

Mixtures solve_matrix_game(const std::vector<std::vector<double>>& value, int rounds) {
  const std::size_t rows = value.size();
  const std::size_t columns = value.front().size();
  WeightedSums over_rows(rows, columns);
  WeightedSums over_columns(columns, rows);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      over_rows.at(i, j) = value[i][j];
      over_columns.at(j, i) = value[i][j];
    }
  Player high(rows);
  Player low(columns);
  std::vector<double> of_rows(rows);
  std::vector<double> of_columns(columns);
  for (int round = 1; round <= rounds; ++round) {
    over_columns(low.now(), 1, of_rows);
    high.learn(of_rows, round);
    over_rows(high.now(), -1, of_columns);
    low.learn(of_columns, round);
  }
  return {high.mixture(), low.mixture()};
}

}  // namespace plait
