#include "runtime/lower/exec_op.h"

#include <algorithm>

namespace plait::runtime {

std::vector<Interval> shard_of(const std::vector<Part>& parts, int tensor, int rank) {
  std::vector<Interval> out;
  std::int64_t offset = 0;
  for (const Part& part : parts) {
    Interval mine;
    if (part.pieces == 0) {
      const std::int64_t each = (part.size + tensor - 1) / tensor;
      mine = {std::min(part.size, rank * each), std::min(part.size, (rank + 1) * each)};
    } else {
      const std::int64_t piece = part.size / part.pieces;
      const std::int64_t count = std::max<std::int64_t>(1, part.pieces / tensor);
      const std::int64_t first = part.pieces >= tensor ? rank * count : rank * part.pieces / tensor;
      mine = {first * piece, (first + count) * piece};
    }
    out.push_back({offset + mine.begin, offset + mine.end});
    offset += part.size;
  }
  return out;
}

double Parameter::size() const {
  double product = 1;
  for (const std::int64_t n : shape) product *= static_cast<double>(n);
  return product;
}

}  // namespace plait::runtime
