#pragma once

#include <optional>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// A model whose units are ops, seen by layers: the ops of each layer merged into one unit.
struct LayerView {
  Model model;
  std::vector<int> first_unit;  // of each layer among the ops; the number of all ops at the end
};

// Nothing when every unit is a layer already.
std::optional<LayerView> seen_by_layers(const Model& model);

// The problem of the merged model. Where the ops of a layer were measured, and the layer was not,
// its measurements are their sums.
Problem by_layers(const Problem& in_ops, const LayerView& view);

// A plan of the merged model as a plan of the ops.
Plan in_ops(const Plan& plan, const LayerView& view);

}  // namespace plait
