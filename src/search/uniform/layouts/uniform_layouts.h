#pragma once

#include <functional>
#include <vector>

#include "search/space/schedules.h"
#include "search/space/space.h"
#include "search/uniform/mixes/model_times.h"
#include "search/uniform/mixes/node_mixes.h"

namespace plait {

// A plan with one tensor and one data degree, but for the order of its hosts and its cuts.
struct UniformLayout {
  int mix = 0;  // of nodes
  // The mix says which nodes there are, and any of them with as many devices as the degrees ask for
  // may be launched: a family of layouts.
  bool of_any_nodes = false;
  int tensor = 1;
  int data = 1;
  int stages = 1;
  PlanSettings settings;
  Recompute recompute = Recompute::none;
  // The first layers of every chunk are recomputed in full, equally many, and the others not.
  bool recomputes_some = false;
  Schedule schedule = Schedule::one_f_one_b;
  int chunks = 1;
  Seconds bound;   // no plan of it is faster
  Seconds untied;  // the same of what comes before tied embeddings are summed

  int stage_devices() const { return tensor * data * settings.context; }
  int devices() const { return stages * stage_devices(); }
};

// Lists layouts and bounds them from the times of whole models.
class UniformLayouts {
 public:
  UniformLayouts(const Space& space, const CostEngine& engine, const std::vector<NodeKind>& kinds,
                 int threads);

  // The layouts of these mixes whose bound is below the limit: all, unless it was stopped.
  struct Listed {
    std::vector<UniformLayout> layouts;
    bool are_all = true;
  };
  Listed list(const std::vector<NodeMix>& mixes, const std::vector<int>& which, Seconds limit,
              const std::function<bool()>& stop);

  // All families with so many devices that some mix is not `listed` yet, likewise; nodes that have
  // no room for tensor groups are left out, in mixes that are added. A family that recomputes
  // nothing stands for those that do.
  Listed list_families(std::vector<NodeMix>& mixes, const std::vector<int>& listed, Seconds limit,
                       const std::function<bool()>& stop);

  // Whether degrees divide its devices and the batch; most mixes have no layout at all.
  bool has_degrees(const NodeMix& mix) const;

  // The schedule of plain pipelines that cuts are searched under. A stage alone runs a micro-batch
  // after the other, forward and backward, whatever its program's pipelines do.
  Schedule base_schedule(int stages) const {
    return stages == 1 ? searched_schedule(space_.pins()) : base_;
  }

 private:
  void list_degrees(const NodeMix& mix, int at, std::vector<UniformLayout>& out) const;
  void list_data(UniformLayout degrees, std::vector<UniformLayout>& out) const;
  void list_batches(const UniformLayout& degrees, std::vector<UniformLayout>& out) const;
  struct UsableNodes {
    NodeMix most;
    NodeMix steps;
  };
  UsableNodes nodes_for(int tensor, int context) const;
  struct ReplicaDegrees {
    int tensor = 1;
    int context = 1;
    int expert = 1;
  };
  void list_degrees_of(int mix, const std::vector<double>& open, const ReplicaDegrees& replica,
                       std::vector<UniformLayout>& out) const;
  Listed bounded(const std::vector<NodeMix>& mixes, std::vector<UniformLayout> all, Seconds limit,
                 const std::function<bool()>& stop);
  void list_schedules(const UniformLayout& layout, std::vector<UniformLayout>& out) const;
  bool add_whole_sequences(const std::vector<NodeMix>& mixes, std::vector<UniformLayout>& all,
                           const std::function<bool()>& stop);
  bool tensor_fits(const NodeMix& mix, int tensor, int context) const;
  bool obeys_pins(const UniformLayout& layout) const;
  bool may_cut_samples(const UniformLayout& layout) const;
  std::vector<ZeroStage> zero_stages(const UniformLayout& layout) const;
  ReplicaCut cut_of(const UniformLayout& layout, int kind, const NodeMix& mix) const;
  ReplicaCopies copies_of(const UniformLayout& layout, int kind, const NodeMix& mix) const;
  // Seconds of a step by unit, on a stage of nodes of one kind. `alone`: the mix has only this
  // kind.
  std::vector<double> step_times(const UniformLayout& layout, int kind, const NodeMix& mix,
                                 bool alone) const;
  Seconds bound_of(const UniformLayout& layout, const NodeMix& mix, Seconds limit) const;
  double with_whole_layers(const UniformLayout& layout, const NodeMix& mix,
                           const std::vector<std::vector<double>>& steps, double round_trip,
                           double bound, double limit) const;

  const Space& space_;
  const Problem& problem_;
  const Target& target_;
  const std::vector<NodeKind>& kinds_;
  int threads_;
  ModelTimes times_;
  Schedule base_;  // of several stages
  int layers_ = 0;
  std::vector<int> layer_units_;  // none where some units are parts of layers
  int most_stages_ = 1;
  std::vector<Recompute> recomputes_;  // of all layers; none too where a number of them is pinned
  std::vector<int> tensors_;
  std::vector<std::pair<int, int>> contexts_;  // context, expert
  bool has_short_contexts_ = false;            // of sequences that need none to fit
  double data_exposed_ = 1;
};

}  // namespace plait
