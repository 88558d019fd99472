#include "search/papers/layer_balance.h"

#include <algorithm>

namespace plait {
namespace {

// Metis' program re-balances a stage that does not fit up to three times and leaves it a tenth of
// slack (Um et al., USENIX ATC 2024; docs/peers.md).
constexpr int kAttempts = 3;
constexpr double kCaution = 0.9;

}  // namespace

const LayerBalance::Result& LayerBalance::run(const Layout& layout) {
  layout_ = &layout;
  stages_ = layout.stages();
  const Pins& pins = search_.space().pins();
  if (!pins.stages.empty()) {
    result_.cuts = pinned_cuts(pins);
    judge(1);
    return result_;
  }
  set_shares();
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    cut_by_share();
    move_units();
    judge(attempt);
    if (result_.fits || !shift_shares()) break;
  }
  return result_;
}

void LayerBalance::judge(int attempt) {
  result_.fits = true;
  for (int s = 0; s < stages_ && result_.fits; ++s)
    result_.fits = search_.fits(*layout_, s, units(s));
  result_.at_once = result_.fits && attempt == 1;
  if (result_.at_once) return;
  result_.fill.clear();
  for (int s = 0; s < stages_; ++s) result_.fill.push_back(search_.fill(*layout_, s, units(s)));
}

void LayerBalance::set_shares() {
  shares_.clear();
  double sum = 0;
  for (PaperFrame* frame : layout_->frames) {
    shares_.push_back(1 / search_.times(*frame).back());
    sum += shares_.back();
  }
  for (double& share : shares_) share /= sum;
}

// Cuts where the work that is done comes nearest to the sum of shares; no stage is empty.
void LayerBalance::cut_by_share() {
  const std::vector<double>& done = search_.times(*layout_->frames[0]);
  std::vector<int>& cuts = result_.cuts;
  cuts.assign(1, 0);
  double sum = 0;
  for (int s = 0; s + 1 < stages_; ++s) {
    sum += shares_[s];
    const double goal = sum * done.back();
    auto at = static_cast<int>(std::ranges::lower_bound(done, goal) - done.begin());
    at = std::min(at, units_);
    if (at > 0 && goal - done[at - 1] < done[at] - goal) --at;
    cuts.push_back(std::clamp(at, cuts.back() + 1, units_ - (stages_ - 1 - s)));
  }
  cuts.push_back(units_);
}

void LayerBalance::move_units() {
  times_.clear();
  for (int s = 0; s < stages_; ++s) times_.push_back(time(s));
  while (!search_.stopped()) {
    const auto slowest = static_cast<int>(std::ranges::max_element(times_) - times_.begin());
    if (units(slowest).size() == 1) return;
    int to = slowest == 0 ? 1 : slowest - 1;
    if (slowest > 0 && slowest + 1 < stages_ && times_[slowest + 1] < times_[slowest - 1])
      to = slowest + 1;
    if (to >= stages_) return;
    int& cut = result_.cuts[std::max(slowest, to)];
    const int before = cut;
    cut += to < slowest ? 1 : -1;
    const double gets = time(to);
    if (gets >= times_[slowest] * (1 - kSameTime) || !search_.fits(*layout_, to, units(to))) {
      cut = before;
      return;
    }
    times_[to] = gets;
    times_[slowest] = time(slowest);
  }
}

// False when every stage is overfull.
bool LayerBalance::shift_shares() {
  double lost = 0;
  double takers = 0;
  for (int s = 0; s < stages_; ++s) {
    if (result_.fill[s] <= 1) {
      takers += shares_[s];
      continue;
    }
    const double kept = shares_[s] * kCaution / result_.fill[s];
    lost += shares_[s] - kept;
    shares_[s] = kept;
  }
  if (takers <= 0) return false;
  for (int s = 0; s < stages_; ++s)
    if (result_.fill[s] <= 1) shares_[s] *= 1 + lost / takers;
  return true;
}

}  // namespace plait
