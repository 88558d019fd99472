#include "validation/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "validation/sample_rows.h"

namespace plait {
namespace {

// Steps of two parts: four runs with shares of the first of 0.9, 0.8, 0.3 and 0.2, measured with
// the first part 1.25 times as long as predicted.
std::vector<double> two_parts(const std::vector<double>& factors) {
  std::vector<double> errors;
  for (const double share : {0.9, 0.8, 0.3, 0.2}) {
    const double predicted = factors[0] * share + factors[1] * (1 - share);
    const double measured = 1.25 * share + (1 - share);
    errors.push_back(std::log(predicted / measured));
  }
  return errors;
}

TEST(Calibrate, KeepsTheConstantThatIsOffAndNotTheOther) {
  const Calibration found = calibrate(2, two_parts);
  // The nearest of the factors 2^(k/24) to 1.25 is 2^(8/24) = 1.26.
  EXPECT_NEAR(found.factors[0], 1.25, 0.02);
  EXPECT_EQ(found.factors[1], 1);
  EXPECT_GT(found.before, 0.1);
  EXPECT_LT(found.left_out, 0.01);
  EXPECT_TRUE(found.changed());
}

TEST(Calibrate, ChangesNothingWhereErrorsHaveNoPattern) {
  // Two runs, one too fast and one too slow: what is right for one is wrong for the other.
  const Calibration found = calibrate(1, [](const std::vector<double>& factors) {
    return std::vector<double>{std::log(factors[0]) + 0.1, std::log(factors[0]) - 0.1};
  });
  EXPECT_FALSE(found.changed());
  EXPECT_DOUBLE_EQ(found.left_out, found.before);
  ASSERT_EQ(found.trials.size(), 1u);
  EXPECT_FALSE(found.trials[0].kept);
}

// Whenever it is stopped, the errors are no larger than they were, and it says that it was stopped.
TEST(Calibrate, KeepsWhatItHasWhenItIsStopped) {
  const Calibration whole = calibrate(2, two_parts);
  EXPECT_FALSE(whole.cut_short);
  bool kept = false;
  for (int after = 0; after < 100; ++after) {
    int asked = 0;
    const Calibration found = calibrate(2, two_parts, [&] { return asked++ >= after; });
    ASSERT_EQ(found.factors.size(), 2u);
    EXPECT_LE(found.in_sample, found.before);
    if (!found.cut_short) {
      EXPECT_EQ(found.factors, whole.factors);
      EXPECT_TRUE(kept) << "no stop left anything";
      return;
    }
    kept |= found.changed();
  }
  FAIL() << "it asks more than 100 times";
}

TEST(Calibrate, RunsTellOfTheirOwnDevicesAndFrameworks) {
  const std::vector<OwnConstant> found = own_constants({samples::read({})});
  // 16 A100 in two nodes under Megatron-LM.
  const std::vector<OwnConstant> expected{{ConstantKind::compute, "A100-80GB"},
                                          {ConstantKind::memory, "A100-80GB"},
                                          {ConstantKind::intra, "A100-80GB"},
                                          {ConstantKind::inter, "A100-80GB"},
                                          {ConstantKind::host, "megatron-lm"}};
  EXPECT_EQ(found, expected);
}

TEST(Calibrate, SharesOfADeviceStayAtOneAndBelow) {
  Catalogue catalogue = builtin_catalogue();
  const double before = find_device(catalogue, "A100-80GB", "").type.efficiency.matmul;
  scale({ConstantKind::compute, "A100-80GB"}, 0.5, catalogue);
  EXPECT_DOUBLE_EQ(find_device(catalogue, "A100-80GB", "").type.efficiency.matmul, before / 2);
  scale({ConstantKind::compute, "A100-80GB"}, 9, catalogue);
  EXPECT_DOUBLE_EQ(find_device(catalogue, "A100-80GB", "").type.efficiency.matmul, 1);
}

}  // namespace
}  // namespace plait
