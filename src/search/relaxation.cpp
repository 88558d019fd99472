#include "search/relaxation.h"

#include <algorithm>

#include "search/uphill.h"

namespace plait {
namespace {

constexpr int kFirstSteps = 120;
constexpr int kSteps = 24;          // uphill, when a cell has been cut
constexpr double kRounding = 1e-9;  // of sums of the same times in another order
constexpr double kLeastSteps = 20;
constexpr double kWide = 1.01;  // cells are cut down to this before they are climbed again
constexpr double kNarrow = 1.002;

}  // namespace

Relaxation::Relaxation(const Space& space, const PlanSettings& settings, Schedule schedule,
                       StageCosts& costs, const HandOverFloor& sends, Seconds incumbent,
                       std::function<bool()> stop)
    : space_(space),
      classes_(space.run_classes()),
      schedule_(schedule),
      m_(settings.micro_batches),
      units_(space.problem().model.unit_count()),
      max_stages_(space.max_stages(settings)),
      incumbent_(incumbent.value),
      stop_(std::move(stop)),
      table_(space, settings, costs, sends, incumbent, stop_) {
  for (const Fill fill : {Fill::filled, Fill::filling, Fill::gpipe})
    paths_[static_cast<int>(fill)] = step_paths(fill, m_, kPivotCount);
  for (int i = 0; i < kChains; ++i) moves_.push_back({i, i});
  for (int from = 0; from < kChains; ++from)
    for (int to = from + 1; to < kChains; ++to) moves_.push_back({from, to});
  work_each_ = 2.0 * static_cast<double>(table_.size()) + 1.0 * units_ * table_.longest_run();
}

Relaxation::Rates Relaxation::rates_of(const Part& part, const StageOffers& own,
                                       const Cell& cell) const {
  return {part.time,
          part.forward,
          part.longer,
          part.finish + (own.first ? part.closing : 0),
          (own.first ? 0 : part.in) + (own.last ? 0 : part.out),
          part.each * cell.high / m_};
}

Part Relaxation::part_of(const StepPath& path, const Move& move) const {
  return path.pivot < move.from ? path.after : path.pivot < move.to ? path.at : path.before;
}

std::vector<Part> Relaxation::mean_parts(const Cell& cell) const {
  std::vector<Part> parts(moves_.size());
  double first = 1;
  for (const double weight : cell.weights) first -= weight;
  for (std::size_t i = 0; i < paths(cell).size(); ++i)
    for (std::size_t move = 0; move < moves_.size(); ++move)
      parts[move] += (i == 0 ? first : cell.weights[i - 1]) * part_of(paths(cell)[i], moves_[move]);
  return parts;
}

// The least cost of a stage of each class for each move.
void Relaxation::price_moves(const Cell& cell) {
  option_price_.assign(table_.option_count(), cell.count);
  for (int o = 0; o < table_.option_count(); ++o)
    for (std::size_t p = 0; p < cell.price.size(); ++p)
      option_price_[o] += table_.devices(o, p) * cell.price[p];
  const double by_finish = cell.slowest == Slowest::by_step ? 1 : 0;
  std::array<double, kPivotCount> limits{};
  for (int i = 0; i < kPivotCount; ++i) limits[i] = kPivots[i] * cell.low;
  const std::vector<Part> parts = mean_parts(cell);
  const std::size_t moves = moves_.size();
  costs_.assign(table_.by_class().size() * moves, HUGE_VAL);
  choices_.assign(costs_.size(), -1);
  pivotal_.assign(table_.by_class().size(), 0);
  std::vector<Rates> rates(moves);
  for (std::size_t c = 0; c < table_.by_class().size(); ++c) {
    const StageOffers& own = table_.by_class()[c];
    for (std::size_t i = 0; i < moves; ++i) rates[i] = rates_of(parts[i], own, cell);
    double* costs = &costs_[c * moves];
    int* choices = &choices_[c * moves];
    const int count = static_cast<int>(own.offers.size());
    for (int i = 0; i < count && m_ * own.offers[i].time <= cell.high; ++i) {
      const StageOffer& offer = own.offers[i];
      const double takes = m_ * offer.time + by_finish * offer.finish;
      if (takes > cell.high) continue;
      const double price = option_price_[offer.option] + offer.tied;
      const auto consider = [&](std::size_t move) {
        const double all = rates[move].cost(offer) + price;
        if (all >= costs[move]) return;
        costs[move] = all;
        choices[move] = i;
      };
      consider(0);
      for (int from = 1; from < kChains && takes < limits[from - 1]; ++from) consider(from);
      if (takes < limits.back()) continue;
      pivotal_[c] = 1;
      for (std::size_t move = kChains; move < moves; ++move) {
        const int from = moves_[move].from;
        if ((from == 0 || takes < limits[from - 1]) && takes >= limits[from]) consider(move);
      }
    }
  }
}

// The cheapest chains of stages.
void Relaxation::chain(Cell& cell) {
  cell.chains.assign((units_ + 1) * kChains, HUGE_VAL);
  links_.assign((units_ + 1) * kChains, {});
  cell.chains[0] = 0;
  const int moves = static_cast<int>(moves_.size());
  for (int end = 1; end <= units_; ++end) {
    double* best = &cell.chains[end * kChains];
    Link* link = &links_[end * kChains];
    const auto extend = [&](int begin, int to, double sum, int move) {
      if (sum >= best[to]) return;
      best[to] = sum;
      link[to] = {begin, move};
    };
    for (int begin = std::max(0, end - table_.longest_run()); begin < end; ++begin) {
      const int c = classes_.of({begin, end});
      const double* costs = &costs_[c * moves];
      const double* so_far = &cell.chains[begin * kChains];
      for (int i = 0; i < kChains; ++i) extend(begin, i, so_far[i] + costs[i], i);
      if (pivotal_[c] == 0) continue;
      for (int move = kChains; move < moves; ++move)
        extend(begin, moves_[move].to, so_far[moves_[move].from] + costs[move], move);
    }
  }
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
  work_left_ -= work_each_;
  price_moves(cell);
  chain(cell);
  cell.value = fixed(cell) + cell.chains.back() - spent(cell);
}

// Of the value at the last evaluation, by variable; zero where the cell cannot move.
std::vector<double> Relaxation::slope(const Cell& cell) const {
  const std::size_t pools = cell.price.size();
  std::vector<double> up(pools + cell.weights.size() + 1, 0);
  for (std::size_t p = 0; p < pools; ++p) up[p] = -space_.pools()[p].size();
  int stages = 0;
  for (int end = units_, pivots = kPivotCount; end > 0;) {
    const Link& link = links_[end * kChains + pivots];
    const Move& move = moves_[link.move];
    const int c = classes_.of({link.from, end});
    const StageOffers& own = table_.by_class()[c];
    const StageOffer& offer = own.offers[choices_[c * moves_.size() + link.move]];
    for (std::size_t p = 0; p < pools; ++p) up[p] += table_.devices(offer.option, p);
    const auto cost = [&](const StepPath& path) {
      return rates_of(part_of(path, move), own, cell).cost(offer);
    };
    const double first = cost(paths(cell)[0]);
    for (std::size_t i = 0; i < cell.weights.size(); ++i)
      up[pools + i] += cost(paths(cell)[i + 1]) - first;
    ++stages;
    pivots = move.from;
    end = link.from;
  }
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
  Hill hill;
  hill.stride = 0.05 * incumbent_;
  hill.enough = incumbent_;
  // Two cells to begin with, two ways to be slowest: each of them gets some of the work.
  const double affordable = std::max(kLeastSteps, work_left_ / work_each_);
  hill.looks = stop_() ? 1 : static_cast<int>(std::min<double>(evaluations, affordable));
  hill.look = [&](const std::vector<double>& at, std::vector<double>& up) {
    set(cell, at);
    evaluate(cell);
    if (std::isfinite(cell.value)) up = slope(cell);
    return cell.value;
  };
  hill.clamp = [&](std::vector<double>& at) {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < at.size(); ++i) {
      at[i] = std::max(0.0, at[i]);
      if (i >= pools) sum += at[i];
    }
    for (std::size_t i = pools; i + 1 < at.size() && sum > incumbent_; ++i)
      at[i] *= incumbent_ / sum;
  };
  std::vector<double> at = variables(cell);
  climb(hill, at);
  set(cell, at);
  evaluate(cell);
}

// Cells over the whole range, the lowest ones cut and climbed while there is work left.
void Relaxation::cut_cells(Slowest slowest, std::span<const double> worth, double least) {
  double all = 0;
  for (std::size_t p = 0; p < worth.size(); ++p) all += worth[p] * space_.pools()[p].size();
  Cell cell;
  cell.slowest = slowest;
  cell.low = std::min((1 - kRounding) * m_ * least, incumbent_);
  cell.high = incumbent_;
  for (const double each : worth) cell.price.push_back(0.5 * incumbent_ * each / all);
  const auto known = std::ranges::min_element(cells_, {}, &Cell::value);
  if (known != cells_.end()) cell.price = known->price;
  std::vector<Cell> cells;
  const auto open = [&](const Cell& c) { return c.value < incumbent_; };
  const auto add = [&](Fill fill, int fewest, int most) {
    cell.fill = fill;
    cell.fewest = fewest;
    cell.most = most;
    cell.weights.assign(paths(cell).size() - 1, 0);
    if (cell.weights.size() > 1) cell.weights[1] = 0.5;
    cells.push_back(cell);
    improve(cells.back(), kFirstSteps);
    if (!open(cells.back())) cells.pop_back();
  };
  const auto m = static_cast<int>(m_);
  const int fewest = std::max(2, space_.min_stages());
  if (schedule_ == Schedule::gpipe) {
    add(Fill::gpipe, fewest, max_stages_);
  } else {
    if (m > fewest) add(Fill::filled, fewest, std::min(m - 1, max_stages_));
    if (max_stages_ >= m) add(Fill::filling, std::max(fewest, m), max_stages_);
  }
  while (work_left_ > 0 && !cells.empty() && !stop_()) {
    const auto lowest = std::ranges::min_element(cells, {}, &Cell::value);
    if (table_.single() < lowest->value) break;
    if (lowest->high < kWide * lowest->low && !lowest->stuck) {
      const double before = lowest->value;
      improve(*lowest, kFirstSteps);
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
      improve(*half, kSteps);
      if (open(*half)) cells.push_back(std::move(*half));
    }
  }
  settled_ &= work_left_ > 0 && !stop_();
  std::ranges::move(cells, std::back_inserter(cells_));
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
  for (int pivots = 0; pivots < kChains; ++pivots) {
    PricedCell::TailPart& part = out.tail[pivots];
    part.each = cell.count;
    for (std::size_t i = 0; i < paths(cell).size(); ++i) {
      const StepPath& path = paths(cell)[i];
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
  for (int u = 0; u <= units_; ++u) out.ahead.push_back(plain.chains[u * kChains]);
  return out;
}

double Relaxation::lowest(Slowest slowest) const {
  double value = incumbent_;
  for (const Cell& cell : cells_)
    if (cell.slowest == slowest) value = std::min(value, cell.value);
  return value;
}

Seconds Relaxation::tighten(std::span<const double> worth, Seconds least, double work) {
  const double single = table_.single();
  said_ = Seconds(std::min(incumbent_, single));
  if (max_stages_ == 1 || table_.longest_run() == 0) return said_;
  work_left_ = work / 2;
  cut_cells(Slowest::by_time, worth, least.value);
  double value = lowest(Slowest::by_time);
  if (value < std::min(incumbent_, single)) {
    work_left_ = std::max(0.0, work_left_) + work / 2;
    cut_cells(Slowest::by_step, worth, least.value);
    value = std::max(value, lowest(Slowest::by_step));
  }
  std::vector<PricedCell> priced_cells;
  for (const Cell& cell : cells_) priced_cells.push_back(priced(cell));
  tails_ = TailBounds(space_, m_, Seconds(incumbent_), std::move(priced_cells));
  said_ = Seconds(std::min({incumbent_, single, value}));
  return said_;
}

std::optional<Seconds> Relaxation::settled(Seconds incumbent) const {
  if (!settled_ || incumbent.value != incumbent_) return std::nullopt;
  return said_;
}

}  // namespace plait
