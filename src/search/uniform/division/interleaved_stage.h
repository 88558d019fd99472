#pragma once

#include <optional>
#include <vector>

#include "search/space/run_costs.h"
#include "search/uniform/division/interleaved_bound.h"

namespace plait {

// The layers of a model by kind. Layers of several kinds count as the least of them, in relation to
// what they are worth.
struct LayersByKind {
  std::vector<int> units;      // one of each kind of layer
  std::vector<int> counts;     // how many there are of it
  std::vector<double> worth;   // what one of it counts; of all together as much as `count`
  std::vector<int> cut_after;  // one unit of each kind that a stage may end with
  int count = 0;               // of all layers
  bool equal = false;          // an embedding, layers of one kind and a head
};

// Nothing for models that are not an embedding, whole layers and a head. A few other units may
// stand among the layers, such as the input of a decoder.
std::optional<LayersByKind> layers_by_kind(const Model& model);

// Where a stage of an interleaved pipeline is.
struct StagePlace {
  bool first = false;
  bool last = false;
  double mean_layers = 1;  // of a stage
  double live = 1;         // micro-batches of which it holds activations
};

// What a stage takes at least, hand-overs and memory not included; sums over units without
// latencies. Of gradients and of weights either a part e follows the pipeline or what nothing hides
// (SpanFrame::gradient_sync); both hold, and what is more for a mean stage is taken.
InterleavedStage least_stage(const RunCosts& runs, const LayersByKind& layers,
                             const StagePlace& place);

// Layers that a stage has memory for. Of layers of several kinds, those that keep least.
int most_layers(const SpanFrame& frame, const Space& space, const LayersByKind& layers,
                Recompute recompute, const StagePlace& place);

}  // namespace plait
