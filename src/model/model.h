#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/architecture.h"
#include "model/op.h"

namespace plait {

// A layer shape. Layers of one kind cost the same and share one profile.
struct LayerKind {
  std::string name;  // "decoder"
  std::vector<Op> ops;
  double output = 0;  // elements handed to the next layer, per sample
  // False for an op inside a layer: recompute that began before it goes on, so that a run of
  // recomputed ops keeps the input of its first one only.
  bool starts_layer = true;
  // Neither trained nor run backward: nothing before it is trained.
  bool frozen = false;

  double parameters() const;
  Flops forward() const;

  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

// Parameters shared by two units (tied input and output embedding). Counted once, in `first`; when
// a cut falls between them both stages keep a copy and sum its gradients.
struct Tie {
  int first = 0;   // unit that owns the parameters
  int second = 0;  // unit that uses them again
  double parameters = 0;
  int first_op = 0;  // position among the unit's ops
  int second_op = 0;
  friend bool operator==(const Tie&, const Tie&) = default;
};

// A chain of units in execution order. A unit is what a pipeline cut may fall between: a layer, or
// a single op when the model was taken apart by at_op_granularity(). Branching graphs are
// linearised by the builders: what has to cross a cut is counted in LayerKind::output.
struct Model {
  std::string name;
  int sequence_length = 0;  // tokens per sample; 1 for images
  int vocabulary = 0;       // 0 where there is none
  bool causal = false;      // attention looks only backwards
  bool dropout = false;     // dropout masks are kept
  std::vector<LayerKind> kinds;
  std::vector<int> units;  // index into kinds, in execution order
  std::vector<Tie> ties;
  // What the network is; the ops above say what it costs. Ops and counts may be edited to describe
  // another cost, never to describe another network.
  Architecture architecture;

  int unit_count() const { return static_cast<int>(units.size()); }
  const LayerKind& unit(int i) const { return kinds[units[i]]; }
  double parameters() const;
  Flops forward() const;  // one sample

  friend bool operator==(const Model&, const Model&) = default;
};

// The same model whose first `layers` layers, and what is before them, are not trained.
Model with_frozen_layers(const Model& model, int layers);

// The same model with every op a unit of its own, so that a cut may fall inside a layer.
Model at_op_granularity(const Model& model);

// The model that the builder of the architecture makes; nothing where only the ops are known.
std::optional<Model> build(const Architecture& architecture);

// "" or how the units differ, by their number, the names of their ops or their ties, from those of
// the architecture, read at layer or op granularity. What ops cost is not compared.
std::string architecture_fault(const Model& model);

}  // namespace plait
