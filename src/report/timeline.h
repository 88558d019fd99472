#pragma once

#include <string>
#include <vector>

#include "cost/estimate.h"
#include "cost/pipeline/simulator.h"
#include "plan/plan.h"

namespace plait {

// What ranks did when, in the format of Chrome's traces, which https://ui.perfetto.dev reads:
// processes are stages, threads are ranks. The predicted timeline of a plan and the measured one of
// a run have the same rows and the same names ("F3" the forward pass of micro-batch 3), so that
// they can be looked at side by side.
class Timeline {
 public:
  // The rows of one rank of a stage (from 0); `name` of the row, such as "rank 3".
  Timeline(int stage, int rank, const std::string& name);

  // Times from any common beginning.
  void task(int step, const Task& task, Seconds begin, Seconds end);
  // Before a task, when its input was not there yet.
  void wait(int step, const Task& task, Seconds begin, Seconds end);
  void end_of_step(int step, const std::string& what, Seconds begin, Seconds end);

  // Its events, without the file around them.
  const std::string& text() const { return text_; }

 private:
  void event(const std::string& name, const char* category, Seconds begin, Seconds end,
             const std::string& arguments);
  int stage_;
  int rank_;
  std::string text_;
};

// The file of some timelines.
std::string trace_file(const std::vector<std::string>& timelines);

// The predicted step: one row for each stage, whose ranks do the same at the same time. `trace` is
// what CostEngine::simulate() gave with `estimate`.
std::string predicted_trace(const Plan& plan, const Estimate& estimate, const Trace& trace);

}  // namespace plait
