#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "search/uniform/division/interleaved_stage.h"
#include "search/uniform/division/layer_loads.h"
#include "search/uniform/layout_evaluation.h"
#include "search/uniform/orders/order_graph.h"

namespace plait {

// What no plan of a layout undercuts, in whatever order its hosts are listed and however its layers
// are divided: of all orders at once, where they are too many to look at one by one.
//
// In a step of T seconds a stage has room for so many layers: those that fit in memory, and with
// which no path through the stage (closed_form() in cost/pipeline/simulator.h, and the sum of
// gradients behind it) and no work of its nodes' network takes longer than T. Which nodes a stage
// is on, and so what a layer takes there, depends on the order; the most room that the stages of an
// order have together is a longest path in a graph of all orders (OrderGraph). If that is less than
// the model has layers, no step takes T.
//
// The round trip R of a micro-batch is bounded by the same graph: with any price u of a layer, and
// stages that have from a_s to b_s layers of x_s,
//   R >= layers u + least sum over an order's stages of (ends + sends + min over n of n (x_s - u)),
// which is the Lagrangian of the sum with all layers placed. What the stages before a stage take
// follows from the layers that the others have no room for. Less room makes paths longer, and
// longer ones leave less room, until neither gains.
class AllOrders {
 public:
  AllOrders(const UniformGround& ground, const UniformLayout& layout, const Space& space);

  // Whether no plan of the layout takes less than so long, as far as is known.
  bool closes(Seconds step);
  // After it was asked that: nothing of the layout is faster than this, or than what was asked for.
  Seconds bound();
  // Whether some stage could have more layers, or some at all, if it had more memory.
  bool lacks_memory() const { return lacks_memory_; }

 private:
  struct StageOnParts {
    std::unique_ptr<RunCosts> runs;  // none where a tensor group has several types
    double forward = 0;              // of a layer
    double longer = 0;               // of a layer: of both passes the one that takes longer
    std::map<std::pair<bool, bool>, InterleavedStage> by_end;  // first, last
  };
  struct StageAt {
    const StageOnParts* on = nullptr;
    InterleavedStage stage;
    double in_flight = 0;  // micro-batches, k
    double sent = 0;       // over the network, a micro-batch one way, to the next stage ..
    double received = 0;   // .. and from the one before
    double fewest = 0;     // layers
  };
  // What other stages take at least, in seconds.
  struct Around {
    double forward_before = 0;
    double before = 0;  // forward and backward
    double after = 0;
  };
  // Of a step that is asked for.
  struct Limits {
    double step = 0;
    double trip = 0;    // the round trip of a micro-batch, at least
    double finish = 0;  // of the first stage, at least
  };

  bool set_graph(double step);
  bool may_be(const OrderGraph::Place& place, double step);
  StageOnParts& on_parts(const std::vector<NodePart>& parts);
  void set_worth(const RunCosts& runs);
  StageAt at(const OrderGraph::Place& place);
  StagePlace where(const OrderGraph::Place& place) const;
  double crossing(const OrderGraph::Place& place, int direction) const;
  double most_layers(const OrderGraph::Place& place, const StageAt& at, const Limits& limits,
                     const Around& around);
  int most_that_fit(const OrderGraph::Place& place, const StageOnParts& on);
  // Where the first layers of stages are recomputed: of layers of one kind, what they add at least.
  const LayerLoad& load(const OrderGraph::Place& place, const StageOnParts& on);
  int fewer_for_recompute(int most, const OrderGraph::Place& place, const StageAt& at,
                          const Limits& limits, const Around& around);
  bool is_possible(double step);
  double least_finish(const std::vector<double>& most) const;
  double least_trip(const std::vector<double>& most) const;
  std::vector<Around> around(const std::vector<double>& most) const;

  const UniformGround& ground_;
  const UniformLayout& layout_;
  const Space& space_;
  const Problem& problem_;
  double micro_batches_;
  std::optional<LayersByKind> layers_;
  double least_worth_ = 1;
  double most_worth_ = 1;
  int others_ = 0;            // units that are neither layers nor at an end
  double tied_ = 0;           // what the sum of shared embeddings takes after the pipeline
  std::vector<double> send_;  // by kind of node: what a device of it hands over to another node
  std::map<std::vector<NodePart>, StageOnParts> on_parts_;
  using Room = std::tuple<const StageOnParts*, double, bool, bool>;  // live ones, first, last
  std::map<Room, int> fitting_;
  std::map<Room, LayerLoad> loads_;
  std::vector<StageAt> stages_;  // by place of the graph
  std::optional<OrderGraph> graph_;
  double asked_ = 0;  // untied
  bool gives_up_ = false;
  bool lacks_memory_ = false;
};

}  // namespace plait
