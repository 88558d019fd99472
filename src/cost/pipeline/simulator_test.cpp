#include "cost/pipeline/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace plait {
namespace {

Pipeline uniform(Schedule schedule, int stages, int micro_batches, double f, double b,
                 double send = 0, int chunks = 1, double w = 0) {
  Pipeline p{schedule, stages, chunks, micro_batches, {}, {}};
  p.time.assign(stages * chunks, {Seconds(f), Seconds(b), Seconds(w)});
  p.send.assign(stages * chunks - 1, Seconds(send));
  return p;
}

Pipeline random_pipeline(std::mt19937_64& random, Schedule schedule, bool with_sends) {
  std::uniform_real_distribution<double> time(0.1, 2.0);
  const int stages = std::uniform_int_distribution(1, 7)(random);
  const int micro_batches = std::uniform_int_distribution(1, 12)(random);
  Pipeline p = uniform(schedule, stages, micro_batches, 1, 1);
  for (ChunkTime& t : p.time) t = {Seconds(time(random)), Seconds(time(random)), Seconds(0)};
  for (Seconds& s : p.send) s = Seconds(with_sends ? time(random) / 4 : 0);
  return p;
}

// Links that carry one hand-over at a time, some of them slower than the stages.
Pipeline with_links(std::mt19937_64& random, Pipeline p) {
  std::uniform_real_distribution<double> time(0.1, 3.0);
  p.send_busy.clear();
  for (Seconds& s : p.send) {
    p.send_busy.emplace_back(time(random));
    s = p.send_busy.back() + Seconds(0.1);
  }
  return p;
}

TEST(Simulator, OneStageHasNoBubble) {
  // 8 micro-batches of 1 + 2 s each.
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b})
    EXPECT_DOUBLE_EQ(simulate(uniform(schedule, 1, 8, 1, 2)).makespan.value, 24);
}

TEST(Simulator, EqualStagesTakeMicroBatchesPlusStagesMinusOne) {
  // (m + p - 1)(f + b) = (8 + 4 - 1) * 3
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b})
    EXPECT_NEAR(simulate(uniform(schedule, 4, 8, 1, 2)).makespan.value, 33, 1e-9);
}

TEST(Simulator, InterleavingDividesTheBubbleByTheChunks) {
  // Ideal m (f + b) v plus bubble (p - 1)(f + b) where f, b are of one chunk: 8*2*3 + 3*3 = 57,
  // against (8 + 3) * 6 = 66 without interleaving.
  EXPECT_NEAR(simulate(uniform(Schedule::interleaved, 4, 8, 1, 2, 0, 2)).makespan.value, 57, 1e-9);
}

TEST(Simulator, ZeroBubbleH1LeavesAThirdOfTheBubbleWhenAllTasksAreEqual) {
  // Qi et al., table 1: 1F1B (p-1)(f+b+w), ZB-H1 (p-1)(f+b-w); here p = 4, f = b = w = 1, m = 12.
  const double busy = 12 * 3;
  EXPECT_NEAR(simulate(uniform(Schedule::zb_h1, 4, 12, 1, 1, 0, 1, 1)).longest_stage.value,
              busy + 3, 1e-9);
}

TEST(Simulator, ZeroBubble2pHasNoIdleTimeOnTheBusiestStage) {
  // Qi et al., table 1: ZB-H2 leaves no bubble inside a stage.
  EXPECT_NEAR(simulate(uniform(Schedule::zb_2p, 4, 16, 1, 1, 0, 1, 1)).longest_stage.value, 48,
              1e-9);
}

TEST(Simulator, ZeroBubbleVNeedsNoMoreThan1F1BsFirstStage) {
  // Half-size chunks, m = 16, p = 4: each stage is busy 16 * 2 * 1.5 = 48.
  const Trace trace = simulate(uniform(Schedule::zb_v, 4, 16, .5, .5, 0, 2, .5));
  EXPECT_LE(trace.longest_stage.value, 48 * 1.06);
}

TEST(Simulator, MemoryLimitsAreKept) {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved,
                                  Schedule::zb_h1, Schedule::zb_2p, Schedule::zb_v}) {
    const int chunks = schedule == Schedule::interleaved || schedule == Schedule::zb_v ? 2 : 1;
    const bool split = splits_backward(schedule);
    const Pipeline p = uniform(schedule, 4, 8, 1, split ? 1 : 2, .1, chunks, split ? 1 : 0);
    const auto lists = task_lists(p);
    for (int s = 0; s < 4; ++s) {
      int live = 0;
      int peak = 0;
      for (const Task& task : lists[s]) {
        if (task.kind == TaskKind::forward) peak = std::max(peak, ++live);
        if (task.kind == (split ? TaskKind::weight_gradient : TaskKind::backward)) --live;
      }
      EXPECT_EQ(live, 0);
      EXPECT_LE(peak, chunks_in_flight(schedule, 4, s, 8, chunks));
      if (!split) {
        EXPECT_EQ(peak, chunks_in_flight(schedule, 4, s, 8, chunks));
      }
    }
  }
}

TEST(Simulator, LongPipelinesRepeatThemselves) {
  // 200,000 micro-batches on 4 equal stages: (m + p - 1)(f + b).
  EXPECT_NEAR(simulate(uniform(Schedule::one_f_one_b, 4, 200'000, 1, 2)).makespan.value / 600'009,
              1, 1e-9);
}

// 3,000 stages fill only after 9 million tasks. Equal ones: (m + p - 1)(f + b); the others take
// what each stage does at least.
TEST(Simulator, DeepPipelinesAreNotSimulated) {
  EXPECT_NEAR(
      simulate(uniform(Schedule::one_f_one_b, 3'000, 100'000, 1, 2)).makespan.value / 308'997, 1,
      1e-9);
  for (const Schedule schedule :
       {Schedule::gpipe, Schedule::interleaved, Schedule::zb_h1, Schedule::zb_2p, Schedule::zb_v}) {
    const int chunks = schedule == Schedule::interleaved || schedule == Schedule::zb_v ? 2 : 1;
    const double split = splits_backward(schedule) ? 1 : 0;
    const Trace trace = simulate(uniform(schedule, 3'000, 99'000, 1, 2 - split, 0, chunks, split));
    EXPECT_GE(trace.longest_stage.value, 3 * 99'000 * chunks * (1 - 1e-9));
    EXPECT_LE(trace.makespan.value, 3 * (99'000 + 6'000) * chunks);
    EXPECT_EQ(trace.stage_end.size(), 3'000u);
  }
}

// Those that are less deep are simulated for fewer rounds, which equal stages do not notice; with
// sends the outline of the deepest (900) takes .2 % less than a simulation.
TEST(Simulator, FewerRoundsOfDeepPipelinesAreAsGood) {
  for (const int stages : {300, 500, 900}) {
    const Pipeline p = uniform(Schedule::one_f_one_b, stages, 100'000, 1, 2);
    EXPECT_NEAR(simulate(p).makespan / closed_form(p), 1, 1e-9) << stages;
  }
  const auto above = [](int stages) {
    const Pipeline p = uniform(Schedule::one_f_one_b, stages, 100'000, 1, 2, 0.1);
    return simulate(p).makespan / closed_form(p);
  };
  EXPECT_NEAR(above(500) / above(280), 1, 0.001);
  EXPECT_NEAR(above(900) / above(500), 1, 0.003);
}

TEST(Simulator, ScalingAllTimesScalesTheMakespan) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    Pipeline p = random_pipeline(random, Schedule(i % 2), true);  // gpipe, 1f1b
    const double before = simulate(p).makespan.value;
    for (ChunkTime& t : p.time) t = {4 * t.forward, 4 * t.backward, Seconds(0)};
    for (Seconds& s : p.send) s = 4 * s;
    EXPECT_DOUBLE_EQ(simulate(p).makespan.value, 4 * before);
    EXPECT_LE(closed_form(p).value, 4 * before * (1 + 1e-9));
  }
}

TEST(ClosedForm, IsExactForGPipe) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    const Pipeline p = random_pipeline(random, Schedule::gpipe, true);
    EXPECT_NEAR(closed_form(p) / simulate(p).makespan, 1, 1e-9);
    const Pipeline linked = with_links(random, p);
    EXPECT_NEAR(closed_form(linked) / simulate(linked).makespan, 1, 1e-9);
  }
}

// Two stages of 1 + 2 s and 20 micro-batches. Hand-overs of 10 s that do not wait for each other:
// (1 + 2) 2 + 2 * 10 + 19 * 3 = 83. Over a link that carries one at a time: 26 + 19 * 20 = 406.
TEST(Simulator, ASlowLinkCarriesOneHandOverAtATime) {
  Pipeline p = uniform(Schedule::gpipe, 2, 20, 1, 2, 10);
  EXPECT_NEAR(simulate(p).makespan.value, 83, 1e-9);
  p.send_busy = {Seconds(10)};
  EXPECT_NEAR(simulate(p).makespan.value, 406, 1e-9);
  p.send = p.send_busy = {Seconds(20)};  // 46 + 19 * 40
  EXPECT_NEAR(simulate(p).makespan.value, 806, 1e-9);
}

TEST(ClosedForm, NeverExceedsTheSimulationOverSlowLinks) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 1000; ++i) {
    const Pipeline p = with_links(random, random_pipeline(random, Schedule::one_f_one_b, true));
    EXPECT_LE(closed_form(p).value, simulate(p).makespan.value * (1 + 1e-9));
  }
}

TEST(ClosedForm, IsExactForEqualStagesUnder1F1BWithoutSends) {
  for (int stages = 1; stages <= 8; ++stages)
    for (int m = 1; m <= 20; ++m) {
      const Pipeline p = uniform(Schedule::one_f_one_b, stages, m, 1.25, 2.5);
      EXPECT_NEAR(closed_form(p) / simulate(p).makespan, 1, 1e-9) << stages << " " << m;
    }
}

TEST(ClosedForm, NeverExceedsTheSimulation) {
  std::mt19937_64 random(2);
  int equal = 0;
  double worst = 1;
  for (int i = 0; i < 2000; ++i) {
    const Pipeline p = random_pipeline(random, Schedule::one_f_one_b, i % 2 == 0);
    const double ratio = closed_form(p) / simulate(p).makespan;
    EXPECT_LE(ratio, 1 + 1e-9);
    worst = std::min(worst, ratio);
    equal += ratio > 1 - 1e-9;
  }
  EXPECT_GT(worst, 0.8);
  EXPECT_GT(equal, 1000);
}

TEST(LeastSpan, WaitsForTheFirstRoundTrip) {
  // 4 micro-batches of 1 + 1 + 1 s. The first of two stages waits 1 + 1 + 2 * 5 s for its first
  // gradient, of which 3 more forwards fill 3.
  const Pipeline p = uniform(Schedule::zb_2p, 2, 4, 1, 1, 5, 1, 1);
  EXPECT_DOUBLE_EQ(least_spans(p)[0].value, 12 + 9);
  EXPECT_DOUBLE_EQ(least_spans(p)[1].value, 12);
}

TEST(LeastSpan, NeverExceedsTheSimulation) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> time(0.1, 2.0);
  for (int i = 0; i < 300; ++i) {
    const Schedule schedule =
        std::array{Schedule::one_f_one_b, Schedule::zb_h1, Schedule::zb_2p}[i % 3];
    Pipeline p = random_pipeline(random, schedule, true);
    if (i % 5 == 0)
      for (Seconds& send : p.send) send = 10 * send;
    if (splits_backward(schedule))
      for (ChunkTime& t : p.time) t.weight_gradient = Seconds(time(random));
    const Trace trace = simulate(p);
    for (int s = 0; s < p.stages; ++s) {
      const double span = (trace.stage_end[s] - trace.stage_begin[s]).value;
      EXPECT_LE(least_spans(p)[s].value, span * (1 + 1e-9));
    }
  }
}

}  // namespace
}  // namespace plait
