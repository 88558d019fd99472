#include "io/framework/framework_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/sample_complaint.h"
#include "io/cluster/catalogue.h"
#include "io/format/test_folder.h"
#include "io/plan/problem_json.h"

namespace plait {
namespace {

using samples::complaint;

const Framework& nothing(const JsonValue& name) {
  throw InputError(name.where(), "nothing is known");
}

FrameworkEntry read(const std::string& text) {
  return read_framework_entry(parse_json("f.json", text), nothing);
}

// The values of an entry's own keys, as JSON.
std::set<std::string> keys_that_differ(const Framework& framework, const Framework& other) {
  const JsonValue own = parse_json("own", framework_json(framework));
  const JsonValue before = parse_json("other", framework_json(other));
  std::set<std::string> keys;
  for (const char* group : {"traits", "mixed_precision"})
    for (const auto& [key, value] : own.at(group).members()) {
      const JsonValue old = before.at(group).at(key);
      const bool same = value.is_number()    ? value.number() == old.number()
                        : value.is_boolean() ? value.boolean() == old.boolean()
                                             : value.text() == old.text();
      if (!same) keys.insert(key);
    }
  return keys;
}

TEST(Frameworks, EveryConstantThatIsNotInheritedHasASource) {
  const Catalogue& catalogue = builtin_catalogue();
  ASSERT_FALSE(catalogue.frameworks.empty());
  for (const FrameworkEntry& entry : catalogue.frameworks) {
    std::set<std::string> sourced;
    for (const FrameworkFit& fit : entry.fits) {
      EXPECT_FALSE(fit.on.empty() || fit.date.empty()) << entry.framework.name;
      sourced.insert(fit.of.begin(), fit.of.end());
    }
    const Framework& base =
        entry.like.empty() ? Framework{} : find_framework(catalogue, entry.like, "test");
    for (const std::string& key : keys_that_differ(entry.framework, base))
      EXPECT_TRUE(sourced.contains(key)) << entry.framework.name << ": " << key;
    EXPECT_FALSE(entry.what.empty()) << entry.framework.name;
  }
}

TEST(Frameworks, AreReadBackBitForBit) {
  for (const FrameworkEntry& entry : builtin_catalogue().frameworks)
    EXPECT_EQ(read(framework_json(entry.framework)).framework, entry.framework);
  Framework odd;
  odd.name = "odd";
  odd.traits.host_block = Seconds(0.1 + 0.2);
  odd.traits.send_limit = BytesPerSecond(1e9 / 3);
  odd.target = "jax";
  EXPECT_EQ(read(framework_json(odd)).framework, odd);
}

TEST(Frameworks, UnitsAreInTheKeys) {
  const Framework f = read(R"({"name": "f", "traits": {"host_block_us": 2822, "workspace_MiB": 3,
                              "host_split_ns": 20300, "send_limit_GiBps": 12.5}})")
                          .framework;
  EXPECT_EQ(f.traits.host_block, Seconds(2.822e-3));
  EXPECT_EQ(f.traits.host_split, Seconds(20.3e-6));
  EXPECT_EQ(f.traits.workspace, Bytes(3 * 0x1p20));
  EXPECT_EQ(f.traits.send_limit, BytesPerSecond(12.5 * 0x1p30));
}

TEST(Frameworks, UnknownKeysAndValuesAreNamed) {
  EXPECT_EQ(complaint([] { read(R"({"name": "f", "traits": {"host_blok_us": 1}})"); }),
            "f.json#/traits: unknown key 'host_blok_us' (did you mean 'host_block_us'?)");
  EXPECT_NE(complaint([] { read(R"({"name": "f", "mixed_precision": {"x": 1}})"); }), "");
  EXPECT_NE(complaint([] { read(R"({"name": "f", "traits": {"kernels": "fast"}})"); }), "");
  EXPECT_NE(complaint([] { read(R"({"name": "f", "traits": {"traffic": -1}})"); }), "");
  EXPECT_NE(complaint([] { read(R"({"name": "f", "traits": {"host_overlap_exponent": 0}})"); }),
            "");
  EXPECT_NE(complaint([] { read(R"({"name": "f", "fits": [{"of": ["x"], "on": "y"}]})"); }), "");
  EXPECT_NE(complaint([] { read(R"({"name": "f", "target": "megatrom"})"); }), "");
  EXPECT_NE(complaint([] { read(R"({"name": ""})"); }), "");
  EXPECT_NE(complaint([] { read(R"({"name": "f", "like": "g"})"); }), "");
}

Catalogue with_file(const std::string& text) {
  const samples::TestFolder folder;
  folder.write("frameworks.json", text);
  return load_catalogue({folder.path("frameworks.json")});
}

TEST(Frameworks, AUsersFileAddsAndChanges) {
  const Catalogue catalogue = with_file(
      R"({"plait_catalogue": 1, "frameworks": [
           {"name": "ours", "like": "base", "traits": {"traffic": 1.5}},
           {"name": "base", "like": "megatron-lm", "traits": {"host_block_us": 1000}},
           {"name": "fsdp", "like": "fsdp", "traits": {"traffic": 2}}]})");
  const Framework& ours = find_framework(catalogue, "ours", "test");
  EXPECT_EQ(ours.traits.traffic, 1.5);
  EXPECT_EQ(ours.traits.host_block, Seconds(1e-3));
  EXPECT_TRUE(ours.traits.scatters_sends);  // megatron-lm's
  EXPECT_EQ(find_framework(catalogue, "fsdp", "test").traits.traffic, 2);
  EXPECT_EQ(find_framework(builtin_catalogue(), "fsdp", "test").traits.traffic, 1);
  EXPECT_EQ(lookup_framework(builtin_catalogue(), "ours"), nullptr);
}

TEST(Frameworks, AnEntryIsNotLikeItself) {
  const auto message = [](const std::string& list) {
    return complaint([&] { with_file(R"({"plait_catalogue": 1, "frameworks": [)" + list + "]}"); });
  };
  EXPECT_NE(
      message(R"({"name": "a", "like": "b"}, {"name": "b", "like": "a"})").find("is like itself"),
      std::string::npos);
  EXPECT_NE(message(R"({"name": "a"}, {"name": "a"})"), "");
}

TEST(Frameworks, NamesAreFoundWhateverTheirCase) {
  const Catalogue& catalogue = builtin_catalogue();
  EXPECT_EQ(find_framework(catalogue, "Megatron_LM", "--framework").name, "megatron-lm");
  EXPECT_EQ(find_framework(catalogue, "", "--framework").name, "megatron");
  EXPECT_NE(complaint([&] {
              find_framework(catalogue, "megatro", "--framework");
            }).find("did you mean 'megatron'?"),
            std::string::npos);
  // Programs that run as one of them does have names, too.
  EXPECT_EQ(find_framework(builtin_catalogue(), "TorchTitan", "x").name, "fsdp-compile");
  EXPECT_EQ(find_framework(builtin_catalogue(), "nemo", "x").target, "megatron");
}

TEST(Frameworks, ProgramsThatRunAlikeAreAliases) {
  const Catalogue& catalogue = builtin_catalogue();
  EXPECT_EQ(find_framework(catalogue, "NeMo", "--framework").name, "megatron");
  EXPECT_EQ(find_framework(catalogue, "lit_gpt", "--framework").name, "fsdp");
  EXPECT_EQ(find_framework(catalogue, "huggingface", "--framework").name, "eager");
  EXPECT_NE(complaint([&] {
              find_framework(catalogue, "torchtun", "--framework");
            }).find("did you mean 'torchtune'?"),
            std::string::npos);
}

TEST(Frameworks, NoNameMeansTwoPrograms) {
  const Catalogue& catalogue = builtin_catalogue();
  for (const FrameworkEntry& entry : catalogue.frameworks) {
    EXPECT_EQ(lookup_framework(catalogue, entry.framework.name), &entry.framework);
    for (const std::string& alias : entry.aliases)
      EXPECT_EQ(lookup_framework(catalogue, alias), &entry.framework) << alias;
  }
}

// A plan file names what is built in and holds everything else.
TEST(Frameworks, JobsAreSavedWithAFrameworkThatIsNotBuiltIn) {
  Job job;
  job.global_batch = 8;
  job.framework = find_framework(builtin_catalogue(), "eager", "test");
  EXPECT_NE(dump_job(job).find("\"framework\": \"eager\""), std::string::npos);
  EXPECT_EQ(restore_job(parse_json("j", dump_job(job))), job);
  job.framework.traits.traffic = 3;
  EXPECT_NE(dump_job(job).find("\"traffic\": 3"), std::string::npos);
  EXPECT_EQ(restore_job(parse_json("j", dump_job(job))), job);
}

}  // namespace
}  // namespace plait
