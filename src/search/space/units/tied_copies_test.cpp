#include "search/space/units/tied_copies.h"

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
    if (i % 2 == 0)
      for (int u = 2; u < units; ++u)
        if (random() % 4 > 0)
          model.ties.push_back(
              {.first = u - 2, .second = u, .parameters = 1.0 + static_cast<double>(random() % 2)});
    const TiedCopies copies(model);
    EXPECT_EQ(copies.any(), !model.ties.empty());
    for (int begin = 0; begin < units; ++begin)
      for (int end = begin + 1; end <= units; ++end) {
        const UnitRange run{begin, end};
        EXPECT_EQ(copies.of(run), tied_copies(model, {&run, 1})) << begin << " " << end;
        // Up to the next owner no longer run keeps fewer copies.
        for (int more = begin - 1; more > copies.next_owner(run); --more)
          EXPECT_GE(copies.of({more, end}), copies.of(run)) << more << " " << begin << " " << end;
      }
  }
}

TEST(TiedCopies, AreFewerFromTheirOwnerOn) {
  Model model;
  model.kinds.resize(1);
  model.units.assign(8, 0);
  model.ties = {{.first = 1, .second = 6, .parameters = 5},
                {.first = 3, .second = 7, .parameters = 2}};
  const TiedCopies copies(model);
  EXPECT_EQ(copies.next_owner({5, 8}), 3);
  EXPECT_EQ(copies.next_owner({3, 8}), 1);   // 3 is in it
  EXPECT_EQ(copies.next_owner({4, 7}), 1);   // 7 is not, so that 3 would spare nothing
  EXPECT_EQ(copies.next_owner({4, 6}), -1);  // nothing is used again
  EXPECT_EQ(copies.next_owner({0, 8}), -1);
}

TEST(TiedCopies, OfSharedLayersAreOneForEveryRunWithoutTheFirst) {
  // 100,000 layers, each of which uses the parameters of the one before it.
  Model model;
  model.kinds.resize(1);
  model.units.assign(100'000, 0);
  for (int u = 2; u < 100'000; ++u)
    model.ties.push_back({.first = u - 1, .second = u, .parameters = 7});
  const TiedCopies copies(model);
  EXPECT_EQ(copies.of({1, 90'000}), 0);
  EXPECT_EQ(copies.of({50, 90'000}), 7);
  EXPECT_EQ(copies.of({2, 3}), 7);
  EXPECT_EQ(copies.next_owner({50, 90'000}), 1);
  EXPECT_EQ(copies.next_owner({1, 90'000}), -1);
}

}  // namespace
}  // namespace plait
