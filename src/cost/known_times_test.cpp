#include "cost/known_times.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"

namespace plait {
namespace {

Problem one_op_on_two_types() {
  Problem problem;
  problem.model.name = "net";
  LayerKind kind;
  kind.name = "enc-MLP-gelu";
  kind.ops.emplace_back().name = kind.name;
  problem.model.kinds = {kind};
  problem.model.units = {0};
  problem.cluster.device_types.resize(2);
  problem.cluster.device_types[0].name = "V100";
  problem.cluster.device_types[1].name = "T4";
  problem.cluster.devices = {{0, 0}, {1, 0}};
  for (const int tensor : {1, 2})
    problem.profile.compute[{.unit = kind.name, .device_type = "V100", .tensor = tensor}].forward =
        Seconds(1);
  return problem;
}

TEST(KnownTimes, AnOpWithoutShapeMustBeMeasuredOnEveryDeviceType) {
  Problem problem = one_op_on_two_types();
  EXPECT_EQ(samples::complaint([&] { refuse_unknown_times(problem); }),
            "net: enc-MLP-gelu has no shape and was not measured on T4: times of it are missing at "
            "tensor degree 1, 2");
  problem.cluster.devices.pop_back();
  refuse_unknown_times(problem);
  problem.profile.compute.clear();
  EXPECT_EQ(samples::complaint([&] { refuse_unknown_times(problem); }),
            "net: enc-MLP-gelu has no shape and was not measured on V100: times of it are missing "
            "at every tensor degree");
  problem.model.kinds[0].ops[0].rows = 8;
  refuse_unknown_times(problem);
}

TEST(KnownTimes, APlanHasTheDegreesThatWereMeasured) {
  Problem problem = one_op_on_two_types();
  problem.cluster.devices = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
  EXPECT_EQ(measured_degrees(problem, "V100"), (std::set<int>{1, 2}));
  EXPECT_EQ(measured_degrees(problem, "T4"), std::set<int>{});
  Plan plan;
  plan.stages = {{{{.units = {0, 1}, .tensor = 2, .data = 1}}, {DeviceId{0}, DeviceId{1}}, {}}};
  refuse_unknown_times(problem, plan);
  plan.stages[0].spans[0].tensor = 4;
  EXPECT_EQ(
      samples::complaint([&] { refuse_unknown_times(problem, plan); }),
      "net: enc-MLP-gelu has no shape and was not measured at tensor degree 4 on V100, but at "
      "1, 2");
  problem.model.kinds[0].ops[0].rows = 8;
  EXPECT_EQ(measured_degrees(problem, "V100"), std::nullopt);
  refuse_unknown_times(problem, plan);
}

}  // namespace
}  // namespace plait
