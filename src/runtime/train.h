#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"
#include "runtime/launch/heartbeat.h"
#include "runtime/launch/rank.h"

namespace plait::runtime {

// How to train, beyond what the plan and its problem say. Free of libtorch.
struct TrainOptions {
  int steps = 10;
  double learning_rate = 3e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;  // Adam's
  double momentum = 0.9;  // of Optimizer::momentum
  double weight_decay = 0;
  double clip = 1;  // global norm of the gradient; 0 = not clipped
  // Gradients that are summed over ranks at once, while backward passes still run; 16 MiB.
  std::int64_t bucket = std::int64_t{1} << 22;
  std::uint64_t seed = 1;
  bool exact = false;        // fp64 for fp32: to tell rounding from faults
  std::string tokens;        // a token file; "" = synthetic samples
  bool cuda = false;         // one GPU a rank, else threads of the CPU
  int threads = 0;           // of this rank; 0 = as libtorch does
  std::string trace;         // where rank 0 writes a trace of the run; "" = nowhere
  std::string checkpoint;    // a directory: resume from its last checkpoint, and save there
  int checkpoint_every = 0;  // steps; 0 = after the last only
  int keep_checkpoints = 2;  // 0 = all
};

// What one step was like. Rank 0 gets it; times are wall clock.
struct StepReport {
  std::int64_t step = 0;
  double loss = 0;  // mean over the samples of the step, before the update
  double gradient_norm = 0;
  double seconds = 0;
  std::vector<double>
      busy;  // per stage, the mean of its ranks: computing and inside its collectives
  std::vector<double> idle;  // waiting for other stages
  double peak_bytes = 0;     // of the rank that has most; 0 = not known
  bool stop = false;         // some rank was asked to stop; all ranks see the same
};

struct TrainRequest {
  Problem problem;
  Plan plan;
  TrainOptions options;
  RankPlace place;
  Heartbeat* heart = nullptr;
  // A rank that is asked to stop ends its step; all ranks save a checkpoint and end after it.
  std::stop_token stop;
  std::function<void(const StepReport& report)> on_step;  // on rank 0
  // Sentences for people: where ranks meet, what goes wrong. From any thread.
  std::function<void(const std::string& sentence)> tell;
};

// Exit status of a rank that cannot go on for a reason of its own (memory, a fault of libtorch).
inline constexpr int kRankFailed = 1;

}  // namespace plait::runtime
