#include "cli/flags/cluster_flags.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"

namespace plait {
namespace {

std::string complaint(const Setter& set, const std::string& text) {
  return samples::complaint([&] { set("--flag", text); });
}

TEST(ClusterFlags, OffersHaveCountsZonesAndSpotPrices) {
  std::vector<Offer> offers{{"old", 1, 1}};
  into_offers(offers)("--instances", "p4d.24xlarge:0-8, g5.24xlarge@east:4,A100-80GB:8:2-4:spot");
  EXPECT_EQ(offers, (std::vector<Offer>{{"p4d.24xlarge", 0, 8, false},
                                        {"g5.24xlarge@east", 0, 4, false},
                                        {"A100-80GB:8", 2, 4, true}}));
  EXPECT_EQ(offers[2].label(), "A100-80GB:8:spot");
}

TEST(ClusterFlags, WrongOffersAreRefused) {
  std::vector<Offer> offers;
  for (const char* wrong : {"", "p4d.24xlarge", ":4", "p4d:x", "p4d:1-", "p4d:-1", "p4d:4,,p4d:5",
                            "p4d:5-4", "p4d:0", "p4d:10001", "p4d:99999999999999999999"})
    EXPECT_TRUE(complaint(into_offers(offers), wrong).starts_with("--flag: ")) << wrong;
}

TEST(ClusterFlags, DevicesAreIdsAndRanges) {
  std::vector<std::pair<int, int>> devices;
  into_devices(devices)("--lost-devices", "5,8-15");
  into_devices(devices)("--lost-devices", "1");
  EXPECT_EQ(devices, (std::vector<std::pair<int, int>>{{5, 5}, {8, 15}, {1, 1}}));
  for (const char* wrong : {"", "5,", "x", "5-", "5-x", "5.5", "99999999999999999999"})
    EXPECT_NE(complaint(into_devices(devices), wrong), "") << wrong;
}

TEST(ClusterFlags, SlowNodesHaveASpeed) {
  std::vector<SlowNode> slow;
  into_slow(slow)("--slow", "a=b=0.5,c=2");
  EXPECT_EQ(slow, (std::vector<SlowNode>{{"a=b", 0.5}, {"c", 2}}));
  for (const char* wrong : {"", "a", "a=", "a=0", "a=-1", "a=x", "a=1e9", "a=nan"})
    EXPECT_NE(complaint(into_slow(slow), wrong), "") << wrong;
}

}  // namespace
}  // namespace plait
