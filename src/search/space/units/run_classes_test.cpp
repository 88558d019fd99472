#include "search/space/units/run_classes.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace plait {
namespace {

Model model_of(const std::vector<int>& units) {
  Model model;
  model.kinds.resize(8);
  model.units = units;
  return model;
}

// The symbols that tell units apart: kinds, but for the ends.
std::vector<int> read(const Model& model, const UnitRange& run) {
  std::vector<int> word;
  for (int u = run.begin; u < run.end; ++u)
    word.push_back(u == 0 ? -1 : u == model.unit_count() - 1 ? -2 : model.units[u]);
  return word;
}

// Every run has the class of the first run that reads like it, numbered in that order.
void expect_classes_of_words(const Model& model) {
  const RunClasses classes(model);
  std::map<std::vector<int>, std::int64_t> known;
  std::vector<UnitRange> firsts;
  for (int begin = 0; begin < model.unit_count(); ++begin)
    for (int end = begin + 1; end <= model.unit_count(); ++end) {
      const auto [at, is_new] =
          known.try_emplace(read(model, {begin, end}), static_cast<std::int64_t>(firsts.size()));
      if (is_new) firsts.push_back({begin, end});
      ASSERT_EQ(classes.of({begin, end}), at->second) << begin << " " << end;
    }
  EXPECT_EQ(classes.count(), static_cast<std::int64_t>(firsts.size()));
  if (classes.are_few()) {
    EXPECT_EQ(classes.firsts(), firsts);
  }
}

TEST(RunClasses, AreOneForRunsThatReadTheSame) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    std::vector<int> units(1 + random() % 24);
    const auto kinds = 1 + random() % 3;
    for (int& unit : units) unit = static_cast<int>(random() % kinds);
    expect_classes_of_words(model_of(units));
  }
}

TEST(RunClasses, AreTheSameForModelsThatAreTooLongForATable) {
  // 30 layers of 11 ops between embedding and head, and one layer that differs: 332 units.
  std::vector<int> units{0};
  for (int layer = 0; layer < 30; ++layer)
    for (int op = 0; op < 11; ++op) units.push_back(op == 4 && layer == 13 ? 7 : op % 7);
  units.push_back(1);
  expect_classes_of_words(model_of(units));
}

TEST(RunClasses, OfTiedUnitsAreTheirOwn) {
  Model model = model_of({0, 1, 1, 1, 1, 0});
  model.ties = {{.first = 2, .second = 4}};
  const RunClasses classes(model);
  EXPECT_EQ(classes.of({1, 2}), classes.of({3, 4}));
  EXPECT_NE(classes.of({1, 2}), classes.of({2, 3}));
  EXPECT_NE(classes.of({2, 3}), classes.of({4, 5}));
}

TEST(RunClasses, OfLayersThatShareWithTheirNeighbourAreFew) {
  // Embedding, 2,000 layers, head: runs that have the first layer, or the head, or neither, of each
  // length.
  Model model = model_of(std::vector<int>(2'002, 1));
  for (int u = 2; u <= 2'000; ++u)
    model.ties.push_back({.first = u - 1, .second = u, .parameters = 1e6});
  const RunClasses classes(model);
  EXPECT_EQ(classes.of({2, 40}), classes.of({1'000, 1'038}));
  EXPECT_NE(classes.of({1, 39}), classes.of({2, 40}));
  EXPECT_TRUE(classes.are_few());
}

TEST(RunClasses, OfSharedLayersAreThoseOfOtherLayers) {
  // Layers 2, 3 and 4 use the parameters of layer 1 again.
  Model model = model_of({0, 1, 1, 1, 1, 0});
  for (const int second : {2, 3, 4})
    model.ties.push_back({.first = 1, .second = second, .parameters = 1e6});
  const RunClasses classes(model);
  EXPECT_EQ(classes.of({2, 4}), classes.of({3, 5}));
  EXPECT_NE(classes.of({1, 3}), classes.of({2, 4}));
}

TEST(RunClasses, GrowWithTheLengthOfAModelTimesItsPattern) {
  // 1,024 layers of 13 ops, and three units more: 13,315. Between the ends a run is told by where
  // in a layer it begins and by its length: about 13 x 13,313 classes. Runs that begin with the
  // model or end with it add one for each unit.
  std::vector<int> units{0};
  for (int u = 0; u < 1024 * 13; ++u) units.push_back(1 + u % 13 % 7);
  units.push_back(0);
  units.push_back(2);
  const Model model = model_of(units);
  ASSERT_EQ(model.unit_count(), 13315);
  const RunClasses classes(model);
  EXPECT_LT(classes.count(), 13 * 13'400 + 4 * 13'400);
  EXPECT_EQ(classes.of({1, 5000}), classes.of({14, 5013}));
  EXPECT_EQ(classes.of({1, 5000}), classes.of({1 + 13 * 600, 5000 + 13 * 600}));
  EXPECT_NE(classes.of({1, 5000}), classes.of({2, 5001}));
  EXPECT_FALSE(classes.are_few());
}

}  // namespace
}  // namespace plait
