#include "app/request/prices.h"

#include <gtest/gtest.h>

#include "app/plan/sample_requests.h"
#include "io/cluster/load_cluster.h"

namespace plait {
namespace {

using samples::complaint;

double node_price(const std::string& cluster, const std::vector<StatedPrice>& prices) {
  ClusterOptions options;
  set_prices(prices, options.catalogue);
  LoadedCluster loaded = load_cluster(cluster, options);
  set_prices(prices, options.catalogue, loaded.cluster);
  return loaded.cluster.nodes.front().price.value * kSecondsPerHour;
}

UsdPerSecond an_hour(double usd) { return UsdPerSecond(usd / kSecondsPerHour); }

TEST(Prices, OfADeviceHoldWhereverItIsRented) {
  // 8 devices at $2.50.
  EXPECT_NEAR(node_price("1xH100:8", {{"H100", an_hour(2.5)}}), 20, 1e-9);
  EXPECT_NEAR(node_price("1xp5.48xlarge", {{"h100", an_hour(2.5)}}), 20, 1e-9);
  EXPECT_NEAR(node_price("1xp5.48xlarge", {{"p5.48xlarge", an_hour(30)}}), 30, 1e-9);
}

TEST(Prices, OfWhatIsNotThereAreRefused) {
  EXPECT_TRUE(complaint([] {
                node_price("1xH100:8", {{"H1000", an_hour(1)}});
              }).starts_with("`price`: 'H1000' is neither a device type nor an instance"));
  EXPECT_EQ(complaint([] {
              node_price("1xH100:8", {{"T4", an_hour(1)}});
            }),
            "`price`: there is no 'T4' in the cluster");
}

}  // namespace
}  // namespace plait
