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

}  // namespace

Mixtures solve_matrix_game(const std::vector<std::vector<double>>& value, int rounds) {
  const std::size_t rows = value.size();
  const std::size_t columns = value.front().size();
  Player high(rows);
  Player low(columns);
  std::vector<double> of_rows(rows);
  std::vector<double> of_columns(columns);
  for (int round = 1; round <= rounds; ++round) {
    for (std::size_t i = 0; i < rows; ++i)
      of_rows[i] = std::inner_product(value[i].begin(), value[i].end(), low.now().begin(), 0.0);
    high.learn(of_rows, round);
    std::ranges::fill(of_columns, 0.0);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) of_columns[j] -= high.now()[i] * value[i][j];
    low.learn(of_columns, round);
  }
  return {high.mixture(), low.mixture()};
}

}  // namespace plait
