#include "search/bound/relaxation.h"

#include <algorithm>

#include "search/bound/subgradient_ascent.h"

namespace plait {
namespace {

constexpr int kFirstSteps = 120;
constexpr int kSteps = 24;                // uphill, when a cell has been cut
constexpr double kRoundingOfSums = 1e-9;  // of sums of the same times in another order
constexpr double kLeastSteps = 8;
constexpr double kNear = 0.85;  // a bound this near to the incumbent may still close the gap
constexpr double kWide = 1.01;  // cells are cut down to this before they are climbed again
constexpr double kNarrow = 1.002;

}  // namespace

Relaxation::Relaxation(const Space& space, const PlanSettings& settings, Schedule schedule,
                       StageCosts& costs, const SendLowerBound& sends, Seconds incumbent,
                       std::function<bool()> stop)
    : space_(space),
      schedule_(schedule),
      m_(settings.micro_batches),
      units_(space.problem().model.unit_count()),
      max_stages_(space.max_stages(settings)),
      incumbent_(incumbent.value),
      stop_(std::move(stop)),
      table_(space, settings, costs, sends, incumbent, stop_),
      chains_(table_, space.run_classes(), units_, m_) {
  for (const PathFamily fill : {PathFamily::filled, PathFamily::filling, PathFamily::gpipe})
    paths_[static_cast<int>(fill)] = step_paths(fill, m_, kPivotCount);
}

// What a path counts a stage for that takes a chain from some pivots to as many or more.
const PathWeights& Relaxation::part_of(const PivotPath& path, int before, int after) {
  return path.pivot < before ? path.after : path.pivot < after ? path.at : path.before;
}

StageWeights Relaxation::prices(const Cell& cell) const {
  StageWeights prices{
      cell.slowest == Slowest::by_step, cell.low, cell.high, cell.price, cell.count, {}};
  double first = 1;
  for (const double weight : cell.weights) first -= weight;
  for (int band = 0; band < kPivotStates; ++band)
    for (int i = 0; i < kPivotStates; ++i)
      for (std::size_t path = 0; path < paths(cell).size(); ++path)
        prices.parts[band][i] += (path == 0 ? first : cell.weights[path - 1]) *
                                 part_of(paths(cell)[path], std::min(i, band), i);
  return prices;
}

double Relaxation::spent(const Cell& cell) const {
  double sum = 0;
  for (std::size_t p = 0; p < cell.price.size(); ++p)
    sum += cell.price[p] * space_.pools()[p].size();
  return sum;
}

double Relaxation::fixed(const Cell& cell) const {
  return -cell.count * (cell.count > 0 ? cell.most : cell.fewest);
}

void Relaxation::evaluate(Cell& cell) {
  work_left_ -= chains_.work();
  const std::vector<PivotLanes>& chains = chains_.price(prices(cell));
  cell.chains.clear();
  for (const PivotLanes& lanes : chains)
    for (int i = 0; i < kPivotStates; ++i) cell.chains.push_back(lanes[i]);
  cell.value = fixed(cell) + cell.chains.back() - spent(cell);
}

// Of the value at the last evaluation, by variable; zero where the cell cannot move.
std::vector<double> Relaxation::slope(const Cell& cell) const {
  const std::size_t pools = cell.price.size();
  std::vector<double> up(pools + cell.weights.size() + 1, 0);
  for (std::size_t p = 0; p < pools; ++p) up[p] = -space_.pools()[p].size();
  const std::vector<PricedPartition::Link> links = chains_.cheapest();
  for (const PricedPartition::Link& link : links) {
    for (std::size_t p = 0; p < pools; ++p) up[p] += table_.devices(link.offer->option, p);
    const auto cost = [&](const PivotPath& path) {
      return chains_.seconds(link, part_of(path, link.pivots_before, link.pivots_after));
    };
    const double first = cost(paths(cell)[0]);
    for (std::size_t i = 0; i < cell.weights.size(); ++i)
      up[pools + i] += cost(paths(cell)[i + 1]) - first;
  }
  const auto stages = static_cast<int>(links.size());
  for (std::size_t p = 0; p < pools; ++p) {
    up[p] /= space_.pools()[p].size();
    if (up[p] < 0 && cell.price[p] <= 0) up[p] = 0;
  }
  for (std::size_t i = 0; i < cell.weights.size(); ++i) {
    double& own = up[pools + i];
    own = (own < 0 ? cell.weights[i] <= 0 : cell.weights[i] >= 1) ? 0 : own / incumbent_;
  }
  const bool many = cell.count > 0 || (cell.count == 0 && stages > cell.most);
  const bool few = cell.count < 0 || (cell.count == 0 && stages < cell.fewest);
  up.back() = (many ? stages - cell.most : few ? stages - cell.fewest : 0) / m_;
  return up;
}

// What a cell can be moved in, in seconds: the price of all devices of a pool, weights times the
// incumbent, the price of m stages.
std::vector<double> Relaxation::variables(const Cell& cell) const {
  std::vector<double> at;
  for (std::size_t p = 0; p < cell.price.size(); ++p)
    at.push_back(cell.price[p] * space_.pools()[p].size());
  for (const double weight : cell.weights) at.push_back(weight * incumbent_);
  at.push_back(cell.count * m_);
  return at;
}

void Relaxation::set(Cell& cell, const std::vector<double>& at) const {
  const std::size_t pools = cell.price.size();
  for (std::size_t p = 0; p < pools; ++p) cell.price[p] = at[p] / space_.pools()[p].size();
  for (std::size_t i = 0; i < cell.weights.size(); ++i)
    cell.weights[i] = at[pools + i] / incumbent_;
  cell.count = at.back() / m_;
}

void Relaxation::improve(Cell& cell, int evaluations) {
  const std::size_t pools = cell.price.size();
  ConcaveFunction function;
  function.stride = 0.05 * incumbent_;
  function.enough = std::min(incumbent_, enough_);
  // Two cells to begin with, two ways to be slowest: each of them gets some of the work.
  const double affordable = std::max(kLeastSteps, work_left_ / chains_.work());
  function.max_evaluations =
      stop_() ? 1 : static_cast<int>(std::min<double>(evaluations, affordable));
  Cell best = cell;
  best.value = -HUGE_VAL;
  function.evaluate = [&](const std::vector<double>& at, std::vector<double>& up) {
    set(cell, at);
    evaluate(cell);
    if (!(cell.value <= best.value)) best = cell;
    if (std::isfinite(cell.value)) up = slope(cell);
    return cell.value;
  };
  function.clamp = [&](std::vector<double>& at) {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < at.size(); ++i) {
      at[i] = std::max(0.0, at[i]);
      if (i >= pools) sum += at[i];
    }
    for (std::size_t i = pools; i + 1 < at.size() && sum > incumbent_; ++i)
      at[i] *= incumbent_ / sum;
  };
  std::vector<double> at = variables(cell);
  maximise(function, at);
  cell = std::move(best);
}

// Cells over the whole range. `worth`: of a device of each pool; `least`: of the slowest stage.
void Relaxation::begin(Front& front, std::span<const double> worth, double least) {
  front.begun = true;
  double all = 0;
  for (std::size_t p = 0; p < worth.size(); ++p) all += worth[p] * space_.pools()[p].size();
  Cell cell;
  cell.slowest = front.slowest;
  cell.low = std::min((1 - kRoundingOfSums) * m_ * least, incumbent_);
  cell.high = incumbent_;
  for (const double each : worth) cell.price.push_back(0.5 * incumbent_ * each / all);
  const std::vector<Cell>& known = fronts_.front().cells;
  if (!known.empty()) cell.price = std::ranges::min_element(known, {}, &Cell::value)->price;
  const auto add = [&](PathFamily fill, int fewest, int most) {
    cell.fill = fill;
    cell.fewest = fewest;
    cell.most = most;
    cell.weights.assign(paths(cell).size() - 1, 0);
    if (cell.weights.size() > 1) {
      cell.weights[1] = fill == PathFamily::filled ? 0.2 : 0.4;
      cell.weights[2] = cell.weights[5] = fill == PathFamily::filled ? 0.15 : 0.1;
    }
    front.cells.push_back(cell);
    improve(front.cells.back(), kFirstSteps);
    if (!is_open(front.cells.back())) front.cells.pop_back();
  };
  const auto m = static_cast<int>(m_);
  const int fewest = std::max(2, space_.min_stages());
  if (schedule_ == Schedule::gpipe) return add(PathFamily::gpipe, fewest, max_stages_);
  if (m > fewest) add(PathFamily::filled, fewest, std::min(m - 1, max_stages_));
  if (max_stages_ >= m) add(PathFamily::filling, std::max(fewest, m), max_stages_);
}

// The lowest cells are cut and climbed while there is work left.
void Relaxation::cut_cells(std::vector<Cell>& cells) {
  while (work_left_ > 0 && !cells.empty() && !stop_()) {
    const auto lowest = std::ranges::min_element(cells, {}, &Cell::value);
    if (std::min(table_.single(), enough_) < lowest->value) return;
    if (lowest->high < kWide * lowest->low && !lowest->stuck) {
      const double before = lowest->value;
      improve(*lowest, kFirstSteps);
      lowest->stuck = lowest->value < 1.002 * before;
      if (!is_open(*lowest)) cells.erase(lowest);
      continue;
    }
    if (lowest->high < kNarrow * lowest->low) return;
    Cell upper = *lowest;
    Cell lower = std::move(*lowest);
    cells.erase(lowest);
    upper.low = lower.high = std::sqrt(upper.low * upper.high);
    for (Cell* half : {&lower, &upper}) {
      improve(*half, kSteps);
      if (is_open(*half)) cells.push_back(std::move(*half));
    }
  }
}

PricedCell Relaxation::priced(const Cell& cell) {
  PricedCell out;
  out.by_step = cell.slowest == Slowest::by_step;
  out.low = cell.low;
  out.high = cell.high;
  out.fixed = fixed(cell);
  out.price = cell.price;
  out.chains = cell.chains;
  double first = 1;
  for (const double weight : cell.weights) first -= weight;
  for (int pivots = 0; pivots < kPivotStates; ++pivots) {
    PricedCell::SuffixWeights& part = out.tail[pivots];
    part.each = cell.count;
    for (std::size_t i = 0; i < paths(cell).size(); ++i) {
      const PivotPath& path = paths(cell)[i];
      const double weight = i == 0 ? first : cell.weights[i - 1];
      if (path.pivot < pivots) {
        part.time += weight * path.after.time;
        part.each += weight * path.after.each * cell.high / m_;
      } else {
        (path.before.forward > 0 ? part.ends : part.returns) += weight;
      }
    }
  }
  Cell plain = cell;
  plain.weights.assign(plain.weights.size(), 0);
  plain.count = 0;
  evaluate(plain);
  for (int u = 0; u <= units_; ++u) out.ahead.push_back(plain.chains[u * kPivotStates]);
  return out;
}

// No plan is faster, or faster than the incumbent.
double Relaxation::bound(const Front& front) const {
  if (!front.begun) return 0;
  double value = incumbent_;
  for (const Cell& cell : front.cells) value = std::min(value, cell.value);
  return value;
}

// On few devices the second way to be slowest is followed where it begins higher than the first.
bool Relaxation::is_worth_cutting(const Front& front) const {
  if (space_.problem().cluster.device_count() > kExactDevices) return true;
  return front.slowest == Slowest::by_time || front.first_bound > fronts_.front().first_bound;
}

Seconds Relaxation::tighten(std::span<const double> worth, Seconds least, const BoundWork& work) {
  if (settled_) return said_;
  const double limit = std::min(incumbent_, table_.single());
  said_ = Seconds(limit);
  settled_ = true;
  if (max_stages_ == 1 || table_.longest_run() == 0) return said_;
  work_left_ = 0;
  enough_ = work.enough.value;
  double value = 0;
  for (Front& front : fronts_) {
    // The second way to be slowest is no bound of a wholly other size.
    if (value >= std::min(limit, enough_) ||
        (front.slowest == Slowest::by_step && value < kNear * limit))
      break;
    work_left_ = std::max(0.0, work_left_) + work.work / 2;
    const bool begins = !front.begun;
    if (begins) begin(front, worth, least.value);
    if (begins) front.first_bound = bound(front);
    if (is_worth_cutting(front)) cut_cells(front.cells);
    settled_ = settled_ && work_left_ > 0 && !stop_();
    value = std::max(value, bound(front));
  }
  settled_ = settled_ && (value >= limit || value < enough_);
  std::vector<PricedCell> priced_cells;
  for (const Front& front : fronts_)
    for (const Cell& cell : front.cells) priced_cells.push_back(priced(cell));
  tails_ = SuffixBounds(space_, m_, Seconds(incumbent_), std::move(priced_cells));
  said_ = Seconds(std::min(limit, value));
  return said_;
}

}  // namespace plait
