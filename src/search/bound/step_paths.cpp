#include "search/bound/step_paths.h"

namespace plait {
namespace {

constexpr PathWeights kRoundTrip{.time = 1, .closing = 1, .in = 1, .out = 1};
constexpr PathWeights kForward{.forward = 1, .in = 0.5, .out = 0.5};

}  // namespace

PathWeights& PathWeights::operator+=(const PathWeights& other) {
  time += other.time;
  forward += other.forward;
  longer += other.longer;
  finish += other.finish;
  closing += other.closing;
  in += other.in;
  out += other.out;
  each += other.each;
  return *this;
}

PathWeights operator*(double weight, PathWeights part) {
  part.time *= weight;
  part.forward *= weight;
  part.longer *= weight;
  part.finish *= weight;
  part.closing *= weight;
  part.in *= weight;
  part.out *= weight;
  part.each *= weight;
  return part;
}

std::vector<PivotPath> step_paths(PathFamily fill, double m, int pivots) {
  const PathWeights ends{.time = m, .finish = 1, .in = 0.5};
  if (fill == PathFamily::gpipe)
    return {{0,
             kRoundTrip,
             {.time = m, .closing = 1, .in = 1, .out = 1},
             {.time = 1, .in = 1, .out = 1}},
            {0, kForward, ends, {}}};
  std::vector<PivotPath> paths;
  for (int pivot = 0; pivot < pivots; ++pivot) {
    paths.push_back({pivot, kRoundTrip, {.time = m, .closing = 1, .in = 1}, {}});
    paths.push_back({pivot, kForward, ends, {}});
    if (fill == PathFamily::filled)
      paths.push_back({pivot,
                       kRoundTrip,
                       {.time = m, .closing = 1, .in = 1, .out = 2},
                       {.time = 2, .in = 2, .out = 2, .each = -1}});
    else
      paths.push_back({pivot,
                       kRoundTrip,
                       {.time = 1, .longer = m - 1, .closing = 1, .in = 1, .out = 1},
                       {.time = 1, .in = 1, .out = 1}});
  }
  return paths;
}

}  // namespace plait
