#pragma once

#include <algorithm>
#include <cmath>

namespace plait {

// Two things that run side by side take as long as the longer, with a soft corner where they are
// close: (a^p + b^p)^(1/p), the sharper the larger p = `exponent` is.
inline double beside(double a, double b, double exponent) {
  const double longer = std::max(a, b);
  const double shorter = std::min(a, b);
  if (shorter <= 0) return longer;
  return longer * std::pow(1 + std::pow(shorter / longer, exponent), 1 / exponent);
}

}  // namespace plait
