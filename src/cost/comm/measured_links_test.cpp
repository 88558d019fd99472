#include "cost/comm/measured_links.h"

#include <gtest/gtest.h>

#include "plan/sample_problems.h"

namespace plait {
namespace {

const std::string kType = "plain";

Profile links() {
  Profile profile;
  profile.collectives[{"all_reduce", kType, 1, 4}] = {{Bytes(1e6), Seconds(1e-3)},
                                                      {Bytes(3e6), Seconds(2e-3)}};
  profile.collectives[{"send", kType, 2, 1}] = {{Bytes(1e6), Seconds(4e-3)}};
  return profile;
}

Group group_of_size(int count) {
  const Cluster cluster = samples::cluster_of(samples::plain_device(), 1, 8);
  std::vector<DeviceId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(DeviceId(i));
  return group_of(cluster, ids);
}

TEST(MeasuredLinks, ACurveOfTheGroupsShapeComesFirst) {
  const Profile profile = links();
  const MeasuredLinks measured(profile, kType);
  // Half way between 1 MB and 3 MB.
  EXPECT_DOUBLE_EQ(measured.all_reduce(group_of_size(4), Bytes(2e6)).value, 1.5e-3);
  // Beyond: 0.5 ms for each MB, not proportional to 2 ms for 3 MB.
  EXPECT_DOUBLE_EQ(measured.all_reduce(group_of_size(4), Bytes(5e6)).value, 3e-3);
}

TEST(MeasuredLinks, WhatWasNotMeasuredIsTheFormula) {
  const Profile profile = links();
  const MeasuredLinks measured(profile, kType);
  EXPECT_EQ(measured.all_reduce(group_of_size(2), Bytes(2e6)),
            all_reduce(group_of_size(2), Bytes(2e6)));
  EXPECT_EQ(measured.all_gather(group_of_size(4), Bytes(2e6)),
            all_gather(group_of_size(4), Bytes(2e6)));
  const std::string other = "another";
  EXPECT_EQ(MeasuredLinks(profile, other).all_reduce(group_of_size(4), Bytes(2e6)),
            all_reduce(group_of_size(4), Bytes(2e6)));
}

TEST(MeasuredLinks, SendsAreInsideANodeOrBetweenTwo) {
  const Profile profile = links();
  const MeasuredLinks measured(profile, kType);
  EXPECT_EQ(measured.send(true, Bytes(1e6)), std::nullopt);
  EXPECT_EQ(measured.send(false, Bytes(1e6)), Seconds(4e-3));
}

TEST(MeasuredLinks, ExtrasAreThoseOfTheSlowestTypeInThePlan) {
  Cluster cluster = samples::cluster_of(samples::plain_device(), 1, 2);
  cluster.device_types.push_back(samples::a100());
  cluster.devices[1].type = 1;
  Profile profile;
  profile.extras = {{"loading", "plain", Seconds(1)},
                    {"logging", "plain", Seconds(2)},
                    {"loading", "A100", Seconds(2.5)},
                    {"loading", "elsewhere", Seconds(100)}};
  Plan plan;
  plan.stages.push_back({.spans = {}, .devices = {DeviceId{1}}, .shares = {}});
  EXPECT_EQ(measured_extras(profile, cluster, plan), Seconds(2.5));
  plan.stages.push_back({.spans = {}, .devices = {DeviceId{0}}, .shares = {}});
  EXPECT_EQ(measured_extras(profile, cluster, plan), Seconds(3));
}

}  // namespace
}  // namespace plait
