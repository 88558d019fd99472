#include "search/bound/suffix_bounds.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

constexpr int kRow = kPivotStates + 1;

}  // namespace

SuffixBounds::SuffixBounds(const Space& space, double micro_batches, Seconds incumbent,
                           std::vector<PricedCell> cells)
    : m_(micro_batches), incumbent_(incumbent.value), cells_(std::move(cells)) {
  for (const Pool& pool : space.pools()) sizes_.push_back(pool.size());
  const auto value = [&](const PricedCell& cell) {
    double sum = cell.fixed + cell.chains.back();
    for (std::size_t p = 0; p < sizes_.size(); ++p) sum -= cell.price[p] * sizes_[p];
    return sum;
  };
  std::ranges::stable_sort(cells_, {}, value);
  const auto middle = std::stable_partition(cells_.begin(), cells_.end(),
                                            [](const PricedCell& cell) { return !cell.by_step; });
  timed_ = static_cast<std::size_t>(middle - cells_.begin());
  for (const PricedCell& cell : cells_) {
    price_.insert(price_.end(), cell.price.begin(), cell.price.end());
    double whole = 0;
    for (std::size_t p = 0; p < sizes_.size(); ++p) whole += cell.price[p] * sizes_[p];
    whole_.push_back(whole);
  }
  const int units = space.problem().model.unit_count();
  for (int u = 0; u <= units; ++u) {
    for (const PricedCell& cell : cells_) {
      rows_.push_back(cell.ahead[u]);
      for (int i = 0; i < kPivotStates; ++i)
        rows_.push_back(cell.chains[u * kPivotStates + i] + cell.fixed);
    }
  }
}

void SuffixBounds::left_over(std::span<const int> used, std::vector<double>& by_cell) const {
  by_cell = whole_;
  const double* price = price_.data();
  for (double& sum : by_cell)
    for (const int devices : used) sum -= *price++ * devices;
}

double SuffixBounds::cell_step(std::size_t c, const PipelineSuffix& tail, int left,
                               double enough) const {
  const PricedCell& cell = cells_[c];
  const double* row = &rows_[(left * cells_.size() + c) * kRow];
  const double total = tail.total.value;
  const double returns = total + tail.slack.value;
  double value = row[0] + returns;
  if (value >= enough) return value;
  const double ends = total + std::max(tail.slack, tail.ended).value;
  const double known = cell.by_step ? tail.longest_step.value : m_ * tail.longest.value;
  for (int i = 0; i < kPivotStates; ++i) {
    if (i > 0 && known >= kPivots[i - 1] * cell.low) break;  // it may be the pivot
    const PricedCell::SuffixWeights& part = cell.tail[i];
    value = std::max(value, row[i + 1] + part.time * total + part.each * tail.stages +
                                part.returns * returns + part.ends * ends);
  }
  return value;
}

double SuffixBounds::least(std::size_t from, std::size_t to, const PipelineSuffix& tail, int left,
                           std::span<const double> left_over, double limit) const {
  double least = limit;
  for (std::size_t c = from; c < to; ++c) {
    const double longest =
        cells_[c].by_step ? tail.least_longest_step.value : m_ * tail.least_longest.value;
    if (cells_[c].high < longest) continue;  // the slowest stage is slower than that
    least = std::min(least, cell_step(c, tail, left, least + left_over[c]) - left_over[c]);
  }
  return least;
}

Seconds SuffixBounds::step(const PipelineSuffix& tail, int left, std::span<const double> left_over,
                           Seconds tied) const {
  const double limit = incumbent_ - tied.value;
  const double by_time = least(0, timed_, tail, left, left_over, limit);
  if (timed_ == cells_.size() || by_time >= limit) return Seconds(by_time) + tied;
  return Seconds(std::max(by_time, least(timed_, cells_.size(), tail, left, left_over, limit))) +
         tied;
}

bool SuffixBounds::reaches(const PipelineSuffix& tail, int left, std::span<const double> left_over,
                           Seconds limit) const {
  if (limit.value > incumbent_) return false;
  const double returns = tail.total.value + tail.slack.value;
  for (std::size_t c = 0; c < timed_; ++c) {
    if (cells_[c].high < m_ * tail.least_longest.value) continue;
    const double ahead = rows_[(left * cells_.size() + c) * kRow];
    if (returns + ahead - left_over[c] < limit.value) return false;
  }
  return true;
}

}  // namespace plait
