#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/units.h"
#include "search/space/pipeline_suffix.h"
#include "search/space/space.h"

namespace plait {

// The pivots of a relaxed plan (step_paths.h): the last stages that take at least these parts of
// the least that the slowest may take. The first is the slowest itself.
inline constexpr std::array<double, 3> kPivots{1, 0.9, 0.75};
inline constexpr int kPivotCount = static_cast<int>(kPivots.size());
inline constexpr int kPivotStates = kPivotCount + 1;  // by pivots passed

// A solved cell of a Relaxation: with these prices, every plan whose slowest stage is in the cell
// takes at least what its chains and its tail cost.
struct PricedCell {
  // What the last stages of a plan count for: per second of their round trip, each, per second of
  // the round trip with their slack, and the same with what ends later.
  struct SuffixWeights {
    double time = 0;
    double each = 0;
    double returns = 0;
    double ends = 0;
  };
  bool by_step = false;  // the slowest stage is that of most m x + finish, not of most x
  double low = 0;        // of what that stage takes: m x, or m x + finish
  double high = 0;
  double fixed = 0;           // the same for all stages
  std::vector<double> price;  // by pool, of one device
  std::vector<double>
      chains;  // [u * kPivotStates + i] = least cost of units [0, u) with i pivots there
  std::vector<double> ahead;                     // [u] = their least round trip, devices included
  std::array<SuffixWeights, kPivotStates> tail;  // by pivots among the open units
};

// Lower bounds on plans of which the last stages are known and units [0, left) are open, from the
// cells that such a plan may be in. Pivots that may be among the known stages are replaced by what
// is known of these.
class SuffixBounds {
 public:
  SuffixBounds() = default;
  // The cells hold for plans that are faster than the incumbent.
  SuffixBounds(const Space& space, double micro_batches, Seconds incumbent,
               std::vector<PricedCell> cells);

  // What the devices that are left cost when these are used, by cell.
  void left_over(std::span<const int> used, std::vector<double>& by_cell) const;
  // No such plan is faster than this, or than the incumbent. `tied`: what follows the pipeline, at
  // least.
  Seconds step(const PipelineSuffix& tail, int left, std::span<const double> left_over,
               Seconds tied) const;
  // Whether no such plan is faster than `limit`, by its round trip alone; one more stage, of which
  // nothing is known but its devices, may have been part of `used`.
  bool reaches(const PipelineSuffix& tail, int left, std::span<const double> left_over,
               Seconds limit) const;

 private:
  // Of a cell, devices apart, or anything that is not below `enough`.
  double cell_step(std::size_t cell, const PipelineSuffix& tail, int left, double enough) const;
  double least(std::size_t from, std::size_t to, const PipelineSuffix& tail, int left,
               std::span<const double> left_over, double limit) const;

  double m_ = 1;
  double incumbent_ = 0;
  std::vector<int> sizes_;         // of the pools
  std::vector<PricedCell> cells_;  // those by x first, the lowest first
  std::size_t timed_ = 0;          // of which are by x
  std::vector<double> price_;      // [cell * pools + pool]
  std::vector<double> whole_;      // price of all devices
  std::vector<double> rows_;       // [(left * cells + cell) * kRow]: ahead, then the chains
};

}  // namespace plait
