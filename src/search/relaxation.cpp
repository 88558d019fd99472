#include "search/relaxation.h"

#include <algorithm>
#include <numeric>

namespace plait {
namespace {

constexpr int kFirstSteps = 60;
constexpr int kSteps = 12;      // uphill, when a cell has been cut
constexpr double kWide = 1.01;  // cells are cut down to this before they are climbed again
constexpr double kNarrow = 1.002;

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
  for (const Offers& offers : offers_) work_each_ += static_cast<double>(offers.entries.size());
  work_each_ += static_cast<double>(units_) * longest_run_;
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
      const double tied = offers.last && !whole ? costs.tied_to(o).value : 0;
      if (!(m_ * total + time.finish.value + tied < incumbent_)) {
        alive[o] = 0;  // more units take longer, and more memory
        continue;
      }
      if (whole)
        single_ = std::min(single_, m_ * total + time.finish.value);
      else
        offers.entries.push_back(
            {total, time.forward.value, time.finish.value, ends * send[o], tied, o});
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
      if (other.finish > entry.finish || other.send > entry.send || other.forward > entry.forward ||
          other.tied > entry.tied)
        return false;
      for (std::size_t p = 0; p < pools; ++p)
        if (devices_[other.option * pools + p] > devices_[entry.option * pools + p]) return false;
      return true;
    });
    if (!beaten) kept.push_back(entry);
  }
  entries = std::move(kept);
}

Relaxation::Weights Relaxation::weights_of(const Cell& cell, double m) {
  const double longest = cell.high / m;  // most that the slowest stage takes for a micro-batch
  switch (cell.path) {
    case Path::filled:
      return {2 * cell.share, cell.count - cell.share * longest, m, -(m - 2) * cell.count};
    case Path::filling:
      return {cell.share, -cell.count, (1 - cell.share) * m + cell.share * (m + 1) / 2,
              (m - 1) * cell.count};
    case Path::gpipe:
      return {1 - cell.late, 0, m, 0};
  }
  return {};
}

void Relaxation::evaluate(Cell& cell, Slope* slope) {
  work_left_ -= work_each_;
  const std::size_t pools = space_.pools().size();
  const Weights weights = weights_of(cell, m_);
  const double late = cell.late;
  const double by_finish = cell.slowest == Slowest::by_step ? 1 : 0;
  option_price_.assign(devices_.size() / pools, 0);
  for (std::size_t i = 0; i < devices_.size(); ++i)
    option_price_[i / pools] += devices_[i] * cell.price[i % pools];
  before_.assign(offers_.size(), {});
  slowest_.assign(offers_.size(), {});
  after_.assign(offers_.size(), {});
  for (std::size_t c = 0; c < offers_.size(); ++c) {
    const Offers& offers = offers_[c];
    // Of two hand-overs one is on the way to a stage, the other belongs to what comes after.
    const double out = offers.last ? 0 : offers.first ? 1 : 0.5;
    const double sends = (1 - out) * (1 - late / 2) + out * weights.time;
    for (std::size_t i = 0; i < offers.entries.size(); ++i) {
      const Entry& entry = offers.entries[i];
      if (m_ * entry.time > cell.high) break;
      const double takes = m_ * entry.time + by_finish * entry.finish;
      if (takes > cell.high) continue;
      const int at = static_cast<int>(i);
      const double fixed = option_price_[entry.option] + entry.tied;
      const double finish = offers.first ? (1 - late) * entry.finish : 0;
      const double before = (1 - late) * entry.time + late * entry.forward +
                            (1 - late / 2) * entry.send + fixed + finish;
      if (before < before_[c].cost) before_[c] = {before, at};
      const double after = weights.time * (entry.time + entry.send) + weights.each + fixed;
      if (after < after_[c].cost) after_[c] = {after, at};
      if (takes < cell.low) continue;
      const double slowest =
          weights.slowest * entry.time + late * entry.finish + sends * entry.send + fixed + finish;
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
  cell.value = weights.fixed + cell.through[units_];
  for (std::size_t p = 0; p < pools; ++p) cell.value -= cell.price[p] * space_.pools()[p].size();
  if (slope != nullptr && std::isfinite(cell.value)) trace(cell, *slope);
}

void Relaxation::trace(const Cell& cell, Slope& slope) const {
  const std::size_t pools = space_.pools().size();
  slope.devices.assign(pools, 0);
  for (std::size_t p = 0; p < pools; ++p) slope.devices[p] = -space_.pools()[p].size();
  slope.share = slope.late = 0;
  int after = 0;
  bool passed = false;  // the slowest stage
  for (int end = units_; end > 0;) {
    const Link& link = passed ? before_links_[end] : through_links_[end];
    const int c = classes_.of({link.from, end});
    const Role& role = link.role == 0 ? before_[c] : link.role == 1 ? slowest_[c] : after_[c];
    const Entry& entry = offers_[c].entries[role.entry];
    for (std::size_t p = 0; p < pools; ++p) slope.devices[p] += devices_[entry.option * pools + p];
    if (link.role == 0) slope.late += entry.forward - entry.time - entry.send / 2;
    if (link.role == 1) {
      slope.late += entry.finish;
      if (cell.path == Path::filling) slope.share -= (m_ - 1) / 2 * entry.time;
    }
    if (link.role != 2 && offers_[c].first) slope.late -= entry.finish;
    if (link.role == 2) {
      ++after;
      if (cell.path == Path::filled)
        slope.share += 2 * (entry.time + entry.send) - cell.high / m_;
      else if (cell.path == Path::filling)
        slope.share += entry.time + entry.send;
      else
        slope.late -= entry.time + entry.send;
    }
    passed |= link.role == 1;
    end = link.from;
  }
  slope.count = cell.path == Path::filled    ? after - (m_ - 2)
                : cell.path == Path::filling ? (m_ - 1) - after
                                             : 0;
}

// The slope in seconds: of what all devices of a pool cost, of a, of the price of a stage too many;
// without directions in which the cell cannot move.
std::vector<double> Relaxation::uphill(const Cell& cell, const Slope& slope) const {
  std::vector<double> up;
  for (std::size_t p = 0; p < cell.price.size(); ++p) {
    up.push_back(slope.devices[p] / space_.pools()[p].size());
    if (up[p] < 0 && cell.price[p] <= 0) up[p] = 0;
  }
  const bool at_end = slope.share < 0 ? cell.share <= 0 : cell.share >= 1;
  up.push_back(at_end ? 0 : slope.share / incumbent_);
  const bool late_end = slope.late < 0 ? cell.late <= 0 : cell.late >= 1;
  up.push_back(late_end ? 0 : slope.late / incumbent_);
  up.push_back(slope.count < 0 && cell.count <= 0 ? 0 : slope.count / m_);
  return up;
}

void Relaxation::move(Cell& cell, const std::vector<double>& by, double length) const {
  const std::size_t pools = cell.price.size();
  for (std::size_t p = 0; p < pools; ++p)
    cell.price[p] = std::max(0.0, cell.price[p] + length * by[p] / space_.pools()[p].size());
  cell.share = std::clamp(cell.share + length * by[pools] / incumbent_, 0.0, 1.0);
  cell.late = std::clamp(cell.late + length * by[pools + 1] / incumbent_, 0.0, 1.0);
  if (const double sum = cell.share + cell.late; sum > 1) {
    cell.share /= sum;
    cell.late /= sum;
  }
  cell.count = std::max(0.0, cell.count + length * by[pools + 2] / m_);
}

// Shor's r-algorithm: steps along the slope in a space that is shrunk along the difference of two
// slopes, so that ridges, where prices must rise together, are followed. Keeps the best place.
void Relaxation::climb(Cell& cell, int evaluations) {
  constexpr double kShrink = 0.5;
  const std::size_t n = cell.price.size() + 3;
  std::vector<double> space(n * n, 0);  // columns shrink
  for (std::size_t i = 0; i < n; ++i) space[i * n + i] = 1;
  const auto inwards = [&](const std::vector<double>& v) {
    std::vector<double> out(n, 0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) out[j] += space[i * n + j] * v[i];
    return out;
  };
  const auto norm = [](const std::vector<double>& v) {
    return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
  };
  Slope slope;
  evaluate(cell, &slope);
  if (!std::isfinite(cell.value)) return;
  Cell best = cell;
  double stride = 0.05 * incumbent_;
  std::vector<double> up = uphill(cell, slope);
  for (int spent = 1; spent < evaluations && best.value < incumbent_;) {
    const std::vector<double> inner = inwards(up);
    const double length = norm(inner);
    if (length <= 1e-9 || stride <= 1e-5 * incumbent_) break;
    std::vector<double> direction(n, 0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) direction[i] += space[i * n + j] * inner[j] / length;
    const std::vector<double> before = up;
    int steps = 0;
    for (double along = 1; along > 0 && spent < evaluations && best.value < incumbent_; ++spent) {
      if (++steps % 3 == 0) stride *= 1.6;
      move(cell, direction, stride);
      evaluate(cell, &slope);
      if (cell.value > best.value) best = cell;
      if (!std::isfinite(cell.value)) break;
      up = uphill(cell, slope);
      along = std::inner_product(up.begin(), up.end(), direction.begin(), 0.0);
    }
    if (!std::isfinite(cell.value)) break;
    if (steps == 1) stride *= 0.7;
    std::vector<double> change(n);
    for (std::size_t i = 0; i < n; ++i) change[i] = up[i] - before[i];
    change = inwards(change);
    const double size = norm(change);
    if (size <= 1e-12) continue;
    for (std::size_t i = 0; i < n; ++i) {
      double along = 0;
      for (std::size_t j = 0; j < n; ++j) along += space[i * n + j] * change[j] / size;
      for (std::size_t j = 0; j < n; ++j)
        space[i * n + j] += (kShrink - 1) * along * change[j] / size;
    }
  }
  cell = std::move(best);
}

// Cells over the whole range, the lowest ones cut and climbed while there is work left.
void Relaxation::cut_cells(Slowest slowest, std::span<const double> worth, double least) {
  double all = 0;
  for (std::size_t p = 0; p < worth.size(); ++p) all += worth[p] * space_.pools()[p].size();
  Cell cell;
  cell.slowest = slowest;
  cell.low = std::min(m_ * least, incumbent_);
  cell.high = incumbent_;
  for (const double each : worth) cell.price.push_back(0.5 * incumbent_ * each / all);
  std::vector<Cell> cells;
  const auto open = [&](const Cell& c) { return c.value < incumbent_; };
  const auto add = [&](Path path) {
    cell.path = path;
    cells.push_back(cell);
    climb(cells.back(), kFirstSteps);
    if (!open(cells.back())) cells.pop_back();
  };
  if (schedule_ == Schedule::gpipe) {
    add(Path::gpipe);
  } else {
    if (m_ > 1) add(Path::filled);
    if (max_stages_ >= m_) add(Path::filling);
  }
  while (work_left_ > 0 && !cells.empty()) {
    const auto lowest = std::ranges::min_element(cells, {}, &Cell::value);
    if (single_ < lowest->value) break;
    if (lowest->high < kWide * lowest->low && !lowest->stuck) {
      const double before = lowest->value;
      climb(*lowest, kFirstSteps);
      lowest->stuck = lowest->value < 1.002 * before;
      if (!open(*lowest)) cells.erase(lowest);
      continue;
    }
    if (lowest->high < kNarrow * lowest->low) break;
    Cell upper = *lowest;
    Cell lower = std::move(*lowest);
    cells.erase(lowest);
    upper.low = lower.high = std::sqrt(upper.low * upper.high);
    for (Cell* half : {&lower, &upper}) {
      climb(*half, kSteps);
      if (open(*half)) cells.push_back(std::move(*half));
    }
  }
  std::ranges::sort(cells, {}, &Cell::low);
  for (Cell& kept : cells) look_ahead(kept);
  std::ranges::move(cells, std::back_inserter(cells_));
}

// The first path alone, without a slowest stage.
void Relaxation::look_ahead(Cell& cell) {
  cell.ahead = cell.before;
  if (cell.late <= 0) return;
  Cell plain = cell;
  plain.late = 0;
  evaluate(plain, nullptr);
  cell.ahead = std::move(plain.before);
}

double Relaxation::lowest(Slowest slowest) const {
  double value = incumbent_;
  for (const Cell& cell : cells_)
    if (cell.slowest == slowest) value = std::min(value, cell.value);
  return value;
}

Seconds Relaxation::tighten(std::span<const double> worth, Seconds least, double work) {
  if (max_stages_ == 1 || longest_run_ == 0) return Seconds(std::min(incumbent_, single_));
  work_left_ = work / 2;
  cut_cells(Slowest::by_time, worth, least.value);
  if (lowest(Slowest::by_time) < std::min(incumbent_, single_)) {
    work_left_ = std::max(0.0, work_left_) + work / 2;
    cut_cells(Slowest::by_step, worth, least.value);
    by_step_ = true;
  }
  const double value = std::max(lowest(Slowest::by_time), by_step_ ? lowest(Slowest::by_step) : 0);
  return Seconds(std::min({incumbent_, single_, value}));
}

double Relaxation::spent(const Cell& cell, std::span<const int> used) const {
  double sum = 0;
  for (std::size_t p = 0; p < used.size(); ++p)
    sum += cell.price[p] * (space_.pools()[p].size() - used[p]);
  return sum;
}

Seconds Relaxation::step(const Tail& tail, int left, std::span<const int> used) const {
  double by_time = incumbent_;
  double by_step = incumbent_;
  for (const Cell& cell : cells_) {
    const bool timed = cell.slowest == Slowest::by_time;
    const double least = timed ? m_ * tail.least_longest.value : tail.least_longest_step.value;
    if (cell.high < least) continue;  // the slowest stage is slower than that
    const double known = timed ? m_ * tail.longest.value : tail.longest_step.value;
    double value = tail.total.value + tail.slack.value + cell.ahead[left];
    // Else the slowest stage may be one of those that are known.
    if (known < cell.low) {
      const Weights weights = weights_of(cell, m_);
      value = std::max(value, weights.fixed + cell.through[left] + weights.time * tail.total.value +
                                  weights.each * tail.stages);
    }
    double& bound = timed ? by_time : by_step;
    bound = std::min(bound, value - spent(cell, used));
  }
  return Seconds(by_step_ ? std::max(by_time, by_step) : by_time);
}

Seconds Relaxation::open_units(const Tail& tail, int left, std::span<const int> used) const {
  double bound = incumbent_;
  for (const Cell& cell : cells_)
    if (cell.slowest == Slowest::by_time && cell.high >= m_ * tail.least_longest.value)
      bound = std::min(bound,
                       tail.total.value + tail.slack.value + cell.ahead[left] - spent(cell, used));
  return Seconds(bound);
}

}  // namespace plait
