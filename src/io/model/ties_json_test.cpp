#include "io/model/ties_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"

namespace plait {
namespace {

Model model_of(int units) {
  Model model;
  model.kinds.resize(1);
  model.kinds[0].ops.resize(4);
  model.units.assign(units, 0);
  return model;
}

std::vector<Tie> again(const Model& model) {
  return restore_ties(parse_json("file", dump_ties(model.ties)), model);
}

TEST(TiesJson, OfSharedLayersAreOneEntryForEachParameter) {
  Model model = model_of(1'000);
  for (int unit = 2; unit < 999; ++unit)
    for (const int op : {0, 3}) model.ties.push_back({unit - 1, unit, 5.0 + op, op, op});
  EXPECT_EQ(
      dump_ties(model.ties),
      R"([{"first": 1, "second": 2, "parameters": 5, "first_op": 0, "second_op": 0, "times": 997}, )"
      R"({"first": 1, "second": 2, "parameters": 8, "first_op": 3, "second_op": 3, "times": 997}])");
  EXPECT_EQ(again(model), model.ties);
}

TEST(TiesJson, AreReadAsTheyWereWritten) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    Model model = model_of(2 + static_cast<int>(random() % 8));
    for (auto ties = random() % 12; ties-- > 0;)
      model.ties.push_back({static_cast<int>(random() % model.units.size()),
                            static_cast<int>(random() % model.units.size()),
                            static_cast<double>(random() % 2), static_cast<int>(random() % 2), 1});
    if (i % 2 == 0) std::ranges::stable_sort(model.ties, {}, &Tie::second);
    EXPECT_EQ(again(model), model.ties);
  }
}

TEST(TiesJson, EndWithTheUnits) {
  const Model model = model_of(10);
  const auto read = [&](const std::string& text) {
    return restore_ties(parse_json("file", text), model);
  };
  EXPECT_EQ(read(R"([{"first": 1, "second": 2, "parameters": 1, "times": 8}])").size(), 8U);
  EXPECT_THROW(read(R"([{"first": 1, "second": 2, "parameters": 1, "times": 9}])"), InputError);
  EXPECT_THROW(read(R"([{"first": 1, "second": 2, "parameters": 1, "first_op": 4}])"), InputError);
}

}  // namespace
}  // namespace plait
