#include "graph/search/carried.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/search/sample_meshes.h"
#include "graph/search/search.h"

namespace plait::graph {
namespace {

using samples::mesh_of;

// One product of a batch with a weight, whose parameter carries `sharding`.
std::string product(const std::string& sharding) {
  return "HloModule m\n\nENTRY main {\n  x = f32[64,32] parameter(0)\n"
         "  w = f32[32,16] parameter(1), sharding=" +
         sharding +
         "\n  ROOT y = f32[64,16] dot(x, w), lhs_contracting_dims={1}, "
         "rhs_contracting_dims={0}\n}\n";
}

TEST(Carried, DevicesAreReadInTheOrderOfTheirTiles) {
  // 0 1 / 2 3 transposed: columns first.
  EXPECT_EQ(read_sharding("{devices=[2,2]<=[2,2]T(1,0)}", 2, 4)->devices,
            (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(read_sharding("{devices=[1,2,2]0,2,1,3 last_tile_dim_replicate}", 2, 4)->counts,
            (std::vector<std::int64_t>{1, 2}));
  for (const char* wrong : {"{devices=[3,1]<=[3]}", "{maximal device=0}", "{devices=[2,2]<=[4",
                            "{devices=[-2,-2]<=[4]}", "{devices=[4]<=[4]}", "{manual}", ""})
    EXPECT_FALSE(read_sharding(wrong, 2, 4)) << wrong;
}

TEST(Carried, EveryPlacementIsFoundAgainFromItsText) {
  const Mesh mesh = mesh_of({2, 2});
  for (int first = -1; first < 2; ++first)
    for (int second = -1; second < 2; ++second) {
      Placement placement;
      placement.dim[0] = static_cast<std::int8_t>(first);
      placement.dim[1] = static_cast<std::int8_t>(second);
      placement.rank[1] = static_cast<std::int8_t>(first >= 0 && first == second ? 1 : 0);
      const Analysis analysis = analyze(product(gspmd_sharding(mesh, placement, 2)), "test");
      const auto kept = kept_shardings(analysis.program, mesh);
      const int value = analysis.program.nodes[analysis.program.arguments[1]].outputs.front();
      EXPECT_EQ(kept[value], placement);
    }
}

TEST(Carried, AKeptShardingHoldsInThePlanAndIsPaidFor) {
  const Mesh mesh = mesh_of({4});
  // Rows over all devices need no communication; with a weight that is divided they need all of it.
  const Analysis analysis = analyze(product("{devices=[1,4]<=[4]}"), "test");
  SearchOptions options;
  const ShardingPlan free = *search(analysis, mesh, options).best;
  options.keep = true;
  const ShardingPlan kept = *search(analysis, mesh, options).best;
  const int value = analysis.program.nodes[analysis.program.arguments[1]].outputs.front();
  EXPECT_EQ(kept.placements[value].dim[0], 1);
  EXPECT_LE(free.time(), kept.time());
}

TEST(Carried, AShardingOfAnotherMeshIsRefusedWithItsPlace) {
  const Analysis analysis = analyze(product("{devices=[2,1]<=[2]}"), "step.hlo");
  try {
    kept_shardings(analysis.program, mesh_of({4}));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "step.hlo:5:3: sharding={devices=[2,1]<=[2]} cannot be kept on a mesh of 4: no even "
              "division of the array by its axes is the same");
  }
}

}  // namespace
}  // namespace plait::graph
