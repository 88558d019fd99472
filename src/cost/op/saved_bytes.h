#pragma once

#include "base/units.h"
#include "cost/op/kernels.h"
#include "model/model.h"
#include "plan/problem.h"

namespace plait {

// Activation bytes that one device keeps for backward of one micro-batch: everything, and what is
// left of it when attention is recomputed (selective). The loss keeps nothing here: its logits are
// counted at their peak, by UnitTable::Extent.
struct SavedBytes {
  Bytes all;
  Bytes selective;
};
SavedBytes saved_bytes(const Kernels& kernels, const Op& op, const Sharding& sharding);
SavedBytes saved_bytes(const Job& job, const Model& model, const Op& op, const Sharding& sharding);

}  // namespace plait
