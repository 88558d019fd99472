#include "io/profile/profile_json.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/format/test_folder.h"

namespace plait {
namespace {

Profile full_profile() {
  Profile profile;
  ComputeSample all;
  all.forward = Seconds(1.0 / 3);
  all.backward = Seconds(2.0 / 3);
  all.communication_inside = true;
  all.synchronised = true;
  all.saved_activations = Bytes(1e9 / 7);
  all.input = Bytes(10);
  all.workspace = Bytes(20);
  all.memory = Bytes(30);
  all.optimizer = Seconds(1e-5);
  profile.compute[{"decoder", "T4", 2, 4, 2048, 1}] = all;
  ComputeSample sum;
  sum.both = Seconds(0.1);
  profile.compute[{"head", "T4"}] = sum;
  profile.collectives[{"all_reduce", "T4", 1, 4}] = {{Bytes(1e6), Seconds(1e-3)},
                                                     {Bytes(2e6), Seconds(2e-3)}};
  profile.extras.push_back({"data loading", "T4", Seconds(0.01)});
  profile.provenance = {"amp", "plait import", {{"plait", "1"}}, {"a note"}};
  return profile;
}

std::string complaint(const std::string& text) {
  const samples::TestFolder folder;
  folder.write("profile.json", text);
  try {
    read_profile_file(folder.path("profile.json"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// A file with one point of compute.
std::string with_point(const std::string& members) {
  return R"({"plait_profile": 1, "compute": [{"unit": "decoder", "device_type": "T4", )" + members +
         "}]}";
}

TEST(ProfileJson, AFileGivesTheProfileBackToTheLastBit) {
  const samples::TestFolder folder;
  const Profile profile = full_profile();
  folder.write("profile.json", profile_file_to_json(profile));
  EXPECT_EQ(read_profile_file(folder.path("profile.json")), profile);
}

TEST(ProfileJson, OmittedDegreesAreOne) {
  const samples::TestFolder folder;
  folder.write("profile.json", with_point(R"("forward_s": 0.5)"));
  const Profile profile = read_profile_file(folder.path("profile.json"));
  EXPECT_EQ(profile.compute.at({"decoder", "T4", 1, 1, 0, 0}).forward, Seconds(0.5));
}

TEST(ProfileJson, ComplaintsNameTheFileAndThePlace) {
  EXPECT_NE(complaint("{}").find("is not a profile"), std::string::npos);
  EXPECT_NE(complaint(R"({"plait_profile": 2})").find("#/plait_profile"), std::string::npos);
  EXPECT_NE(complaint(with_point(R"("forward_s": -1)")).find("#/compute/0/forward_s"),
            std::string::npos);
  EXPECT_NE(complaint(with_point(R"("foward_s": 1)")).find("forward_s"), std::string::npos);
  EXPECT_NE(complaint(with_point(R"("both_s": 1, "forward_s": 1)")).find("not all of them"),
            std::string::npos);
  EXPECT_NE(complaint(with_point(R"("backward_s": 1)")).find("needs forward_s"), std::string::npos);
  EXPECT_NE(complaint(with_point(R"("tensor": 0)")).find("#/compute/0/tensor"), std::string::npos);
  EXPECT_NE(complaint(R"({"plait_profile": 1, "compute": [
      {"unit": "a", "device_type": "T4"}, {"unit": "a", "device_type": "T4"}]})")
                .find("twice"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"plait_profile": 1, "collectives": [{"collective": "all_reduce",
      "device_type": "T4", "nodes": 1, "devices_per_node": 2,
      "points": [{"size_B": 2, "time_s": 1}, {"size_B": 2, "time_s": 1}]}]})")
                .find("ascend"),
            std::string::npos);
}

}  // namespace
}  // namespace plait
