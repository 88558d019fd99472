#pragma once

#include "base/units.h"
#include "plan/problem.h"

namespace plait {

// Bytes that training keeps for each parameter, and bytes that it sends.
struct StateBytes {
  double weight = 2;
  double gradient = 2;
  double optimizer = 12;        // master copy included
  double sharded_gradient = 0;  // a copy that exists only where ZeRO cuts the optimizer state
  double gathered = 2;          // of a weight that is sent to where it is computed with
  double sent_gradient = 2;     // of a gradient that is reduced
};
// `sharded_weights`: as under ZeRO-3, where the frameworks that gather weights keep them in fp32.
StateBytes state_bytes(const Job& job, bool sharded_weights = false);

// Bytes that the optimizer step reads and writes per parameter: Adam in mixed precision reads a
// 2-byte gradient, reads and writes three fp32 values and writes the 2-byte weight, 28 in all.
double optimizer_traffic(const Job& job);

// Bytes of host memory that its processors read and write to update a parameter whose state is kept
// there, in fp32: 30 for Adam in mixed precision (docs/cost-model.md#offload).
double host_update_traffic(const Job& job);

// What a plan may use of a device: its memory less the reserve, and no more than the limit.
Bytes usable_memory(const Job& job, const DeviceType& device);

// Of attention and of the output layer: 16 bits for fp8.
DType attention_dtype(Precision precision);
double activation_bytes(Precision precision);

// Whether the job's weights are fp32 and converted for every product.
bool is_autocast(const Job& job);

// Of an element that blocks hand on: 4 under autocast, else as computed with.
double stream_bytes(const Job& job);

// The traits of the job's framework, with what the job says of overlap, logits and precision.
FrameworkTraits traits_of(const Job& job);

}  // namespace plait
