#pragma once

#include <vector>

#include "model/model.h"
#include "model/op.h"

namespace plait {

// The ways in which an op can be cut over a tensor group; the first is the usual one, and
// Span::split is a position in this list. What uses split choices (cost, check_plan, search, the
// runtime, Aceso's configurations) reads it here (docs/adr/0017).
//
// A matrix product or convolution that is usually cut by output features, and whose backward pass
// sums up the gradient of its input, can be cut by input features, too, and the other way round.
// The usual way does its sums itself; the other one leaves partial sums, so that what follows may
// take them as it needs them: summed up, or summed up and cut.
std::vector<OpCut> cuts_of(const Op& op, bool sequence_parallel = false);

// The op as it is when cut in way `cut`; itself where it has no such way.
Op with_cut(const Op& op, int cut);

// Whether a tensor degree cuts the op into equal parts.
bool is_divided(const Op& op, int tensor);

// The ways to cut a unit: those of its op; one where it has several ops.
int ways_to_cut(const LayerKind& unit);

// Elements of a sample that a product or convolution reads and leaves; 0 for other ops.
double input_elements(const Op& op);
double output_elements(const Op& op);

}  // namespace plait
