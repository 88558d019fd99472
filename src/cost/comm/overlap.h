#pragma once

#include <algorithm>

#include "base/units.h"

namespace plait {

// Seconds that a communication adds when `beside` seconds of compute may run at the same time. What
// finds no compute to run beside counts in full. What does is hidden, at a price: kernels of both
// share the device's memory and multiprocessors, so that each hidden second slows compute down by
// `price` seconds (0 = for free, 1 = nothing is gained).
//   comm - (1 - price) min(comm, beside)
// Never less than price * comm, and comm + beside together never less than comm.
inline Seconds exposed(Seconds comm, Seconds beside, double price) {
  return comm - (1 - price) * std::min(comm, beside);
}

}  // namespace plait
