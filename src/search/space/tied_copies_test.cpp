#include "search/space/tied_copies.h"

#include <gtest/gtest.h>

#include <random>

#include "cost/span_frame.h"

namespace plait {
namespace {

TEST(TiedCopies, AreThoseOfTheCostModel) {
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    Model model;
    model.kinds.resize(1);
    model.units.assign(2 + random() % 10, 0);
    const int units = model.unit_count();
    for (auto tie = random() % 6; tie-- > 0;)
      model.ties.push_back({.first = static_cast<int>(random() % units),
                            .second = static_cast<int>(random() % units),
                            .parameters = 1.0 + static_cast<double>(random() % 100)});
    const TiedCopies copies(model);
    EXPECT_EQ(copies.any(), !model.ties.empty());
    for (int begin = 0; begin < units; ++begin)
      for (int end = begin + 1; end <= units; ++end) {
        const UnitRange run{begin, end};
        EXPECT_EQ(copies.of(run), tied_copies(model, {&run, 1})) << begin << " " << end;
      }
  }
}

}  // namespace
}  // namespace plait
