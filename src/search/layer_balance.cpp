#include "search/layer_balance.h"

#include <algorithm>
#include <numeric>

namespace plait {
namespace {

constexpr int kAttempts = 3;
constexpr double kCaution = 0.9;
constexpr double kSame = 1e-9;

class LayerBalance {
 public:
  LayerBalance(PeerSearch& search, const Layout& layout)
      : search_(search),
        layout_(layout),
        stages_(layout.stages()),
        units_(search.units()),
        done_(search.times(*layout.frames[0])) {
    double sum = 0;
    for (const SpanFrame* frame : layout.frames) {
      shares_.push_back(1 / search.times(*frame).back());
      sum += shares_.back();
    }
    for (double& share : shares_) share /= sum;
  }

  Balance run() {
    if (auto cuts = pinned_cuts(search_.space().pins()); !cuts.empty()) {
      cuts_ = cuts;
      return {cuts_, fill(), 1};
    }
    Balance balance;
    for (int attempt = 1; attempt <= kAttempts; ++attempt) {
      cut_by_share();
      move_units();
      balance = {cuts_, fill(), attempt};
      if (balance.fits() || !shift_shares(balance.fill)) break;
    }
    return balance;
  }

 private:
  // Cuts where the work that is done comes nearest to the sum of shares; no stage is empty.
  void cut_by_share() {
    cuts_.assign(1, 0);
    double sum = 0;
    for (int s = 0; s + 1 < stages_; ++s) {
      sum += shares_[s];
      const double goal = sum * done_.back();
      auto at = static_cast<int>(std::ranges::lower_bound(done_, goal) - done_.begin());
      at = std::min(at, units_);
      if (at > 0 && goal - done_[at - 1] < done_[at] - goal) --at;
      cuts_.push_back(std::clamp(at, cuts_.back() + 1, units_ - (stages_ - 1 - s)));
    }
    cuts_.push_back(units_);
  }

  UnitRange units(int stage) const { return {cuts_[stage], cuts_[stage + 1]}; }
  double time(int stage) const { return search_.time(*layout_.frames[stage], units(stage)).value; }

  void move_units() {
    std::vector<double> times;
    for (int s = 0; s < stages_; ++s) times.push_back(time(s));
    while (!search_.stopped()) {
      const auto slowest = static_cast<int>(std::ranges::max_element(times) - times.begin());
      if (units(slowest).size() == 1) return;
      int to = slowest == 0 ? 1 : slowest - 1;
      if (slowest > 0 && slowest + 1 < stages_ && times[slowest + 1] < times[slowest - 1])
        to = slowest + 1;
      if (to >= stages_) return;
      int& cut = cuts_[std::max(slowest, to)];
      const int before = cut;
      cut += to < slowest ? 1 : -1;
      const double gets = time(to);
      if (gets >= times[slowest] * (1 - kSame) || search_.fill(layout_, to, units(to)) > 1) {
        cut = before;
        return;
      }
      times[to] = gets;
      times[slowest] = time(slowest);
    }
  }

  std::vector<double> fill() const {
    std::vector<double> fill;
    for (int s = 0; s < stages_; ++s) fill.push_back(search_.fill(layout_, s, units(s)));
    return fill;
  }

  // False when every stage is overfull.
  bool shift_shares(const std::vector<double>& fill) {
    double lost = 0;
    double takers = 0;
    for (int s = 0; s < stages_; ++s) {
      if (fill[s] <= 1) {
        takers += shares_[s];
        continue;
      }
      const double kept = shares_[s] * kCaution / fill[s];
      lost += shares_[s] - kept;
      shares_[s] = kept;
    }
    if (takers <= 0) return false;
    for (int s = 0; s < stages_; ++s)
      if (fill[s] <= 1) shares_[s] *= 1 + lost / takers;
    return true;
  }

  PeerSearch& search_;
  const Layout& layout_;
  const int stages_;
  const int units_;
  const std::vector<double>& done_;  // [u]: work of units [0, u) on the first stage's devices
  std::vector<double> shares_;       // of the work, by stage; they add up to 1
  std::vector<int> cuts_;
};

}  // namespace

bool Balance::fits() const {
  return std::ranges::all_of(fill, [](double f) { return f <= 1; });
}

Balance balance_layers(PeerSearch& search, const Layout& layout) {
  return LayerBalance(search, layout).run();
}

}  // namespace plait
