#include "search/space/units/units_recomputed.h"

#include <gtest/gtest.h>

#include "model/layers.h"

namespace plait {
namespace {

// An embedding, layers of three ops and a head.
TEST(UnitsRecomputed, FirstLayersByTheirStartsAreThoseThatAreCounted) {
  Model model;
  for (const char* name : {"embedding.table", "layer.norm", "layer.matmul", "head.matmul"})
    model.kinds.push_back({.name = name, .ops = {}, .output = 0});
  model.kinds[2].starts_layer = false;
  model.units = {0, 1, 2, 2, 1, 2, 2, 1, 2, 2, 3};
  const std::vector<int> starts = layer_starts(model);
  EXPECT_EQ(starts, (std::vector<int>{1, 4, 7}));
  for (int begin = 0; begin <= model.unit_count(); ++begin)
    for (int end = begin; end <= model.unit_count(); ++end)
      for (int layers = 0; layers <= 4; ++layers)
        EXPECT_EQ(first_layers(starts, {begin, end}, layers),
                  first_layers(model, {begin, end}, layers))
            << begin << " to " << end << ", " << layers;
}

}  // namespace
}  // namespace plait
