#pragma once

#include <string>

#include "cost/op/source.h"

namespace plait {

// Where the numbers of a unit come from.
struct Origin {
  Source time = Source::analytic;
  Source memory = Source::analytic;
  // The measurements that the times were made from: one tensor degree and sequence, and the
  // micro-batches on both sides (equal when there is only one).
  int tensor = 0;
  int sequence = 0;  // 0 = the model's own
  int micro_batch_low = 0;
  int micro_batch_high = 0;
  bool communication_inside = false;
  friend bool operator==(const Origin&, const Origin&) = default;
};

// "measured", "interpolated from tp 1, micro-batch 2 and 4", "analytic"
std::string in_words(const Origin& origin);

}  // namespace plait
