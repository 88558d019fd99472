#pragma once

#include "search/paths/layer_game.h"
#include "search/uniform/division/interleaved_stage.h"

namespace plait {

// A stage whose layers are to be divided among chunks.
struct DividedStage {
  const RunCosts& runs;
  const Model& model;
  const LayersByKind& layers;
  Recompute recompute = Recompute::none;
  int recompute_first = 0;  // layers of every chunk in full, and the others not at all
  bool first = false;       // begins with the embedding
  bool last = false;        // ends with the head
  int chunks = 1;
  int least_layers = 0;
  int most_layers = 0;  // that fit
};

// All ways in which a stage may have so many layers: chunks differ by one unit at most, the larger
// ones first, and the embedding and the head count as units (in_chunks() in
// search/space/schedules.h) or do not (even_begins() in chunk_layers.h). Of layers that are equal
// the times are those of stage_cost() but for rounding; of others they are no more than that:
// layers count as the least of their kinds, and what follows the pipeline as the largest of a part
// of the gradients, of what the passes of a chunk do not hide, and of its first layer's gradients,
// which nothing hides.
StageDivisions stage_divisions(const DividedStage& stage);

}  // namespace plait
