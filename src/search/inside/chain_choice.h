#pragma once

#include <optional>
#include <vector>

namespace plait {

// One way to run an op of a chain.
struct ChainWay {
  double time = 0;
  double kept = 0;    // bytes that are there as long as the chain runs; they add up
  double opened = 0;  // bytes more where a run of recompute begins with this op: its input
  // Bytes that come back while the run is recomputed; those of one run add up, and the largest run
  // counts.
  double repeated = 0;
  double transient = 0;  // bytes while the op runs; the largest counts
  // Ways of neighbours with the same number are recomputed in one run; 0 = not recomputed.
  int run = 0;
};

// An op, or a whole layer.
struct ChainOp {
  int kind = 0;               // in ChainTask::kinds: its ways
  bool starts_layer = false;  // no run goes on here
  // What it takes to go from way v of this op to way w of the next one, at [v * ways + w]; empty =
  // nothing.
  const std::vector<double>* change = nullptr;
};

struct ChainTask {
  std::vector<std::vector<ChainWay>> kinds;  // all have the same number of ways
  std::vector<ChainOp> ops;
  double memory = 0;    // that kept, repeated and transient bytes may take together
  double at_least = 0;  // what repeated and transient bytes need not be below: they share its room

  const std::vector<ChainWay>& ways(int op) const { return kinds[ops[op].kind]; }
};

struct ChainAnswer {
  std::vector<int> ways;  // of each op
  double time = 0;
  double memory = 0;
  double bound = 0;  // no choice that fits takes less
};

struct ChainEffort {
  double precision = 0;      // an answer that is proven to be so near to the least time is enough
  std::size_t labels = 256;  // that are kept for each op and way
};

// The choice of ways that takes least time and fits; nothing where none does.
//
// For a price of memory, in seconds a byte, a dynamic program over the chain gives the least sum of
// time and priced memory; layers that are alike are worked out once. The price that just fits gives
// an answer and a bound on all others, since what repeats is left out of it. Where these are apart,
// a second pass over the chain lists partial choices of which none is better than another in time
// and all kinds of memory, without those that the bound rules out: that is exact, unless more than
// `labels` remain.
std::optional<ChainAnswer> choose_in_chain(const ChainTask& task, const ChainEffort& effort = {});

// What a choice takes.
ChainAnswer evaluate(const ChainTask& task, std::vector<int> ways);

}  // namespace plait
