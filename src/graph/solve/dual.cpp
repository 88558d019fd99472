#include "graph/solve/dual.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

// One function in several instruction sets, chosen when the program starts. Sanitizers cannot live
// with that choice, which comes before they are ready.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PLAIT_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PLAIT_VECTOR_CLONES
#endif

namespace plait::solve {
namespace {

// What a link or a variable takes beside its cells; a cell takes about a nanosecond.
constexpr std::size_t kLinkWork = 24;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double real(Amount cost) { return cost >= kForbidden ? kInfinite : static_cast<double>(cost); }

// out[b] = min over a of (from[a] + cost[a][b]), less its least element, which is given back. Only
// additions and minima, so that every instruction set gives the same bits.
PLAIT_VECTOR_CLONES double pass(const double* from, const double* cost, int rows, int columns,
                                double* out) {
  for (int b = 0; b < columns; ++b) out[b] = kInfinite;
  for (int a = 0; a < rows; ++a, cost += columns) {
    const double add = from[a];
    if (add == kInfinite) continue;
    for (int b = 0; b < columns; ++b) {
      const double sum = add + cost[b];
      out[b] = sum < out[b] ? sum : out[b];
    }
  }
  double least = kInfinite;
  for (int b = 0; b < columns; ++b) least = out[b] < least ? out[b] : least;
  if (least < kInfinite)
    for (int b = 0; b < columns; ++b) out[b] -= least;
  return least;
}

}  // namespace

Amount whole_bound(double bound) {
  if (std::isnan(bound)) return 0;
  if (bound >= static_cast<double>(kForbidden)) return kForbidden;
  const double rounding = 1e-6 + std::abs(bound) * 1e-11;
  return static_cast<Amount>(std::ceil(std::max(0.0, bound - rounding)));
}

Dual::Dual(const Network& network) : network_(network), slot_(network.variables.size(), -1) {
  std::size_t total = 0;
  for (std::size_t v = 0; v < network.variables.size(); ++v) {
    const Variable& x = network.variables[v];
    if (!x.alive) continue;
    PLAIT_CHECK(x.tidy);
    slot_[v] = static_cast<int>(variable_.size());
    variable_.push_back(static_cast<int>(v));
    choices_.push_back(x.size());
    first_.push_back(total);
    total += x.cost.size();
    most_choices_ = std::max(most_choices_, x.cost.size());
  }
  unary_.resize(total);
  hat_.resize(total);
  build_links(network);
  price_.assign(network.room.size(), 0);
  best_price_ = direction_ = price_;
  best_ = -kInfinite;
}

void Dual::build_links(const Network& network) {
  up_.resize(variable_.size());
  down_.resize(variable_.size());
  link_slot_.assign(network.links.size(), -1);
  std::size_t messages = 0;
  for (std::size_t i = 0; i < network.links.size(); ++i) {
    const Link& link = network.links[i];
    if (link.u < 0) continue;
    const int low = std::min(slot_[link.u], slot_[link.v]);
    const int high = std::max(slot_[link.u], slot_[link.v]);
    const int rows = choices_[low], columns = choices_[high];
    const std::size_t to_low = messages, to_high = messages + rows;
    messages += rows + columns;
    link_slot_[i] = static_cast<int>(links_.size());
    up_[low].push_back({high, static_cast<int>(links_.size())});
    down_[high].push_back({low, static_cast<int>(links_.size())});
    links_.push_back({low, high, cost_.size(), to_low, to_high, 0});
    const LinkView view = network.view(static_cast<int>(i), variable_[low]);
    for (int a = 0; a < rows; ++a)
      for (int b = 0; b < columns; ++b) cost_.push_back(real(view(a, b)));
    for (int b = 0; b < columns; ++b)
      for (int a = 0; a < rows; ++a) cost_.push_back(real(view(a, b)));
  }
  message_.assign(messages, 0);
  for (std::size_t s = 0; s < variable_.size(); ++s)
    weight_.push_back(
        1.0 / static_cast<double>(std::max<std::size_t>({1, up_[s].size(), down_[s].size()})));
}

void Dual::set_prices(std::vector<double> prices) {
  PLAIT_CHECK(prices.size() == price_.size());
  price_ = std::move(prices);
}

void Dual::restore_best_prices() {
  price_ = best_price_;
  std::fill(direction_.begin(), direction_.end(), 0);
}

void Dual::price_choices() {
  std::vector<double> sum(price_.size() + 1, 0);
  for (std::size_t r = 0; r < price_.size(); ++r) sum[r + 1] = sum[r] + price_[r];
  for (std::size_t s = 0; s < variable_.size(); ++s) {
    const Variable& x = network_.variables[variable_[s]];
    double* unary = unary_.data() + first_[s];
    for (int k = 0; k < x.size(); ++k) unary[k] = real(x.cost[k]);
    for (const Load& load : x.loads) {
      const double price = sum[load.end] - sum[load.begin];
      if (price <= 0) continue;
      for (int k = 0; k < x.size(); ++k) unary[k] += price * static_cast<double>(load.usage[k]);
    }
    work_ += x.loads.size() * x.cost.size();
  }
}

double Dual::half_sweep(bool forth) {
  double bound = 0;
  const int count = static_cast<int>(variable_.size());
  scratch_.resize(most_choices_);
  for (int i = 0; i < count; ++i) {
    const int s = forth ? i : count - 1 - i;
    const int choices = choices_[s];
    double* hat = hat_.data() + first_[s];
    std::copy_n(unary_.data() + first_[s], choices, hat);
    for (const Side& side : up_[s])
      for (int k = 0; k < choices; ++k) hat[k] += message_[links_[side.link].to_low + k];
    for (const Side& side : down_[s])
      for (int k = 0; k < choices; ++k) hat[k] += message_[links_[side.link].to_high + k];
    const double least = *std::min_element(hat, hat + choices);
    work_ += kLinkWork;
    if (least == kInfinite) return kInfinite;
    bound += least;
    for (int k = 0; k < choices; ++k) hat[k] -= least;
    for (const Side& side : forth ? up_[s] : down_[s]) {
      DualLink& link = links_[side.link];
      const int others = choices_[side.other];
      const double* in = message_.data() + (forth ? link.to_low : link.to_high);
      double* out = message_.data() + (forth ? link.to_high : link.to_low);
      const double* const cost =
          cost_.data() + (link.matrix + (forth ? 0 : static_cast<std::size_t>(choices) * others));
      for (int k = 0; k < choices; ++k)
        scratch_[k] = hat[k] < kInfinite ? weight_[s] * hat[k] - in[k] : kInfinite;
      const double shift = pass(scratch_.data(), cost, choices, others, out);
      if (shift == kInfinite) return kInfinite;
      bound += shift;
      link.shift = shift;
      work_ += static_cast<std::size_t>(choices) * others + kLinkWork + choices;
    }
  }
  return bound;
}

void Dual::sweep() {
  price_choices();
  double constant = static_cast<double>(network_.base);
  for (std::size_t r = 0; r < price_.size(); ++r)
    constant -= price_[r] * static_cast<double>(network_.room[r]);
  slack_base_ = half_sweep(true) + constant;
  bound_ = slack_base_ == kInfinite ? kInfinite : half_sweep(false) + constant;
  if (bound_ > best_) {
    best_ = bound_;
    best_price_ = price_;
  }
}

double Dual::pair_slack(int link, int u_choice, int v_choice) const {
  const DualLink& l = links_[link_slot_[link]];
  if (slot_[network_.links[link].u] != l.low) std::swap(u_choice, v_choice);
  const double cost =
      cost_[l.matrix + static_cast<std::size_t>(u_choice) * choices_[l.high] + v_choice];
  // The share of the higher end, which sent its message along this link in the sweep back.
  return weight_[l.high] * hat_[first_[l.high] + v_choice] + cost - message_[l.to_high + v_choice] -
         message_[l.to_low + u_choice] - l.shift;
}

bool Dual::decode(bool fitting, std::vector<int>& position) {
  position.assign(network_.variables.size(), 0);
  std::vector<Amount> left;
  if (fitting) left = network_.room;
  const auto fits = [&](const Variable& x, int k) {
    for (const Load& load : x.loads)
      if (load.usage[k] > 0)
        for (int r = load.begin; r < load.end; ++r)
          if (load.usage[k] > left[r]) return false;
    return true;
  };
  for (std::size_t s = 0; s < variable_.size(); ++s) {
    const Variable& x = network_.variables[variable_[s]];
    scratch_.assign(unary_.data() + first_[s], unary_.data() + first_[s] + choices_[s]);
    for (const Side& side : up_[s])
      for (int k = 0; k < choices_[s]; ++k) scratch_[k] += message_[links_[side.link].to_low + k];
    for (const Side& side : down_[s]) {
      const DualLink& link = links_[side.link];
      const double* row =
          cost_.data() +
          (link.matrix + static_cast<std::size_t>(position[variable_[side.other]]) * choices_[s]);
      for (int k = 0; k < choices_[s]; ++k) scratch_[k] += row[k];
    }
    work_ += kLinkWork + choices_[s] * (1 + up_[s].size() + down_[s].size());
    int best = -1;
    for (int k = 0; k < choices_[s]; ++k)
      if ((best < 0 || scratch_[k] < scratch_[best]) && scratch_[k] < kInfinite &&
          (!fitting || fits(x, k)))
        best = k;
    if (best < 0 && fitting) return false;
    best = std::max(best, 0);
    position[variable_[s]] = best;
    if (!fitting) continue;
    for (const Load& load : x.loads) work_ += 2 * (load.end - load.begin);
    for (const Load& load : x.loads)
      for (int r = load.begin; r < load.end; ++r) left[r] -= load.usage[best];
  }
  return true;
}

void Dual::step(const std::vector<int>& position, double target, double scale) {
  constexpr double kMemory = 0.7;  // of the last direction, which damps zigzags
  std::vector<double> change(price_.size() + 1, 0);
  for (const int v : variable_)
    for (const Load& load : network_.variables[v].loads) {
      change[load.begin] += static_cast<double>(load.usage[position[v]]);
      change[load.end] -= static_cast<double>(load.usage[position[v]]);
    }
  double usage = 0, norm = 0;
  for (std::size_t r = 0; r < price_.size(); ++r) {
    usage += change[r];
    double excess = usage - static_cast<double>(network_.room[r]);
    if (price_[r] <= 0 && excess < 0) excess = 0;
    direction_[r] = kMemory * direction_[r] + (1 - kMemory) * excess;
    norm += direction_[r] * direction_[r];
  }
  work_ += 4 * price_.size();
  if (norm <= 0) return;
  const double distance = std::max(target - bound_, 1e-4 * std::abs(target));
  const double length = scale * distance / norm;
  for (std::size_t r = 0; r < price_.size(); ++r)
    price_[r] = std::max(0.0, price_[r] + length * direction_[r]);
}

}  // namespace plait::solve
