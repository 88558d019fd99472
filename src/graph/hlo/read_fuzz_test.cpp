// Texts that are nearly HLO: whatever they say, they are read or refused with a message.

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "graph/analysis.h"
#include "graph/sample_programs.h"

namespace plait::graph {
namespace {

using samples::example;

// A few changes: bytes, words of HLO put in, parts left out, doubled or cut off.
std::string damaged(std::string text, std::mt19937& random) {
  const char* const words[] = {"{",           "}",
                               "(",           ")",
                               ",",           "=",
                               "dot(",        "f32[",
                               "]",           "ROOT ",
                               "%",           "\"",
                               "/*",          "dimensions={9,9,9}",
                               "-1",          "99999999999999999999",
                               "while(",      "to_apply=",
                               "\n",          "0",
                               "[0,0]",       "{...}",
                               "reshape(",    "tuple(",
                               "index=",      "s4[3]",
                               "parameter(7)"};
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = random() % text.size();
    switch (random() % 5) {
      case 0:
        text[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        text.insert(at, words[random() % std::size(words)]);
        break;
      case 2:
        text.erase(at, 1 + random() % 40);
        break;
      case 3:
        text.insert(at, text.substr(at, random() % 200));
        break;
      default:
        text.replace(at, 1, std::to_string(random() % 1000));
    }
  }
  if (random() % 8 == 0) text.resize(random() % (text.size() + 1));
  return text;
}

void read_damaged(const std::string& text, int count, int seed) {
  std::mt19937 random(seed);
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    try {
      analyze(damaged(text, random), "damaged");
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("damaged:"), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(HloFuzz, DamagedTextIsReadOrRefused) { read_damaged(example("bert.hlo"), 300, 1); }

TEST(SlowHloFuzz, MuchDamagedTextIsReadOrRefused) {
  for (const char* name : {"gpt.hlo", "moe.hlo", "llama_scanned.hlo"})
    read_damaged(example(name), 5000, 2);
}

TEST(HloFuzz, LongTextIsReadInLinearTime) {
  // 50,000 instructions in a chain; a quadratic reader would not come to an end.
  std::string text = "HloModule long\n\nENTRY main {\n  x0 = f32[8] parameter(0)\n";
  for (int i = 1; i < 50000; ++i)
    text += "  x" + std::to_string(i) + " = f32[8] add(x" + std::to_string(i - 1) + ", x0)\n";
  text += "  ROOT r = f32[8] negate(x49999)\n}\n";
  EXPECT_EQ(analyze(text, "long").program.nodes.size(), 50001u);
}

}  // namespace
}  // namespace plait::graph
