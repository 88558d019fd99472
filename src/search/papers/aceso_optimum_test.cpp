#include "search/papers/aceso_optimum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/drawn_by.h"

namespace plait {
namespace {

constexpr double kMb = 0x1p20;

const std::vector<std::string> kOps{"encoder-embedding",   "enc-1st-layernorm", "enc-attention-qkv",
                                    "enc-attention-dense", "enc-1st-layernorm", "enc-attention-qkv",
                                    "enc-attention-dense", "gpt-post-process"};

AcesoTable random_table(unsigned seed) {
  std::mt19937 random(seed);
  const auto draw = [&](double least, double most) {
    return least + (most - least) * static_cast<double>(random() % 1000) / 1000;
  };
  AcesoTable table;
  table.name = "gpt_random";
  table.intra_node = {10, 10, 10, 10, 10, 10, 10};
  for (const int tensor : {1, 2})
    for (const std::string& name : kOps) {
      AcesoOp& op = table.points[{1, tensor, 0}][name];
      op.forward = Seconds(draw(1e-3, 9e-3) / tensor);
      op.backward = Seconds(draw(1e-3, 9e-3) / tensor);
      op.input = op.output = Bytes(draw(1, 40) * kMb);
      op.weights = Bytes(draw(1, 20) * kMb / tensor);
      op.activations = Bytes(draw(1, 90) * kMb / tensor);
    }
  return table;
}

// The fastest of all pipelines of two stages on two devices, or of one on both: every cut, every
// set of recomputed ops.
double brute_force(const AcesoFormula& formula, const AcesoTask& task) {
  const int count = formula.op_count();
  double best = HUGE_VAL;
  const auto look = [&](std::vector<AcesoStage> stages, unsigned bits) {
    for (int op = 0; op < count; ++op) {
      AcesoStage& stage = stages[op < stages[0].ops.end ? 0 : 1];
      if ((bits >> op & 1) != 0 && !formula.rule(op).recomputable) return;
      stage.choices[op - stage.ops.begin].recomputed = (bits >> op & 1) != 0;
    }
    const auto cost = formula.cost(stages, task.global_batch, 1);
    if (cost && cost->memory <= task.memory) best = std::min(best, cost->step.value);
  };
  const auto stage = [&](int begin, int end, int devices, int tensor) {
    return AcesoStage{
        {begin, end}, devices, std::vector<AcesoChoice>(end - begin, {tensor, 1, 0, false})};
  };
  for (unsigned bits = 0; bits < 1U << count; ++bits) {
    look({stage(0, count, 2, 2)}, bits);
    for (int cut = 1; cut < count; ++cut)
      look({stage(0, cut, 1, 1), stage(cut, count, 1, 1)}, bits);
  }
  return best;
}

TEST(AcesoOptimum, IsThatOfAllPipelinesButForTheRoundnessOfRecompute) {
  int exact = 0;
  int all = 0;
  const unsigned first = 40 * static_cast<unsigned>(drawn_by());
  for (unsigned seed = first; seed < first + 40; ++seed) {
    const AcesoTable table = random_table(seed);
    const AcesoFormula formula(table, kOps, 2);
    AcesoTask task{
        .global_batch = 8, .devices = 2, .memory = Bytes((560.0 + 25 * (seed % 12)) * kMb)};
    Problem problem;
    SearchContext context{problem, {}, {}, {}, {}};
    context.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
    const AcesoOptimum found = search_aceso_optimum(formula, task, context);
    const double best = brute_force(formula, task);
    if (!(best < HUGE_VAL)) {
      EXPECT_TRUE(found.plans.empty()) << seed;
      continue;
    }
    ++all;
    if (found.plans.empty()) continue;
    const double own = found.plans[0].cost.step.value;
    EXPECT_LE(found.plans[0].cost.memory, task.memory);
    EXPECT_GE(own, best * (1 - 1e-9)) << seed;
    EXPECT_LE(own, best * 1.15) << seed;
    if (own <= best * (1 + 1e-6)) ++exact;
  }
  RecordProperty("exact", exact);
  EXPECT_GT(all, 25);
  EXPECT_GE(exact, all * 3 / 5);  // menus are hulls: not every set of ops is on them
}

// A model of equal layers costs hardly more stages than one a quarter as long.
TEST(AcesoOptimum, EqualLayersAreCostedOnce) {
  const AcesoTable table = random_table(5);
  const auto evaluations = [&](int layers) {
    std::vector<std::string> ops{"encoder-embedding"};
    for (int i = 0; i < layers; ++i)
      for (const char* name : {"enc-1st-layernorm", "enc-attention-qkv", "enc-attention-dense"})
        ops.emplace_back(name);
    ops.emplace_back("gpt-post-process");
    const AcesoFormula formula(table, ops, 2);
    const AcesoTask task{.global_batch = 8, .devices = 2, .memory = Bytes(1e9 * layers)};
    Problem problem;
    SearchContext context{problem, {}, {}, {}, {}};
    context.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
    return search_aceso_optimum(formula, task, context).evaluations;
  };
  EXPECT_LT(evaluations(400), 6 * evaluations(100));
}

}  // namespace
}  // namespace plait
