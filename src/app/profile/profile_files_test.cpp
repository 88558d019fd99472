#include "app/profile/profile_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "app/plan/sample_requests.h"
#include "app/profile/measure.h"
#include "io/format/text_file.h"
#include "io/profile/profile_json.h"

namespace plait {
namespace {

using samples::complaint;

// A file with one collective of 4 ranks that takes `seconds` for 1 MiB.
std::string profile_file(const std::string& name, const std::string& collective, double seconds) {
  Profile profile;
  CollectiveKey key;
  key.collective = collective;
  key.device_type = "T4";
  key.nodes = 1;
  key.devices_per_node = 4;
  profile.collectives[key] = {{Bytes(0x1p20), Seconds(seconds)}};
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "_" + name))
          .string();
  write_text_file(path, profile_file_to_json(profile));
  return path;
}

TEST(ProfileFiles, TheLaterOfTwoProfilesCountsWhereBothHaveAPoint) {
  const std::string a = profile_file("a.json", "all_reduce", 0.001);
  const std::string b = profile_file("b.json", "all_reduce", 0.002);
  const std::string c = profile_file("c.json", "all_gather", 0.003);
  const MergeProfilesAnswer all = answer(MergeProfilesRequest{{a, c, b}});
  ASSERT_EQ(all.profile.collectives.size(), 2u);
  for (const auto& [key, curve] : all.profile.collectives)
    EXPECT_DOUBLE_EQ(curve.front().time.value, key.collective == "all_reduce" ? 0.002 : 0.003);
  EXPECT_EQ(as_text(all), "0 units, 0 ops, 2 curves");
}

TEST(ProfileFiles, ADifferenceIsRelativeToTheFirst) {
  const std::string a = profile_file("a.json", "all_reduce", 0.001);
  const std::string b = profile_file("b.json", "all_reduce", 0.0015);
  const DiffProfilesAnswer both = answer(DiffProfilesRequest{{a, b}});
  ASSERT_EQ(both.comparison.both.size(), 1u);
  EXPECT_NEAR(both.comparison.largest(), 0.5, 1e-9);
  EXPECT_NE(as_text(both, {}).find("largest 50.0 %"), std::string::npos) << as_text(both, {});
}

TEST(ProfileFiles, OneFileIsNotEnough) {
  EXPECT_EQ(complaint([] { answer(MergeProfilesRequest{{"a.json"}}); }),
            "plait profile merge: needs two or more profile files");
  EXPECT_EQ(complaint([] { answer(DiffProfilesRequest{{"a.json"}}); }),
            "plait profile diff: needs two profile files");
}

TEST(MeasureRequest, SaysWhatItLacksBeforeAnythingIsMeasured) {
  EXPECT_EQ(complaint([] { answer(MeasureRequest{}, {}); }),
            "plait profile: give one of `model` M, `ops` FILE and `comm`");
  MeasureRequest request;
  request.model = "gpt2";
  request.format = "csv";
  EXPECT_EQ(complaint([&] { answer(request, {}); }),
            "`format`: must be one of native, metis, aceso, is 'csv'");
}

}  // namespace
}  // namespace plait
