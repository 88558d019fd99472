#pragma once

#include <chrono>
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
#include "plan/target.h"
#include "search/space/effort.h"
#include "search/space/pins.h"

namespace plait {

class CostEngine;
class Space;

// All knobs of all planners, flat, each with a default that is right for most users.
struct SearchOptions {
  int threads = 1;
  int keep = 5;  // how many plans to return
  // auto: nothing is normal, or, where there is a target_gap, all that it takes.
  std::optional<Effort> effort{};
  // auto: ends as soon as the best plan is proven to be within this part of the fastest one.
  std::optional<double> target_gap{};
  Seconds time_limit = Seconds(60);
  std::int64_t max_evaluations = 0;  // 0 = unlimited
  // Plans that are not faster are of no use; a planner may leave them out and then find nothing.
  Seconds cutoff = Seconds(HUGE_VAL);
  // Numbers of micro-batches that may still beat the cutoff, ascending; empty = any.
  std::vector<int> promising_micro_batches{};
  Pins pins;
  Target target{};  // the program that must be able to run the plans; free by default

  // Knobs of the planners that follow other people's papers; docs/planners.md.
  int max_tensor = 4;       // fasop, metis: largest tensor degree
  int rotations = 0;        // fasop: node orders tried, evenly spaced among the cyclic; 0 = all
  int max_permute_len = 6;  // metis: device groups are fused until at most so many are permuted
  double group_scale_variance = 1;  // metis: smallest group over the mean; less tries more groups
  int first_stages = 1;             // aceso: pipelines with at least and at most so many stages
  int last_stages = 16;
  int max_hops = 7;             // aceso: moves in a row that may make a plan slower
  std::vector<Plan> initial{};  // aceso: where it starts; empty = stages of equally many units
  int max_micro_batch = 0;      // metis: samples of a micro-batch on a replica; 0 = any number
};

struct RankedPlan {
  Plan plan;
  Estimate cost;
};

// What one pass of a planner did.
struct PassReport {
  std::string name;
  Seconds elapsed;
  std::int64_t evaluations = 0;  // plans costed
  Seconds best;                  // step of the best plan after it; infinite when there is none
  Seconds lower_bound;           // after it; zero when nothing is proven
};

struct SearchResult {
  std::vector<RankedPlan> plans;  // best first; empty means nothing fits
  std::int64_t evaluations = 0;
  // No plan of the space is faster; above zero, and absent where nothing is proven.
  std::optional<Seconds> lower_bound;
  // No plan at all is faster, of the space or not; absent where the planner does not say so.
  std::optional<Seconds> floor{};
  // Whether the bound holds for every plan, not only for those of the space (proof.h).
  bool bounds_every_plan = false;
  bool left_space = false;            // plans were looked for beyond the space (search/inside)
  bool searched_whole_space = false;  // all plans that were free to choose are of the space
  bool cut_short = false;             // a limit or a stop request ended it
  std::vector<PassReport> passes{};   // in the order in which they ran; of planners that have any
  // When nothing fits: the plan that is nearest to fitting, and why it does not.
  std::optional<RankedPlan> nearest;
  std::string reason;
};

struct SearchContext {
  const Problem& problem;
  SearchOptions options;
  std::stop_token stop;
  // The best plan so far, and the plans costed until then; may be empty.
  std::function<void(const RankedPlan&, std::int64_t evaluations)> on_improvement;
  std::function<void(double fraction)> on_progress;  // may be empty

  // Set by run_search(), once for all parts of a search: the costs of the problem, its space under
  // the pins, and when the time limit ends.
  const CostEngine* engine = nullptr;
  const Space* space = nullptr;
  std::chrono::steady_clock::time_point deadline{};

  // Whether a stop was asked for or the time is up. Every loop that may be long asks.
  bool should_stop() const {
    return stop.stop_requested() || std::chrono::steady_clock::now() > deadline;
  }
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
