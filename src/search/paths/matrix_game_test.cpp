#include "search/paths/matrix_game.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

// Rows 13, 12 and 11, 15 against two columns: with p of the first row, 13 p + 11 (1 - p) and
// 12 p + 15 (1 - p) are equal at p = 0.8, where both are 12.6.
TEST(MatrixGame, FindsMixturesOfATwoByTwoGame) {
  const Mixtures found = solve_matrix_game({{13, 12}, {11, 15}}, 2000);
  EXPECT_NEAR(found.rows[0], 0.8, 0.01);
  EXPECT_NEAR(13 * found.rows[0] + 11 * found.rows[1], 12.6, 0.05);
  EXPECT_NEAR(13 * found.columns[0] + 12 * found.columns[1], 12.6, 0.05);
}

TEST(MatrixGame, APureAnswerIsPlayedAlone) {
  const Mixtures found = solve_matrix_game({{1, 2}, {3, 4}}, 200);
  EXPECT_NEAR(found.rows[1], 1, 0.02);
  EXPECT_NEAR(found.columns[0], 1, 0.02);
}

}  // namespace
}  // namespace plait
