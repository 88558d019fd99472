#include "graph/search/placement/placement.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "graph/search/sample_divisions.h"

namespace plait::graph {
namespace {

using samples::mesh_of;

TEST(Mesh, SizesMustMultiplyToTheDevices) {
  const Cluster cluster = samples::cluster_of(8);
  try {
    make_mesh(cluster, {3, 3}, "--mesh");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "--mesh: a mesh of 3x3 needs 9 devices, and the cluster has 8");
  }
  EXPECT_THROW(parse_mesh("2x", "--mesh"), InputError);
  EXPECT_THROW(parse_mesh("2x2x2x2", "--mesh"), InputError);
  EXPECT_EQ(parse_mesh("2x4", "--mesh"), (std::vector<int>{2, 4}));
  // 8, 2x4, 4x2, 2x2x2 with one, two and three axes.
  EXPECT_EQ(all_meshes(8, 3).size(), 4u);
}

Placement placed(const std::vector<std::pair<int, int>>& axis_dim) {
  Placement made;
  std::array<int, 8> next{};
  for (const auto& [axis, dim] : axis_dim) {
    made.dim[axis] = static_cast<std::int8_t>(dim);
    made.rank[axis] = static_cast<std::int8_t>(next[dim]++);
  }
  return made;
}

// The strings of the study of GSPMD's grammar: mesh 2 x 4.
TEST(Placement, IsWrittenAsGspmdAndAsPartitionSpec) {
  const Mesh mesh = mesh_of({2, 4});
  EXPECT_EQ(gspmd_sharding(mesh, placed({{1, 0}}), 2),
            "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(gspmd_sharding(mesh, placed({{0, 0}, {1, 1}}), 2), "{devices=[2,4]<=[8]}");
  EXPECT_EQ(gspmd_sharding(mesh, placed({{0, 1}}), 2),
            "{devices=[1,2,4]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(gspmd_sharding(mesh, Placement(), 2), "{replicated}");
  EXPECT_EQ(gspmd_sharding(mesh_of({2}), placed({{0, 0}}), 2), "{devices=[2,1]<=[2]}");
  EXPECT_EQ(partition_spec(placed({{1, 1}}), 2, 2), "P(None, 'y')");
  EXPECT_EQ(partition_spec(placed({{0, 0}, {1, 0}}), 2, 2), "P(('x', 'y'))");
}

TEST(Placement, ChangesNeedTheFewestCollectives) {
  const Mesh mesh = mesh_of({2, 4});
  const Bytes size(1024);
  EXPECT_TRUE(transfers(mesh, size, Placement(), placed({{0, 0}})).empty());  // a slice
  // Gathering y: 512 bytes of each half are whole afterwards.
  EXPECT_EQ(transfers(mesh, size, placed({{0, 0}, {1, 1}}), placed({{0, 0}})),
            (std::vector<Transfer>{{CollectiveKind::all_gather, 2U, Bytes(512)}}));
  EXPECT_EQ(transfers(mesh, size, placed({{1, 0}}), placed({{1, 1}})),
            (std::vector<Transfer>{{CollectiveKind::all_to_all, 2U, Bytes(256)}}));
}

}  // namespace
}  // namespace plait::graph
