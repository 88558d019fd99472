#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/units.h"
#include "runtime/train.h"

namespace plait {

// Train a saved plan: start its ranks on this machine and watch over them, or be one of the ranks
// that another launcher has started.
struct TrainRequest {
  std::string path;             // the plan, or what the launcher wrote for its ranks
  int local = 0;                // ranks to start on this machine; 0 = this process is a rank
  std::vector<int> threads;     // of each rank, or one number for all; empty = equal parts
  std::string device = "auto";  // cpu, cuda, or auto: a GPU where there is one
  bool json = false;            // ranks print their steps as JSON
  bool launched_here = false;   // by `local`, whose launcher has looked at the machine
  int max_restarts = 0;         // when a rank fails
  bool device_lost = false;     // its device is gone for good: go on with a new plan
  Seconds stop_within{60};      // for ranks that are stopped to end their step and save
  runtime::TrainOptions options;
};

// One step, with what follows from its time.
struct TrainStep {
  runtime::StepReport report;
  double samples_per_second = 0;  // tokens, where the model has a vocabulary, else images
  bool tokens = true;
  double mfu = 0;
};

// How a front end takes part. Calls come from any thread.
struct TrainSession {
  std::stop_token stop;  // asks for an end in order: with a checkpoint, where there is one
  std::function<void(const TrainStep& step)> on_step;     // in rank 0
  std::function<void(const std::string& sentence)> tell;  // for people
  std::function<void(int rank, bool error_stream, const std::string& line)> on_rank_line;
};

enum class TrainEnd {
  done,
  not_executable,
  wrong_input,
  rank_failed,
  diverged,
  peer_lost,
  stopped
};

struct TrainAnswer {
  TrainEnd end = TrainEnd::done;
  std::string why_not;               // of not_executable
  int counted_steps = 0;             // that the median is over; 0 = too few steps to say
  std::optional<Seconds> measured;   // median step, without the first
  std::optional<Seconds> predicted;  // by the cost engine
};

// The request that a launcher wrote, where `path` is one; else the same.
TrainRequest resolved(const TrainRequest& request);

TrainAnswer answer(const TrainRequest& request, const TrainSession& session);

std::string to_json(const TrainStep& step);      // on one line
std::string as_text(const TrainStep& step);      // on one line
std::string to_json(const TrainAnswer& answer);  // the comparison; "" where there is none
std::string as_text(const TrainAnswer& answer);

}  // namespace plait
