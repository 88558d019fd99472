#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "plan/plan.h"
#include "search/inside/chain_choice.h"

namespace plait {

// Whether the run of recompute before an op goes on with it.
inline bool goes_on(const ChainOp& op, const ChainWay& before, const ChainWay& own) {
  return own.run != 0 && own.run == before.run && !op.starts_layer;
}

// Choices for a chain at a price of memory, in seconds a byte: what repeats and passes through has
// none. Layers that are alike are worked out once.
class PricedChain {
 public:
  explicit PricedChain(const ChainTask& task);

  // Ops up to the next one that starts a layer, as a choice runs them.
  struct Part {
    double time = 0;
    double kept = 0;
    double repeated = 0;   // of the largest run
    double transient = 0;  // largest
    int first = 0;         // ways of the first and the last op
    int last = 0;
  };
  struct Choice {
    std::vector<int> ways;  // of each op
    std::vector<Part> parts;
    double time = 0;
    double kept = 0;
    double memory = 0;
    double priced = 0;  // time and kept bytes at the price
  };
  // The cheapest; nothing where no choice exists.
  std::optional<Choice> cheapest(double price);
  // Some first parts of one choice, the others of another: the fastest that fits. So layers that
  // are alike, and change over at one price, need not all do so.
  std::optional<Choice> joined(const Choice& begin, const Choice& end) const;

  int count() const { return static_cast<int>(task_.ops.size()); }
  int ways() const { return ways_; }
  // No choice repeats and passes through less, or it shares the room with what is as large.
  double room() const { return room_; }
  const ChainWay& way(int op, int w) const { return task_.ways(op)[w]; }
  // Ops have as many ways as the one that has most; the others take forever.
  bool exists(int op, int w) const { return way(op, w).time < HUGE_VAL; }
  double change(int op, int v, int w) const {
    const std::vector<double>* change = task_.ops[op].change;
    return change == nullptr ? 0 : (*change)[v * ways_ + w];
  }
  // Bytes of way w of an op after way v of the one before it.
  double opened(int op, int v, int w) const {
    const ChainWay& own = way(op, w);
    const bool on = v >= 0 && goes_on(task_.ops[op], way(op - 1, v), own);
    return on ? 0 : own.opened;
  }
  bool fits(const Choice& choice) const { return choice.memory <= task_.memory; }

 private:
  // The best ways through the parts that read alike.
  struct Kind {
    UnitRange ops;              // of the first of them
    std::vector<double> value;  // by ways of the first and the last op: time and priced bytes
    std::vector<std::optional<Part>> through;  // the same; those that were asked for
    std::vector<int> before;  // [(op * ways + way) * ways + first way] = way of the op before
  };
  void list_parts();
  void price_kind(Kind& kind, double price) const;
  const Part& through(Kind& kind, int first, int last) const;
  void add_ways(const Kind& kind, const Part& part, std::vector<int>& ways) const;
  double memory_of(double kept, double peak) const { return kept + std::max(peak, task_.at_least); }

  const ChainTask& task_;
  int ways_;
  double room_ = 0;
  std::vector<Kind> kinds_;
  std::vector<int> parts_;  // in order: their kinds
  std::vector<int> begin_;  // in order: their first ops
};

}  // namespace plait
