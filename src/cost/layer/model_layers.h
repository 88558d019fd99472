#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/model.h"

namespace plait {

// A layer as the units that it consists of: itself, or its ops where the model is read at op
// granularity. Host launches, the gathering of weights and recompute work on whole layers, whatever
// the units are.
struct LayerShape {
  std::vector<int> kinds;             // of its units, in execution order
  std::optional<LayerKind> together;  // all of its ops as one kind, where it has several units
};

// The layers of a model. A layer begins at every unit with LayerKind::starts_layer.
struct ModelLayers {
  std::vector<LayerKind> kinds;    // of the model, each unit cut in the way that was asked for
  std::vector<LayerShape> shapes;  // distinct ones; that of model.kinds[k] is shapes[k] if !in_ops
  std::vector<int> shape_of;       // by layer
  std::vector<int> begin;          // by layer, its first unit; then the number of units
  std::vector<double> input;       // by kind: elements of a sample that enter it, the most of all
                                   // units of the kind
  bool in_ops = false;             // some layer has several units

  int count() const { return static_cast<int>(shape_of.size()); }
  const LayerKind& whole(const LayerShape& shape) const {
    return shape.together ? *shape.together : kinds[shape.kinds.front()];
  }
};
// A layer as it is usually cut.
LayerKind usual_layer(const Model& model, const LayerShape& shape);

// `cut`: Span::split, of units that have such a way; the others are cut as usual.
ModelLayers layers_of(const Model& model, int cut = 0);

// The input and output layers, with tables of the vocabulary's size or a loss: frameworks neither
// recompute them nor hide the host's work behind them.
bool is_table(const LayerKind& layer);

}  // namespace plait
