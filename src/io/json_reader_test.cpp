#include "io/json_reader.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace plait {
namespace {

std::string complaint(const auto& action) {
  try {
    action();
  } catch (const InputError& e) {
    return e.what();
  }
  return "no complaint";
}

TEST(JsonReader, NamesFileAndPointer) {
  const JsonValue root = parse_json("c.json", R"({"nodes": [{"gpus": 8}, {"gpus": -1}]})");
  EXPECT_EQ(complaint([&] { root.at("nodes").items()[1].at("gpus").integer(1, 64); }),
            "c.json#/nodes/1/gpus: must be a whole number from 1 to 64, is -1");
}

TEST(JsonReader, SuggestsTheNearestKey) {
  const JsonValue root = parse_json("c.json", R"({"memmory_GiB": 8})");
  EXPECT_EQ(complaint([&] {
              root.allow_only({"name", "memory_GiB"});
            }),
            "c.json#: unknown key 'memmory_GiB' (did you mean 'memory_GiB'?)");
}

TEST(JsonReader, SuggestsTheKeyWithItsUnit) {
  EXPECT_EQ(nearest_word("bandwidth", {"latency_us", "bandwidth_GBps"}), "bandwidth_GBps");
  EXPECT_EQ(nearest_word("net", {"network"}), "");
}

TEST(JsonReader, RefusesDuplicateKeysAndTruncatedText) {
  EXPECT_EQ(complaint([] { parse_json("a", R"({"x": 1, "x": 2})"); }), "a: key 'x' appears twice");
  EXPECT_NE(complaint([] { parse_json("a", "{\n\"x\": "); }).find("line 2"), std::string::npos);
}

TEST(JsonReader, RefusesDeepNestingWithoutOverflowingTheStack) {
  EXPECT_NE(complaint([] { parse_json("a", std::string(1 << 20, '[')); }), "no complaint");
}

TEST(JsonReader, ReadsALongListOfObjectsInLinearTime) {
  // 200,000 objects took a minute when each was compared with all before it.
  std::string text = "[{\"a\": 1}";
  for (int i = 1; i < 200'000; ++i) text += ", {\"a\": 1}";
  EXPECT_EQ(parse_json("a", text + "]").items().size(), 200'000u);
}

TEST(JsonReader, RefusesAnObjectWithTooManyKeys) {
  std::string text = "{\"0\": 1";
  for (int i = 1; i <= 20'000; ++i) text += ", \"" + std::to_string(i) + "\": 1";
  EXPECT_EQ(complaint([&] { parse_json("a", text + "}"); }),
            "a: an object has more than 20000 keys");
}

TEST(JsonReader, RefusesNumbersThatAreNotFinite) {
  EXPECT_NE(complaint([] { parse_json("a", R"({"x": 1e999})").at("x").number(); }), "no complaint");
  EXPECT_NE(complaint([] { parse_json("a", R"({"x": NaN})"); }), "no complaint");
}

}  // namespace
}  // namespace plait
