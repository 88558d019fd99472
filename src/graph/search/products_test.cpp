#include "graph/search/products.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/search/costs.h"
#include "graph/search/sample_meshes.h"

namespace plait::graph {
namespace {

OpKey product(double rows, double inner, double columns) {
  OpKey key;
  key.dtype = DType::fp32;
  key.rows = rows;
  key.inner = inner;
  key.columns = columns;
  return key;
}

// Two layers of 64 rows and 32 x 32 weights, on four devices.
struct Layers {
  Analysis analysis = analyze(samples::mlp_step(2, 64, 32), "mlp");
  Mesh mesh = samples::mesh_of({4});
  GraphCosts costs = costs_of(analysis, mesh);

  std::size_t strategy(const std::string& words) const {
    for (std::size_t s = 0; s < costs.blocks[0].strategies.size(); ++s)
      if (text_of(costs.blocks[0].strategies[s], analysis.blocks.blocks[0], mesh) == words)
        return s;
    ADD_FAILURE() << words << " is not offered";
    return 0;
  }
};

TEST(Products, ADeviceHasItsPartOfEachSide) {
  const Layers layers;
  const auto under = [&](const std::string& words) {
    const int key = layers.analysis.blocks.blocks[0].key;
    const ClassAxes& axes = layers.costs.blocks[0].axes[layers.strategy(words)];
    return product_on_device(layers.analysis, layers.mesh, key,
                             place_node(layers.analysis, layers.mesh, key, axes).operands);
  };
  EXPECT_EQ(under("columns over x"), product(64, 32, 8));
  EXPECT_EQ(under("rows over x"), product(16, 32, 32));
  EXPECT_EQ(under("inner over x"), product(64, 8, 32));
}

TEST(Products, GradientsAreMeasuredWithTheirProduct) {
  // Of [16 x 32][32 x 8]: the input's gradient is [16 x 8][8 x 32], the weight's [8 x 16][16 x 32].
  Profile profile;
  OpKey key = product(16, 32, 8);
  key.device_type = "device";
  profile.ops[key] = {.forward = Seconds(1), .backward = Seconds(2), .weight_gradient = Seconds(3)};
  const MeasuredProducts measured(profile, "device");
  const auto time = [&](OpKey of) {
    of.device_type = "device";
    return measured.time(samples::cluster_of(4).device_types[0], of);
  };
  EXPECT_EQ(time(product(16, 32, 8)), Seconds(1));
  EXPECT_EQ(time(product(16, 8, 32)), Seconds(2));
  EXPECT_EQ(time(product(8, 16, 32)), Seconds(3));
  EXPECT_TRUE(MeasuredProducts(profile, "another").empty());
}

TEST(Products, WhatWasMeasuredTakesThePlaceOfTheRoofline) {
  const Layers layers;
  const std::vector<OpKey> all = products_of(layers.analysis, layers.mesh, layers.costs);
  // Those of columns, which are both layers' and whose gradients are those of an inner range; and
  // those of rows.
  EXPECT_EQ(std::ranges::count(all, product(64, 32, 8)), 1);
  EXPECT_EQ(std::ranges::count(all, product(64, 8, 32)), 0);
  EXPECT_EQ(std::ranges::count(all, product(16, 32, 32)), 1);
  Profile profile;
  for (OpKey key : all) {
    key.device_type = "device";
    profile.ops[key] = {
        .forward = Seconds(1), .backward = Seconds(1), .weight_gradient = Seconds(1)};
  }
  const MeasuredProducts measured(profile, "device");
  CostOptions options;
  options.products = &measured;
  const GraphCosts timed = costs_of(layers.analysis, layers.mesh, options);
  for (std::size_t b = 0; b < timed.blocks.size(); ++b)
    for (const Seconds compute : timed.blocks[b].compute) {
      // A second for each product; the rest of these small blocks takes microseconds.
      const auto products =
          static_cast<double>(layers.analysis.blocks.blocks[b].contractions.size());
      EXPECT_NEAR(compute.value, products, 1e-3);
    }
}

}  // namespace
}  // namespace plait::graph
