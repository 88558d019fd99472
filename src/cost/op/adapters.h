#pragma once

#include "cost/op/op_time.h"
#include "plan/problem.h"

namespace plait {

// Adapters of low rank (LoRA, Hu et al. 2021): beside a product with weights W [inner x columns]
// that stay as they are, x A B is added, A [inner x rank] and B [rank x columns]. Every product of
// a layer has one, those of the output layer and of the choice of experts do not; products that are
// several matrices in one (queries, keys, values) have an A for each of them.

bool has_adapter(const Job& job, const Op& op);

// Parameters of the op's adapter on one device: A is cut where the rows of W are, B where its
// columns are.
//   column: rank (matrices inner + columns / t)      row: rank (inner / t + columns)
double adapter_parameters(const Job& job, const Op& op, const Sharding& sharding);

// Of the bytes of a weight of this op, those that are kept: less than 1 where Job::four_bit_weights
// keeps it as NF4 with constants that are quantised, too (QLoRA, Dettmers et al. 2023):
//   4 + 8 / 64 + 32 / (64 x 256) bits = 0.516 bytes
double stored_share(const Job& job, const Op& op);

// What it takes to write such a weight in the format that is computed in, before each product.
Bytes unpacked_bytes(const Job& job, const Op& op, const Sharding& sharding);
Seconds unpacking_time(const Job& job, const DeviceType& device, const Op& op,
                       const Sharding& sharding);

// Learnt values of the whole model in units of a weight that is kept whole.
double stored_parameters(const Model& model, const Job& job);

// What the two products, their gradients and the addition of the result take beside the op.
OpTime adapter_time(const Job& job, const DeviceType& device, const Op& op,
                    const Sharding& sharding);

// Bytes kept for backward beside what the op keeps itself: x A.
Bytes adapter_saved(const Job& job, const Op& op, const Sharding& sharding);

// Learnt values of the whole model that are trained: all, the adapters alone, or what is not
// frozen.
double trained_parameters(const Model& model, const Job& job);

}  // namespace plait
