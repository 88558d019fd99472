#include "search/relaxation.h"

#include <algorithm>

namespace plait {
namespace {

constexpr double kAim = 1.02;  // beyond the incumbent, so that it is passed
constexpr int kFirstSteps = 12;
constexpr int kSteps = 6;  // uphill, when a cell has been cut

}  // namespace

Relaxation::Relaxation(const Space& space, const PlanSettings& settings, Schedule schedule,
                       StageCosts& costs, const HandOverFloor& sends, Seconds incumbent)
    : space_(space),
      classes_(space.run_classes()),
      schedule_(schedule),
      m_(settings.micro_batches),
      units_(space.problem().model.unit_count()),
      max_stages_(space.max_stages(settings)),
      incumbent_(incumbent.value) {
  const std::size_t pools = space.pools().size();
  devices_.assign(costs.option_count() * pools, 0);
  for (int o = 0; o < costs.option_count(); ++o)
    for (const Take& take : costs.option_at(o).takes)
      devices_[o * pools + take.pool] += take.devices;
  list_offers(costs, sends);
}

void Relaxation::list_offers(StageCosts& costs, const HandOverFloor& sends) {
  const int options = costs.option_count();
  std::vector<double> send(options);
  for (int o = 0; o < options; ++o) send[o] = sends.beside(costs.option_at(o)).value;
  offers_.resize(classes_.count());
  std::vector<char> alive(options, 1);  // not yet too slow, for runs that begin where they do
  int begin = -1;
  for (int c = 0; c < classes_.count(); ++c) {
    const UnitRange& run = classes_.firsts()[c];
    if (run.begin != begin) alive.assign(options, 1);
    begin = run.begin;
    Offers& offers = offers_[c];
    offers.first = run.begin == 0;
    offers.last = run.end == units_;
    const bool whole = offers.first && offers.last;
    if (max_stages_ == 1 && !whole) continue;
    const double ends = (offers.first ? 0 : 1) + (offers.last ? 0 : 1);
    for (int o = 0; o < options; ++o) {
      if (alive[o] == 0) continue;
      const StageTime time = costs.run_time(o, run, 0);
      const double total = time.total().value;
      if (!(m_ * total + time.finish.value < incumbent_)) {
        alive[o] = 0;  // more units take longer, and more memory
        continue;
      }
      if (whole)
        single_ = std::min(single_, m_ * total + time.finish.value);
      else
        offers.entries.push_back({total, time.finish.value, ends * send[o], o});
    }
    if (whole || offers.entries.empty()) continue;
    longest_run_ = std::max(longest_run_, run.size());
    drop_dominated(offers.entries);
  }
}

// Keeps those that are better than each of the others in something.
void Relaxation::drop_dominated(std::vector<Entry>& entries) const {
  const std::size_t pools = space_.pools().size();
  std::ranges::stable_sort(entries, {}, &Entry::time);
  std::vector<Entry> kept;
  for (const Entry& entry : entries) {
    const bool beaten = std::ranges::any_of(kept, [&](const Entry& other) {
      if (other.finish > entry.finish || other.send > entry.send) return false;
      for (std::size_t p = 0; p < pools; ++p)
        if (devices_[other.option * pools + p] > devices_[entry.option * pools + p]) return false;
      return true;
    });
    if (!beaten) kept.push_back(entry);
  }
  entries = std::move(kept);
}

Relaxation::Weights Relaxation::weights_of(const Cell& cell, double m) {
  switch (cell.path) {
    case Path::filled:
      return {2 * cell.share, cell.count - cell.share * cell.low,
              m * cell.low - (m - 2) * cell.count};
    case Path::filling:
      return {cell.share, -cell.count,
              ((1 - cell.share) * m + cell.share * (m + 1) / 2) * cell.low + (m - 1) * cell.count};
    case Path::gpipe:
      return {1, 0, m * cell.low};
  }
  return {};
}

void Relaxation::evaluate(Cell& cell, Slope* slope) {
  ++evaluations_;
  const std::size_t pools = space_.pools().size();
  const Weights weights = weights_of(cell, m_);
  option_price_.assign(devices_.size() / pools, 0);
  for (std::size_t i = 0; i < devices_.size(); ++i)
    option_price_[i / pools] += devices_[i] * cell.price[i % pools];
  before_.assign(offers_.size(), {});
  slowest_.assign(offers_.size(), {});
  after_.assign(offers_.size(), {});
  for (std::size_t c = 0; c < offers_.size(); ++c) {
    const Offers& offers = offers_[c];
    for (std::size_t i = 0; i < offers.entries.size(); ++i) {
      const Entry& entry = offers.entries[i];
      if (entry.time > cell.high) break;
      const int at = static_cast<int>(i);
      const double fixed = option_price_[entry.option];
      const double finish = offers.first ? entry.finish : 0;
      const double before = entry.time + entry.send + fixed + finish;
      if (before < before_[c].cost) before_[c] = {before, at};
      const double after = weights.time * (entry.time + entry.send) + weights.each + fixed;
      if (after < after_[c].cost) after_[c] = {after, at};
      if (entry.time < cell.low) continue;
      // Of two hand-overs one is on the way to it, the other belongs to what comes after.
      const double out = offers.last ? 0 : offers.first ? 1 : 0.5;
      const double sends = entry.send * ((1 - out) + weights.time * out);
      const double slowest = sends + fixed + finish;
      if (slowest < slowest_[c].cost) slowest_[c] = {slowest, at};
    }
  }
  cell.before.assign(units_ + 1, HUGE_VAL);
  cell.through.assign(units_ + 1, HUGE_VAL);
  before_links_.assign(units_ + 1, {});
  through_links_.assign(units_ + 1, {});
  cell.before[0] = 0;
  for (int end = 1; end <= units_; ++end) {
    for (int begin = std::max(0, end - longest_run_); begin < end; ++begin) {
      const int c = classes_.of({begin, end});
      const double in_front = cell.before[begin] + before_[c].cost;
      if (in_front < cell.before[end]) {
        cell.before[end] = in_front;
        before_links_[end] = {begin, 0};
      }
      const double here = cell.before[begin] + slowest_[c].cost;
      const double passed = cell.through[begin] + after_[c].cost;
      if (here < cell.through[end] || passed < cell.through[end]) {
        cell.through[end] = std::min(here, passed);
        through_links_[end] = {begin, here <= passed ? 1 : 2};
      }
    }
  }
  cell.value = weights.slowest + cell.through[units_];
  for (std::size_t p = 0; p < pools; ++p) cell.value -= cell.price[p] * space_.pools()[p].size();
  if (slope != nullptr && std::isfinite(cell.value)) trace(cell, *slope);
}

void Relaxation::trace(const Cell& cell, Slope& slope) const {
  const std::size_t pools = space_.pools().size();
  slope.devices.assign(pools, 0);
  for (std::size_t p = 0; p < pools; ++p) slope.devices[p] = -space_.pools()[p].size();
  slope.share = cell.path == Path::filling ? (1 - m_) / 2 * cell.low : 0;
  int after = 0;
  bool passed = false;  // the slowest stage
  for (int end = units_; end > 0;) {
    const Link& link = passed ? before_links_[end] : through_links_[end];
    const int c = classes_.of({link.from, end});
    const Role& role = link.role == 0 ? before_[c] : link.role == 1 ? slowest_[c] : after_[c];
    const Entry& entry = offers_[c].entries[role.entry];
    after += link.role == 2 ? 1 : 0;
    for (std::size_t p = 0; p < pools; ++p) slope.devices[p] += devices_[entry.option * pools + p];
    const double by_share = cell.path == Path::filled ? 2 : cell.path == Path::filling ? 1 : 0;
    if (link.role == 2) {
      slope.share += by_share * (entry.time + entry.send);
      if (cell.path == Path::filled) slope.share -= cell.low;
    }
    passed |= link.role == 1;
    end = link.from;
  }
  slope.count = cell.path == Path::filled    ? after - (m_ - 2)
                : cell.path == Path::filling ? (m_ - 1) - after
                                             : 0;
}

// Steps uphill whose length would reach the incumbent if the slope went on (Polyak); shorter ones
// when the last one did not help. Keeps the best place.
void Relaxation::climb(Cell& cell, int steps) {
  const std::size_t pools = space_.pools().size();
  Slope slope;
  evaluate(cell, &slope);
  Cell best = cell;
  double stride = 1;
  for (int i = 0; i < steps; ++i) {
    if (best.value >= incumbent_) break;
    // In seconds: what all devices of a pool cost, and the incumbent's share.
    double square = 0;
    std::vector<double> up(pools);
    for (std::size_t p = 0; p < pools; ++p) {
      const double size = space_.pools()[p].size();
      up[p] = slope.devices[p] / size;
      if (up[p] < 0 && cell.price[p] <= 0) up[p] = 0;
      square += up[p] * up[p];
    }
    double up_share = slope.share / incumbent_;
    if ((up_share < 0 && cell.share <= 0) || (up_share > 0 && cell.share >= 1)) up_share = 0;
    square += up_share * up_share;
    double up_count = slope.count / m_;
    if (up_count < 0 && cell.count <= 0) up_count = 0;
    square += up_count * up_count;
    if (square <= 1e-18) break;
    const double length = stride * (kAim * incumbent_ - cell.value) / square;
    for (std::size_t p = 0; p < pools; ++p)
      cell.price[p] = std::max(0.0, cell.price[p] + length * up[p] / space_.pools()[p].size());
    cell.share = std::clamp(cell.share + length * up_share / incumbent_, 0.0, 1.0);
    cell.count = std::max(0.0, cell.count + length * up_count / m_);
    evaluate(cell, &slope);
    if (!std::isfinite(cell.value)) {  // no plan at all
      best = cell;
      break;
    }
    if (cell.value > best.value) {
      best = cell;
    } else {
      stride *= 0.6;
    }
  }
  cell = std::move(best);
}

Seconds Relaxation::tighten(std::span<const double> worth, Seconds least, int evaluations) {
  const double most = incumbent_ / m_;
  const double low = std::min(least.value, most);
  if (max_stages_ > 1 && longest_run_ > 0) {
    double all = 0;
    for (std::size_t p = 0; p < worth.size(); ++p) all += worth[p] * space_.pools()[p].size();
    Cell cell;
    cell.low = low;
    cell.high = most;
    for (const double each : worth) cell.price.push_back(0.5 * incumbent_ * each / all);
    const auto add = [&](Path path) {
      cell.path = path;
      cells_.push_back(cell);
      climb(cells_.back(), kFirstSteps);
    };
    if (schedule_ == Schedule::gpipe) {
      add(Path::gpipe);
    } else {
      if (m_ > 1) add(Path::filled);
      if (max_stages_ >= m_) add(Path::filling);
    }
  }
  const auto open = [&](const Cell& cell) { return cell.value < incumbent_; };
  std::erase_if(cells_, [&](const Cell& cell) { return !open(cell); });
  while (evaluations_ < evaluations && !cells_.empty()) {
    const auto lowest = std::ranges::min_element(cells_, {}, &Cell::value);
    if (single_ < lowest->value || lowest->high < 1.002 * lowest->low) break;
    Cell upper = *lowest;
    Cell lower = std::move(*lowest);
    cells_.erase(lowest);
    upper.low = lower.high = std::sqrt(upper.low * upper.high);
    for (Cell* cell : {&lower, &upper}) {
      climb(*cell, kSteps);
      if (open(*cell)) cells_.push_back(std::move(*cell));
    }
  }
  std::ranges::sort(cells_, {}, &Cell::low);
  double bound = std::min(incumbent_, single_);
  for (const Cell& cell : cells_) bound = std::min(bound, cell.value);
  if (!cells_.empty() || single_ < HUGE_VAL) return Seconds(bound);
  return Seconds(incumbent_);
}

double Relaxation::spent(const Cell& cell, std::span<const int> used) const {
  double sum = 0;
  for (std::size_t p = 0; p < used.size(); ++p)
    sum += cell.price[p] * (space_.pools()[p].size() - used[p]);
  return sum;
}

Seconds Relaxation::step(const Tail& tail, int left, std::span<const int> used) const {
  double bound = incumbent_;
  for (const Cell& cell : cells_) {
    if (cell.high < tail.longest.value) continue;
    double value = tail.total.value + tail.slack.value + cell.before[left];
    // Else the slowest stage may be one of those that are known.
    if (tail.longest.value < cell.low) {
      const Weights weights = weights_of(cell, m_);
      value = std::max(value, weights.slowest + cell.through[left] +
                                  weights.time * tail.total.value + weights.each * tail.stages);
    }
    bound = std::min(bound, value - spent(cell, used));
  }
  return Seconds(bound);
}

Seconds Relaxation::open_units(const Tail& tail, int left, std::span<const int> used) const {
  double bound = incumbent_;
  for (const Cell& cell : cells_)
    if (cell.high >= tail.longest.value)
      bound = std::min(bound,
                       tail.total.value + tail.slack.value + cell.before[left] - spent(cell, used));
  return Seconds(bound);
}

}  // namespace plait
