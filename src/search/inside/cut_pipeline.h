#pragma once

#include <functional>
#include <vector>

#include "search/inside/stage_insides.h"

namespace plait {

// Stages on these devices, first stage first.
using StagePlaces = std::vector<StageInsides::Place>;

// Where a pipeline is cut, and how long a step takes, but for what only a simulation knows.
struct CutPipeline {
  std::vector<int> begins;  // first unit of each stage
  double step = 0;
};

// The best cuts of a pipeline, each stage with its best inside, among positions that are given for
// each stage: built from the end, because the memory of a stage depends on the stages behind it. Of
// two ends of a pipeline that begin with the same unit, the one with the longer slowest stage and
// the longer sum is dropped.
class PipelineCuts {
 public:
  PipelineCuts(StageInsides& insides, const Space& space, const CostEngine& engine,
               StagePlaces places);

  // Below the bar, cut between layers (between every few, where there are many); nothing where none
  // is or fits.
  std::optional<CutPipeline> between_layers(double bar, const std::function<bool()>& stop);
  // With better cuts near those of the pipeline.
  CutPipeline refined(CutPipeline from, const std::function<bool()>& stop);
  // With the best insides of all.
  std::optional<Plan> plan(const CutPipeline& cuts);
  // The step if memory were no matter and units were fluid.
  double promise() const;

 private:
  using Positions = std::vector<std::vector<int>>;  // where each stage may begin
  std::vector<int> begins_of_layers() const;
  static Positions positions_near(const std::vector<int>& begins, const std::vector<int>& all,
                                  int stride);
  std::optional<CutPipeline> best(const Positions& positions, double bar,
                                  const std::function<bool()>& stop);
  // What the stage before and the one behind a cut wait for each other.
  double send(int stage, int unit);
  void set_work();

  StageInsides& insides_;
  const Space& space_;
  const CostEngine& engine_;
  StagePlaces places_;
  double rounds_;             // micro-batches
  std::vector<double> work_;  // of the units before each one: device seconds, wherever they run
  std::vector<int> devices_;  // of the stages before each one
  std::map<std::pair<int, int>, double> sends_;  // by stage and kind of unit
};

}  // namespace plait
