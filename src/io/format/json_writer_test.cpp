#include "io/format/json_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "io/format/json_reader.h"

namespace plait {
namespace {

TEST(JsonWriter, EscapesTextAndKeepsOrder) {
  EXPECT_EQ(JsonObject().text("b\"", "line\nend").number("a", 2).boolean("c", false).str(),
            R"({"b\"": "line\nend", "a": 2, "c": false})");
}

TEST(JsonWriter, ReplacesWhatIsNotUtf8) { EXPECT_EQ(json_text("a\xff"), "\"a\xef\xbf\xbd\""); }

TEST(JsonWriter, EveryDoubleReadsBackToTheLastBit) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    auto value = std::bit_cast<double>(bits);
    if (i % 3 == 0) value = static_cast<double>(random() >> (random() % 64));
    if (!std::isfinite(value)) continue;
    for (const std::string& text : {json_number(value), lay_out_json(json_number(value))}) {
      const double again = parse_json("n", text).number();
      EXPECT_EQ(std::bit_cast<std::uint64_t>(again), std::bit_cast<std::uint64_t>(value)) << text;
    }
  }
  EXPECT_EQ(json_number(-0.0), "-0.0");
  EXPECT_EQ(json_number(124439808), "124439808");
}

TEST(JsonWriter, BreaksOnlyWhatDoesNotFit) {
  EXPECT_EQ(lay_out_json(R"({"a":{"b":[1,2]},"long":[100,200,300,400],"e":[]})", 21),
            "{\n"
            "  \"a\": {\"b\": [1, 2]},\n"
            "  \"long\": [\n"
            "    100, 200, 300,\n"
            "    400\n"
            "  ],\n"
            "  \"e\": []\n"
            "}\n");
}

}  // namespace
}  // namespace plait
