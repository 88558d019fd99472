#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cost/estimate.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "search/space/pins.h"

namespace plait {

class CostEngine;

// All knobs of all planners, flat, each with a default that is right for most users.
struct SearchOptions {
  std::uint64_t seed = 1;  // same seed: same answer, on any number of threads
  int threads = 1;
  int keep = 5;  // how many plans to return
  double moves_effort =
      1;  // auto: work spent on changing plans step by step, relative to the usual
  Seconds time_limit = Seconds(60);
  std::int64_t max_evaluations = 0;  // 0 = unlimited
  // Plans that are not faster are of no use; a planner may leave them out and then find nothing.
  Seconds cutoff = Seconds(HUGE_VAL);
  // Numbers of micro-batches that may still beat the cutoff, ascending; empty = any.
  std::vector<int> promising_micro_batches{};
  Pins pins;

  // Knobs of the planners that follow other people's papers; docs/planners.md.
  int max_tensor = 4;       // fasop, metis: largest tensor degree
  int rotations = 0;        // fasop: node orders tried, evenly spaced among the cyclic; 0 = all
  int max_permute_len = 6;  // metis: device groups are fused until at most so many are permuted
  double group_scale_variance = 1;  // metis: smallest group over the mean; less tries more groups
  int max_micro_batch = 0;          // metis: samples of a micro-batch on a replica; 0 = any number
};

struct RankedPlan {
  Plan plan;
  Estimate cost;
};

struct SearchResult {
  std::vector<RankedPlan> plans;  // best first; empty means nothing fits
  std::int64_t evaluations = 0;
  std::optional<Seconds> lower_bound;  // no plan of the space is faster; set by exact planners
  // Whether the bound holds for every plan, not only for those of the space (proof.h).
  bool bounds_every_plan = false;
  bool searched_whole_space = false;  // all plans that were free to choose are of the space
  bool cut_short = false;             // a limit or a stop request ended it
  // When nothing fits: the plan that is nearest to fitting, and why it does not.
  std::optional<RankedPlan> nearest;
  std::string reason;
};

struct SearchContext {
  const Problem& problem;
  SearchOptions options;
  std::stop_token stop;
  std::function<void(const RankedPlan&)> on_improvement;  // may be empty
  std::function<void(double fraction)> on_progress;       // may be empty
  const CostEngine* engine = nullptr;  // of the problem, where there is one already
};

// A planner is a function. It returns plans that pass check_plan() and fit in memory.
struct Planner {
  std::string_view name;     // "auto"
  std::string_view summary;  // one line for --help and the docs
  SearchResult (*search)(const SearchContext&);
};

// The one table of planners, in search/registry.cpp. To add one: write a file, add a row.
std::span<const Planner> planners();

// Runs a planner the only way it is ever run: every plan re-checked and re-costed by simulation,
// ranked, truncated to `keep`.
SearchResult run_search(const Planner& planner, const SearchContext& context);

}  // namespace plait
