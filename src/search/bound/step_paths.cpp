#include "search/bound/step_paths.h"

namespace plait {
namespace {

constexpr Part kRoundTrip{.time = 1, .closing = 1, .in = 1, .out = 1};
constexpr Part kForward{.forward = 1, .in = 0.5, .out = 0.5};

}  // namespace

Part& Part::operator+=(const Part& other) {
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

Part operator*(double weight, Part part) {
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

std::vector<StepPath> step_paths(Fill fill, double m, int pivots) {
  const Part ends{.time = m, .finish = 1, .in = 0.5};
  if (fill == Fill::gpipe)
    return {{0,
             kRoundTrip,
             {.time = m, .closing = 1, .in = 1, .out = 1},
             {.time = 1, .in = 1, .out = 1}},
            {0, kForward, ends, {}}};
  std::vector<StepPath> paths;
  for (int pivot = 0; pivot < pivots; ++pivot) {
    paths.push_back({pivot, kRoundTrip, {.time = m, .closing = 1, .in = 1}, {}});
    paths.push_back({pivot, kForward, ends, {}});
    if (fill == Fill::filled)
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
