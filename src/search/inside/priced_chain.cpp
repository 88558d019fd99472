#include "search/inside/priced_chain.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace plait {

PricedChain::PricedChain(const ChainTask& task)
    : task_(task), ways_(static_cast<int>(task.kinds.front().size())), room_(task.at_least) {
  list_parts();
  // Every op needs the room of one of its ways.
  for (const Kind& kind : kinds_)
    for (int op = kind.ops.begin; op < kind.ops.end; ++op) {
      double least = HUGE_VAL;
      for (int w = 0; w < ways_; ++w)
        if (exists(op, w)) least = std::min(least, way(op, w).transient);
      if (least < HUGE_VAL) room_ = std::max(room_, least);
    }
}

void PricedChain::list_parts() {
  using Symbol = std::tuple<int, bool, const void*>;
  std::map<std::vector<Symbol>, int> known;
  for (int begin = 0, end = 0; begin < count(); begin = end) {
    std::vector<Symbol> symbols;
    do {
      const ChainOp& op = task_.ops[end++];
      symbols.emplace_back(op.kind, op.starts_layer, op.change);
    } while (end < count() && !task_.ops[end].starts_layer);
    const auto [at, is_new] = known.emplace(std::move(symbols), static_cast<int>(kinds_.size()));
    if (is_new) {
      Kind& kind = kinds_.emplace_back();
      kind.ops = {begin, end};
      kind.before.assign(kind.ops.size() * ways_ * ways_, 0);
    }
    parts_.push_back(at->second);
    begin_.push_back(begin);
  }
}

// All first ways side by side: what a change of ways costs does not depend on them.
void PricedChain::price_kind(Kind& kind, double price) const {
  const int ops = kind.ops.size();
  kind.value.assign(ways_ * ways_, HUGE_VAL);
  kind.through.assign(ways_ * ways_, std::nullopt);
  std::vector<double> value(ways_ * ways_, HUGE_VAL), next(ways_ * ways_);  // [way * ways + first]
  for (int first = 0; first < ways_; ++first) {
    if (!exists(kind.ops.begin, first)) continue;
    const ChainWay& start = way(kind.ops.begin, first);
    value[first * ways_ + first] = start.time + price * (start.kept + start.opened);
  }
  for (int i = 1; i < ops; ++i) {
    const int op = kind.ops.begin + i;
    std::ranges::fill(next, HUGE_VAL);
    for (int w = 0; w < ways_; ++w) {
      if (!exists(op, w)) continue;
      double* const sums = &next[w * ways_];
      int* const before = &kind.before[(i * ways_ + w) * ways_];
      for (int v = 0; v < ways_; ++v) {
        if (!exists(op - 1, v)) continue;
        const double time = change(op - 1, v, w);
        const double bytes = price * opened(op, v, w);
        const double* const from = &value[v * ways_];
        for (int first = 0; first < ways_; ++first) {
          const double sum = from[first] + time + bytes;
          if (sum >= sums[first]) continue;
          sums[first] = sum;
          before[first] = v;
        }
      }
      const double own = way(op, w).time + price * way(op, w).kept;
      for (int first = 0; first < ways_; ++first) sums[first] += own;
    }
    value.swap(next);
  }
  for (int first = 0; first < ways_; ++first)
    for (int last = 0; last < ways_; ++last)
      kind.value[first * ways_ + last] = value[last * ways_ + first];
}

const PricedChain::Part& PricedChain::through(Kind& kind, int first, int last) const {
  std::optional<Part>& known = kind.through[first * ways_ + last];
  if (known) return *known;
  const int ops = kind.ops.size();
  Part sums;
  sums.first = first;
  sums.last = last;
  double run = 0;  // from the end: that of the ops that follow
  for (int i = ops - 1, w = last; i >= 0; --i) {
    const int op = kind.ops.begin + i;
    const int v = i > 0 ? kind.before[(i * ways_ + w) * ways_ + first] : -1;
    const ChainWay& own = way(op, w);
    sums.time += own.time + (i > 0 ? change(op - 1, v, w) : 0);
    sums.kept += own.kept + opened(op, v, w);
    sums.transient = std::max(sums.transient, own.transient);
    run += own.run == 0 ? 0 : own.repeated;
    sums.repeated = std::max(sums.repeated, run);
    if (i == 0 || !goes_on(task_.ops[op], way(op - 1, v), own)) run = 0;
    w = v;
  }
  known = sums;
  return *known;
}

void PricedChain::add_ways(const Kind& kind, const Part& part, std::vector<int>& ways) const {
  const int ops = kind.ops.size();
  ways.resize(ways.size() + ops);
  for (int i = ops - 1, w = part.last; i >= 0; --i) {
    *(ways.end() - (ops - i)) = w;
    if (i > 0) w = kind.before[(i * ways_ + w) * ways_ + part.first];
  }
}

std::optional<PricedChain::Choice> PricedChain::cheapest(double price) {
  for (Kind& kind : kinds_) price_kind(kind, price);
  const std::size_t parts = parts_.size();
  std::vector<double> value(ways_, 0), enter(ways_, 0);
  std::vector<int> entered(parts * ways_), begun(parts * ways_);  // ways before, and at first
  for (std::size_t p = 0; p < parts; ++p) {
    const Kind& kind = kinds_[parts_[p]];
    for (int first = 0; p > 0 && first < ways_; ++first) {
      enter[first] = HUGE_VAL;
      for (int v = 0; v < ways_; ++v) {
        if (!(value[v] < HUGE_VAL)) continue;
        const double sum = value[v] + change(begin_[p] - 1, v, first);
        if (sum >= enter[first]) continue;
        enter[first] = sum;
        entered[p * ways_ + first] = v;
      }
    }
    for (int last = 0; last < ways_; ++last) {
      value[last] = HUGE_VAL;
      for (int first = 0; first < ways_; ++first) {
        const double sum = enter[first] + kind.value[first * ways_ + last];
        if (sum >= value[last]) continue;
        value[last] = sum;
        begun[p * ways_ + last] = first;
      }
    }
  }
  int last = static_cast<int>(std::ranges::min_element(value) - value.begin());
  if (!(value[last] < HUGE_VAL)) return std::nullopt;
  Choice choice;
  choice.priced = value[last];
  choice.parts.resize(parts);
  double repeated = 0, transient = 0;
  for (std::size_t p = parts; p-- > 0;) {
    const int first = begun[p * ways_ + last];
    const Part& part = through(kinds_[parts_[p]], first, last);
    choice.parts[p] = part;
    choice.time += part.time;
    choice.kept += part.kept;
    repeated = std::max(repeated, part.repeated);
    transient = std::max(transient, part.transient);
    last = entered[p * ways_ + first];
    if (p > 0) choice.time += change(begin_[p] - 1, last, first);
  }
  choice.memory = memory_of(choice.kept, repeated + transient);
  choice.ways.reserve(count());
  for (std::size_t p = 0; p < parts; ++p) add_ways(kinds_[parts_[p]], choice.parts[p], choice.ways);
  return choice;
}

std::optional<PricedChain::Choice> PricedChain::joined(const Choice& begin,
                                                       const Choice& end) const {
  const std::size_t parts = parts_.size();
  const auto add = [&](Part& sum, const Part& part, double change) {
    sum.time += part.time + change;
    sum.kept += part.kept;
    sum.repeated = std::max(sum.repeated, part.repeated);
    sum.transient = std::max(sum.transient, part.transient);
  };
  std::vector<Part> rest(parts + 1);  // of `end`, from each part on
  for (std::size_t p = parts; p-- > 1;) {
    rest[p] = rest[p + 1];
    const bool is_last = p + 1 == parts;
    add(rest[p], end.parts[p],
        is_last ? 0 : change(begin_[p + 1] - 1, end.parts[p].last, end.parts[p + 1].first));
  }
  Choice best;
  best.time = HUGE_VAL;
  std::size_t at = 0;
  Part sum;
  for (std::size_t p = 1; p < parts; ++p) {
    const Part& before = begin.parts[p - 1];
    add(sum, before, p > 1 ? change(begin_[p - 1] - 1, begin.parts[p - 2].last, before.first) : 0);
    const double time =
        sum.time + rest[p].time + change(begin_[p] - 1, before.last, end.parts[p].first);
    const double kept = sum.kept + rest[p].kept;
    const double memory = memory_of(kept, std::max(sum.repeated, rest[p].repeated) +
                                              std::max(sum.transient, rest[p].transient));
    if (memory > task_.memory || time >= best.time) continue;
    best.time = time;
    best.kept = kept;
    best.memory = memory;
    at = p;
  }
  if (at == 0) return std::nullopt;
  best.ways = begin.ways;
  std::copy(end.ways.begin() + begin_[at], end.ways.end(), best.ways.begin() + begin_[at]);
  return best;
}

}  // namespace plait
