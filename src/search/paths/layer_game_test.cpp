#include "search/paths/layer_game.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace plait {
namespace {

// A pipeline with layers of one kind, to be divided in all ways.
struct DrawnLayers {
  StepGraph::Shape shape;
  std::vector<StageDivisions> divisions;
  LayerPipeline pipeline;
};

LayerDivision equal_chunks(int layers, int chunks, double forward, double backward) {
  LayerDivision out;
  for (int c = 0; c < chunks; ++c) {
    out.layers.push_back(layers / chunks + (c < layers % chunks ? 1 : 0));
    out.forward.push_back(out.layers.back() * forward);
    out.backward.push_back(out.layers.back() * backward);
  }
  return out;
}

DrawnLayers drawn_layers(std::mt19937_64& random) {
  std::uniform_real_distribution<double> any(0, 1);
  DrawnLayers out;
  out.shape.stages = 2 + static_cast<int>(random() % 3);
  out.shape.chunks = 1 + static_cast<int>(random() % 2);
  out.shape.schedule = out.shape.chunks > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
  out.shape.micro_batches = out.shape.stages * (1 + static_cast<int>(random() % 3));
  for (int k = 0; k + 1 < out.shape.stages * out.shape.chunks; ++k) {
    out.shape.send.push_back(0.5 * any(random));
    out.shape.busy.push_back(out.shape.send.back());
  }
  const int positions = out.shape.stages * out.shape.chunks;
  out.pipeline.layers = positions + static_cast<int>(random() % 6);
  out.pipeline.after = any(random);
  for (int s = 0; s < out.shape.stages; ++s) {
    const double forward = 0.2 + any(random);
    const double backward = 0.2 + 2 * any(random);
    const double finish = 4 * any(random);
    const int most = std::max(out.pipeline.layers / out.shape.stages + out.shape.chunks,
                              out.pipeline.layers - static_cast<int>(random() % 4));
    StageDivisions own(most + 1);
    for (int n = out.shape.chunks; n <= most; ++n) {
      own[n].push_back(equal_chunks(n, out.shape.chunks, forward, backward));
      own[n].back().finish = n * finish;
    }
    out.divisions.push_back(std::move(own));
  }
  for (const StageDivisions& own : out.divisions) out.pipeline.stages.push_back({&own});
  return out;
}

// The shortest step over all ways to divide the layers that are left among the stages that are.
double shortest(StepGraph& graph, const LayerPipeline& pipeline, PipelineTimes times, int left) {
  const std::size_t stage = times.finish.size();
  if (stage == pipeline.stages.size())
    return left > 0 ? HUGE_VAL : graph.longest(times).length(times) + pipeline.after;
  double best = HUGE_VAL;
  const StageDivisions& all = *pipeline.stages[stage].divisions;
  for (int n = 0; n <= std::min(left, static_cast<int>(all.size()) - 1); ++n)
    for (const LayerDivision& way : all[n]) {
      PipelineTimes more = times;
      more.forward.insert(more.forward.end(), way.forward.begin(), way.forward.end());
      more.backward.insert(more.backward.end(), way.backward.begin(), way.backward.end());
      more.finish.push_back(way.finish);
      best = std::min(best, shortest(graph, pipeline, std::move(more), left - n));
    }
  return best;
}

TEST(LayerGame, IsNeverAboveTheBestOfAllDivisionsAndSeldomFarBelow) {
  std::mt19937_64 random(1);
  double ratios = 0;
  int found = 0;
  constexpr int kProblems = 120;
  for (int i = 0; i < kProblems; ++i) {
    const DrawnLayers drawn = drawn_layers(random);
    StepGraph graph(drawn.shape);
    const double best = shortest(graph, drawn.pipeline, {}, drawn.pipeline.layers);
    const LayerBound bound = bound_layers(graph, drawn.pipeline, 2 * best, {.neighbours = 50});
    EXPECT_LE(bound.step, best * (1 + 1e-9)) << i;
    EXPECT_GE(bound.step, 0.8 * best) << i;
    ASSERT_FALSE(bound.found.empty());
    EXPECT_GE(bound.found.front().step, best * (1 - 1e-9)) << i;
    ratios += bound.step / best;
    found += bound.found.front().step < best * (1 + 1e-9) ? 1 : 0;
  }
  EXPECT_GE(ratios / kProblems, 0.97);
  EXPECT_GE(found, 0.9 * kProblems);
}

// Whenever it is told to stop, the bound holds, and it asks often: at once when nothing is left.
TEST(LayerGame, HoldsWhereverItIsCutShort) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 30; ++i) {
    const DrawnLayers drawn = drawn_layers(random);
    StepGraph graph(drawn.shape);
    const double best = shortest(graph, drawn.pipeline, {}, drawn.pipeline.layers);
    for (const int most : {0, 1, 2, 3, 5, 8, 13, 40}) {
      int asked = 0;
      const LayerBound bound =
          bound_layers(graph, drawn.pipeline, 2 * best,
                       {.neighbours = 50, .stop = [&] { return ++asked > most; }});
      EXPECT_LE(bound.step, best * (1 + 1e-9)) << i << ", " << most;
      EXPECT_LE(asked, most + 8) << i << ", " << most;
    }
  }
}

TEST(LayerGame, SaysEnoughWhereNothingIsThatShort) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 40; ++i) {
    const DrawnLayers drawn = drawn_layers(random);
    StepGraph graph(drawn.shape);
    const double best = shortest(graph, drawn.pipeline, {}, drawn.pipeline.layers);
    const double bound = bound_layers(graph, drawn.pipeline, 0.5 * best, {}).step;
    EXPECT_GE(bound, 0.5 * best * (1 - 1e-6)) << i;
    EXPECT_LE(bound, best * (1 + 1e-9)) << i;
  }
}

// The example of the header: three layers of 1 s and 2 s over two stages, two micro-batches.
TEST(LayerGame, ProvesTheStepOfTheExample) {
  StageDivisions any(4);
  for (int n = 1; n <= 3; ++n) any[n].push_back(equal_chunks(n, 1, 1, 2));
  StepGraph graph({.stages = 2, .micro_batches = 2, .send = {0}, .busy = {0}});
  const LayerPipeline pipeline{.layers = 3, .after = 0, .stages = {{&any}, {&any}}};
  const LayerBound once = bound_layers(graph, pipeline, 20, {.halvings = 0});
  EXPECT_NEAR(once.step, 12.6, 0.05);
  const LayerBound bound = bound_layers(graph, pipeline, 13, {});
  EXPECT_NEAR(bound.step, 13, 1e-6);
  ASSERT_FALSE(bound.found.empty());
  EXPECT_NEAR(bound.found.front().step, 13, 1e-9);
  EXPECT_EQ(bound.found.front().stages[0]->layers, std::vector<int>{2});
}

TEST(LayerGame, IsInfiniteWhereLayersFindNoPlace) {
  StageDivisions one(2);
  one[1].push_back(equal_chunks(1, 1, 1, 2));
  StepGraph graph({.stages = 2, .micro_batches = 2, .send = {0}, .busy = {0}});
  const LayerPipeline pipeline{.layers = 3, .after = 0, .stages = {{&one}, {&one}}};
  EXPECT_EQ(bound_layers(graph, pipeline, 100, {}).step, HUGE_VAL);
}

}  // namespace
}  // namespace plait
