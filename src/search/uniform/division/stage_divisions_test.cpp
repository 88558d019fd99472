#include "search/uniform/division/stage_divisions.h"

#include <gtest/gtest.h>

#include "cost/engine.h"
#include "cost/stage_cost.h"
#include "plan/sample_problems.h"
#include "search/space/units/units_recomputed.h"
#include "search/uniform/division/chunk_layers.h"

namespace plait {
namespace {

constexpr int kDividedLayers = 10;
constexpr int kDividedStages = 2;
constexpr int kDividedChunks = 2;

TransformerConfig equal_layers() { return samples::gpt(kDividedLayers, 1024, 16, 1024); }

// A mixture of experts whose first layers are dense.
TransformerConfig several_kinds() {
  TransformerConfig config = samples::llama(kDividedLayers, 1024, 2816, 16, 16);
  config.moe.experts = 8;
  config.moe.top_k = 2;
  config.moe.ffn = 1024;
  config.moe.first_dense = 3;
  return config;
}

// Two stages of two devices, each on a node of its own, so that gradients are summed over a
// network.
struct DividedPipeline {
  explicit DividedPipeline(const TransformerConfig& config, int recomputed = 0)
      : problem(samples::problem_of(config, samples::cluster_of(samples::a100(), 4, 1),
                                    Job{.global_batch = 16})),
        engine(problem),
        space(problem, {.recompute = Recompute::none}),
        layers(layers_by_kind(problem.model)),
        tables(
            [this](const ReplicaShape& shape) -> const UnitTable& { return engine.table(shape); }),
        first(recomputed) {}

  Stage stage(int s) const {
    Stage out;
    out.devices = {DeviceId(2 * s), DeviceId(2 * s + 1)};
    out.spans.push_back({.units = {0, problem.model.unit_count()}, .data = 2});
    return out;
  }

  RunCosts runs(int s) const {
    return {space,
            {Schedule::one_f_one_b, 4},
            SpanFrame(problem, {.micro_batches = 4}, stage(s).devices, 1, 2, {}, tables)};
  }

  StageDivisions divisions(int s, const RunCosts& costs) const {
    return stage_divisions({.runs = costs,
                            .model = problem.model,
                            .layers = *layers,
                            .recompute_first = first,
                            .first = s == 0,
                            .last = s + 1 == kDividedStages,
                            .chunks = kDividedChunks,
                            .most_layers = kDividedLayers});
  }

  // The plan with these layers on each chunk, in the order of the pipeline.
  Plan plan(const std::vector<int>& sizes) const {
    Plan out;
    out.micro_batches = 4;
    for (int s = 0; s < kDividedStages; ++s) out.stages.push_back(stage(s));
    std::vector<int> begins{0};
    for (std::size_t k = 0; k + 1 < sizes.size(); ++k)
      begins.push_back(std::max(1, begins.back()) + sizes[k]);
    out = recut(out, Schedule::interleaved, begins, problem.model.unit_count());
    if (first > 0) recompute_first(problem.model, first, out);
    return out;
  }

  // Calls with a chunk's own division and what the engine says of its stage.
  void compare(const auto& look) const {
    const RunCosts first_runs = runs(0);
    const RunCosts last_runs = runs(1);
    const StageDivisions all[]{divisions(0, first_runs), divisions(1, last_runs)};
    int compared = 0;
    for (int n = 1; n < kDividedLayers; ++n)
      for (const LayerDivision& a : all[0][n])
        for (const LayerDivision& b : all[1][kDividedLayers - n]) {
          const Plan own = plan({a.layers[0], b.layers[0], a.layers[1], b.layers[1]});
          look(a, stage_cost(problem, own, 0, tables));
          look(b, stage_cost(problem, own, 1, tables));
          ++compared;
        }
    EXPECT_GE(compared, 7);
  }

  Problem problem;
  CostEngine engine;
  Space space;
  std::optional<LayersByKind> layers;
  TableSource tables;
  int first;
};

double finish_of(const StageCost& cost) { return (cost.gradient_sync + cost.optimizer).value; }

void expect_equal(const LayerDivision& own, const StageResult& real) {
  for (int c = 0; c < kDividedChunks; ++c) {
    const double backward = (real.chunk_backward[c] + real.chunk_weight_gradient[c]).value;
    EXPECT_NEAR(own.forward[c], real.chunk_forward[c].value, 1e-9);
    EXPECT_NEAR(own.backward[c], backward, 1e-9);
  }
  EXPECT_NEAR(own.finish, finish_of(real.cost), 1e-9);
}

TEST(StageDivisions, OfEqualLayersTakeWhatTheEngineSays) {
  DividedPipeline(equal_layers()).compare(expect_equal);
}

TEST(StageDivisions, OfEqualLayersThatAreRecomputedTakeWhatTheEngineSays) {
  DividedPipeline(equal_layers(), 2).compare(expect_equal);
}

void expect_no_more(const LayerDivision& own, const StageResult& real) {
  for (int c = 0; c < kDividedChunks; ++c) {
    const double backward = (real.chunk_backward[c] + real.chunk_weight_gradient[c]).value;
    EXPECT_LE(own.forward[c], real.chunk_forward[c].value * (1 + 1e-9));
    EXPECT_LE(own.backward[c], backward * (1 + 1e-9));
  }
  EXPECT_LE(own.finish, finish_of(real.cost) * (1 + 1e-9));
  EXPECT_GE(own.finish, 0.1 * finish_of(real.cost));
}

TEST(StageDivisions, OfSeveralKindsOfLayerTakeNoMoreThanTheEngineSays) {
  for (const int recomputed : {0, 1})
    DividedPipeline(several_kinds(), recomputed).compare(expect_no_more);
}

}  // namespace
}  // namespace plait
