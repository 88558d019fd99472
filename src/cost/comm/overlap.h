#pragma once

#include <algorithm>
#include <cmath>

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

// Two things that run side by side take as long as the longer, with a soft corner where they are
// close: (a^p + b^p)^(1/p), the sharper the larger p = `exponent` is.
inline double beside(double a, double b, double exponent) {
  const double longer = std::max(a, b);
  const double shorter = std::min(a, b);
  if (shorter <= 0) return longer;
  return longer * std::pow(1 + std::pow(shorter / longer, exponent), 1 / exponent);
}

}  // namespace plait
