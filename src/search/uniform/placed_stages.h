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

// What the stages of a layout take on any hosts, in whatever order these are listed: each kind of
// stage is costed once. Times in seconds, at least.
class PlacedStages {
 public:
  PlacedStages(const UniformGround& ground, const UniformLayout& layout, const Space& space);

  // Nothing for other models, of which nothing else is known then.
  const std::optional<LayersByKind>& layers() const { return layers_; }
  int others() const { return others_; }  // units that are neither layers nor at an end
  double tied() const { return tied_; }   // of shared embeddings, after the pipeline
  double least_worth() const { return least_worth_; }  // of a layer, among its kinds
  double most_worth() const { return most_worth_; }

  struct StageOnParts {
    std::unique_ptr<RunCosts> runs;  // none where a tensor group has several types
    double forward = 0;              // of a layer
    double backward = 0;             // of a layer
    double longer = 0;               // of a layer: of both passes the one that takes longer
    std::map<std::pair<bool, bool>, InterleavedStage> by_end;  // first, last
  };
  StageOnParts& on_parts(const std::vector<NodePart>& parts);
  std::size_t count() const { return on_parts_.size(); }  // of stages that cost differently

  struct StageAt {
    const StageOnParts* on = nullptr;
    InterleavedStage stage;
    double in_flight = 0;  // micro-batches, k
    double sent = 0;       // over the network, a micro-batch one way, to the next stage ..
    double received = 0;   // .. and from the one before
    double fewest = 0;     // layers
  };
  StageAt at(const OrderGraph::Place& place);
  int most_that_fit(const OrderGraph::Place& place, const StageOnParts& on);
  // Where the first layers of stages are recomputed: of layers of one kind, what they add at least.
  const LayerLoad& load(const OrderGraph::Place& place, const StageOnParts& on);

 private:
  void set_worth(const RunCosts& runs);
  StagePlace where(const OrderGraph::Place& place) const;
  double crossing(const OrderGraph::Place& place, int direction) const;

  const UniformGround& ground_;
  const UniformLayout& layout_;
  const Space& space_;
  const Problem& problem_;
  std::optional<LayersByKind> layers_;
  double least_worth_ = 1;
  double most_worth_ = 1;
  int others_ = 0;
  double tied_ = 0;
  std::vector<double> send_;  // by kind of node: what a device of it hands over to another node
  std::map<std::vector<NodePart>, StageOnParts> on_parts_;
  using Room = std::tuple<const StageOnParts*, double, bool, bool>;  // live ones, first, last
  std::map<Room, int> fitting_;
  std::map<Room, LayerLoad> loads_;
};

}  // namespace plait
