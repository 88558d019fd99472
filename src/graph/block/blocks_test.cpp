#include "graph/block/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>

#include "graph/analysis.h"
#include "graph/hlo/read_text.h"
#include "graph/hlo/write_text.h"
#include "graph/sample_programs.h"
#include "source_tree.h"

namespace plait::graph {
namespace {

using samples::example;

std::vector<std::size_t> space(const Analysis& analysis, int first, int count) {
  std::vector<std::size_t> sizes;
  for (int b = first; b < first + count; ++b)
    sizes.push_back(analysis.blocks.blocks[b].roles.size());
  return sizes;
}

// Role of a class in an op: 0 columns, 1 rows, 2 inner, as CFP numbers the strategies of a product.
int strategy_in(const Analysis& analysis, int node, int cls) {
  const Rule& rule = analysis.rules[node];
  const std::vector<int>& classes = analysis.blocks.classes[node];
  const auto in = [&](const TensorFactors& tensor) {
    for (const auto& dim : tensor)
      for (const int f : dim)
        if (classes[f] == cls) return true;
    return false;
  };
  if (in(rule.operands[0]) && in(rule.operands[1])) return 2;
  return in(rule.operands[0]) ? 1 : 0;
}

// y = xW: dividing the columns of the product divides the columns of the weight gradient and the
// inner range of the input gradient; and so on (CFP's README prints 0,1,2 / 0,2,1 / 2,1,0).
TEST(Blocks, AProductAndItsGradientsAreDividedTogether) {
  const Analysis analysis = analyze(samples::mlp_step(3, 64, 32), "mlp");
  ASSERT_EQ(analysis.blocks.blocks.size(), 3u);
  const Block& block = analysis.blocks.blocks[1];
  ASSERT_EQ(block.contractions.size(), 3u);
  const auto named = [&](const std::string& name) {
    return *std::ranges::find(block.contractions, name,
                              [&](int n) { return analysis.program.nodes[n].source->name; });
  };
  const auto triple = [&](int role) {
    const int cls = block.roles[role].classes.front();
    return std::vector<int>{strategy_in(analysis, named("h2"), cls),
                            strategy_in(analysis, named("u2"), cls),
                            strategy_in(analysis, named("g1"), cls)};
  };
  ASSERT_EQ(block.roles[0].name, "columns");
  EXPECT_EQ(triple(0), (std::vector<int>{0, 0, 2}));
  ASSERT_EQ(block.roles[1].name, "rows");
  EXPECT_EQ(triple(1), (std::vector<int>{1, 2, 1}));
  ASSERT_EQ(block.roles[2].name, "inner");
  EXPECT_EQ(triple(2), (std::vector<int>{2, 1, 0}));
}

TEST(Blocks, LossForwardBackwardAndOptimizerAreFound) {
  const Analysis analysis = analyze(samples::mlp_step(2, 64, 32), "mlp");
  ASSERT_GE(analysis.phases.loss, 0);
  EXPECT_EQ(analysis.program.nodes[analysis.phases.loss].source->name, "loss");
  for (std::size_t n = 0; n < analysis.program.nodes.size(); ++n) {
    const std::string& name = analysis.program.nodes[n].source->name;
    std::optional<Phase> expected;
    if (name[0] == 'h') expected = Phase::forward;
    if (name[0] == 'u' || name[0] == 'd') expected = Phase::backward;
    if (name[0] == 'v') expected = Phase::optimizer;
    EXPECT_EQ(analysis.phases.of_node[n], expected.value_or(analysis.phases.of_node[n])) << name;
  }
}

TEST(Blocks, HaveTheNamesOfTheirWeights) {
  // y = x w, where w is trained, and z = y f, where f is not.
  const std::string text =
      "HloModule m\n\nENTRY main {\n  w = f32[8,8] parameter(0)\n  x = f32[4,8] parameter(1)\n"
      "  f = f32[8,8] parameter(2)\n  y = f32[4,8] dot(x, w), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0}\n  t = f32[8,8] transpose(f), dimensions={1,0}\n"
      "  z = f32[4,8] dot(y, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "  g = f32[8,8] dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
      "  v = f32[8,8] subtract(w, g)\n  ROOT r = (f32[8,8], f32[4,8]) tuple(v, z)\n}\n";
  const auto names = [&](const std::vector<std::string>& arguments) {
    Analysis analysis = analyze(text, "m");
    name_by_weights(analysis, arguments);
    std::vector<std::string> all;
    for (const Block& block : analysis.blocks.blocks) all.push_back(block.name);
    return all;
  };
  EXPECT_EQ(names({"model/in", "batch", "model/frozen"}),
            (std::vector<std::string>{"model/in", "model/frozen"}));
  EXPECT_EQ(names({}), (std::vector<std::string>{"w", "f"}));  // as the program calls them
}

TEST(Blocks, AGptLayerHasFourBlocksOfThreeStrategies) {
  const Analysis analysis = analyze(example("gpt.hlo"), "gpt.hlo");
  // Embedding, two layers of four, head.
  ASSERT_EQ(analysis.blocks.blocks.size(), 10u);
  EXPECT_EQ(space(analysis, 1, 4), (std::vector<std::size_t>{3, 3, 3, 3}));
  EXPECT_EQ(space(analysis, 5, 4), (std::vector<std::size_t>{3, 3, 3, 3}));
  // Attention: the product with the weights, scores and mixing, and their gradients.
  EXPECT_EQ(analysis.blocks.blocks[1].contractions.size(), 9u);
  for (int b = 0; b < 4; ++b)
    EXPECT_EQ(analysis.blocks.blocks[1 + b].fingerprint, analysis.blocks.blocks[5 + b].fingerprint);
}

TEST(Blocks, ExpertsAreDividedInFourWaysAndTheLayerBehindInThree) {
  const Analysis analysis = analyze(example("moe.hlo"), "moe.hlo");
  ASSERT_EQ(analysis.blocks.blocks.size(), 8u);
  EXPECT_EQ(space(analysis, 0, 4), (std::vector<std::size_t>{3, 3, 3, 4}));
  EXPECT_EQ(space(analysis, 4, 4), (std::vector<std::size_t>{3, 3, 3, 3}));
  EXPECT_EQ(analysis.segments.kinds, 2);
}

TEST(Blocks, AScanOverLayersHasTheBlocksOfOneLayerAndItsTrips) {
  const Analysis analysis = analyze(example("llama_scanned.hlo"), "llama.hlo");
  ASSERT_EQ(analysis.blocks.blocks.size(), 6u);  // embedding, four of the layer, head
  EXPECT_EQ(space(analysis, 1, 4), (std::vector<std::size_t>{3, 3, 3, 3}));
  ASSERT_EQ(analysis.segments.segments.size(), 3u);
  EXPECT_EQ(analysis.segments.segments[1].trips, 3);
  // Query, key, value, scores, mixing: forward, again in the backward pass, and gradients.
  EXPECT_EQ(analysis.blocks.blocks[1].contractions.size(), 20u);
}

TEST(Blocks, MoreLayersMakeMoreSegmentsOfTheSameKinds) {
  const int few = analyze(samples::mlp_step(6, 64, 32), "mlp").segments.kinds;
  const Analysis many = analyze(samples::mlp_step(60, 64, 32), "mlp");
  EXPECT_EQ(many.segments.kinds, few);
  EXPECT_EQ(many.blocks.blocks.size(), 60u);
}

// The same program with other names and another order of instructions.
std::string shuffled(const std::string& text, int seed) {
  Module module = read_hlo(text, "text");
  std::mt19937 random(seed);
  for (Computation& computation : module.computations) {
    std::vector<Instruction>& all = computation.instructions;
    std::vector<int> place(all.size(), -1);
    std::vector<Instruction> moved;
    std::vector<int> left(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) left[i] = static_cast<int>(i);
    while (!left.empty()) {
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < left.size() && ready.size() < 8; ++i)
        if (std::ranges::all_of(all[left[i]].operands, [&](int o) { return place[o] >= 0; }))
          ready.push_back(i);
      const std::size_t pick = ready[random() % ready.size()];
      const int chosen = left[pick];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(pick));
      place[chosen] = static_cast<int>(moved.size());
      moved.push_back(all[chosen]);
      moved.back().name = "n" + std::to_string(moved.size());
      for (int& operand : moved.back().operands) operand = place[operand];
    }
    computation.root = place[computation.root];
    for (int& parameter : computation.parameters) parameter = place[parameter];
    all = std::move(moved);
  }
  return write_hlo(module);
}

TEST(Blocks, NamesAndOrderOfInstructionsChangeNothing) {
  for (const std::string& text :
       {example("gpt.hlo"), example("moe.hlo"), example("llama_scanned.hlo")}) {
    const Analysis before = analyze(text, "before");
    for (int seed = 0; seed < 3; ++seed) {
      const Analysis after = analyze(shuffled(text, seed), "after");
      ASSERT_EQ(after.blocks.blocks.size(), before.blocks.blocks.size());
      for (std::size_t b = 0; b < before.blocks.blocks.size(); ++b) {
        const Block& one = before.blocks.blocks[b];
        const Block& other = after.blocks.blocks[b];
        EXPECT_EQ(other.fingerprint, one.fingerprint);
        EXPECT_EQ(other.nodes.size(), one.nodes.size());
        ASSERT_EQ(other.roles.size(), one.roles.size());
        for (std::size_t r = 0; r < one.roles.size(); ++r)
          EXPECT_EQ(other.roles[r].sizes, one.roles[r].sizes);
      }
      EXPECT_EQ(after.segments.kinds, before.segments.kinds);
    }
  }
}

TEST(Blocks, TheSharedTrainingStepHasItsFiveLayerBlocksInTheLoop) {
  const std::string path =
      source_dir() + "/../shared/data/hlo/nv_maxtext_1n1g_jit_train_step_before_optimization.hlo";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  const Analysis analysis = analyze(text.str(), path);
  // Embedding and head outside; attention, its output, gate and up, and down inside, run 8 times.
  ASSERT_EQ(analysis.blocks.blocks.size(), 6u);
  for (int b = 1; b < 5; ++b) EXPECT_EQ(analysis.program.trips(analysis.blocks.blocks[b].key), 8);
  EXPECT_GE(analysis.phases.loss, 0);
}

}  // namespace
}  // namespace plait::graph
