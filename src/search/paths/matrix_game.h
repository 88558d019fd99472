#pragma once

#include <vector>

namespace plait {

// One player picks a row to make the value large, the other a column to make it small. Mixtures of
// rows and of columns that are near the best, by regret matching: any mixture of rows is a sound
// answer to every column, so that bounds made of it hold however near it is.
struct Mixtures {
  std::vector<double> rows;
  std::vector<double> columns;
};
Mixtures solve_matrix_game(const std::vector<std::vector<double>>& value, int rounds);

}  // namespace plait
