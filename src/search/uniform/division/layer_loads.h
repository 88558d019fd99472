#pragma once

#include <vector>

#include "cost/span_frame.h"
#include "search/space/units/tied_copies.h"

namespace plait {

// What layers of one kind take on a stage, and how many of them have to be recomputed there. Times
// in seconds, of one micro-batch, forward and backward.
struct LayerLoad {
  double layer = 0;
  double recomputed = 0;  // more, for a layer that is recomputed in full
  double ends = 0;        // of what is not a layer
  // [n]: of n layers, the fewest that must be recomputed for all to fit; as far as they do.
  std::vector<int> needed;

  int most_layers() const { return static_cast<int>(needed.size()) - 1; }
};

// A stage of a model of an embedding, layers of one kind and a head.
struct LayerRoom {
  const SpanFrame& frame;
  const TiedCopies& tied;
  double live = 1;         // micro-batches in flight
  bool has_first = false;  // the stage begins with the embedding
  bool has_last = false;   // and ends with the head
  int units = 0;           // of the model
  double most_time = 0;    // more layers than take so long are of no interest
};

LayerLoad layer_load(const LayerRoom& room);

// No pipeline in which the first `first` layers of every stage are recomputed, and the others not
// at all, has a busiest stage that takes less for a micro-batch, however the layers are divided
// among the stages. Infinite when they do not fit, or not in less than `most`.
double least_busiest(const std::vector<LayerLoad>& stages, int layers, int first, double most);

}  // namespace plait
