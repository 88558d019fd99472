#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/plan/remedies.h"
#include "app/request/session.h"
#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// Why a search came back without a plan, and what would help.
struct NoPlan {
  bool cut_short = false;             // before anything could be said
  bool hopeless = false;              // is_hopeless()
  bool hurried = false;               // time was up before all remedies were tried
  bool overlooked = false;            // another search finds plans that fit; `why` has one
  std::string why;                    // by how much the nearest plan misses, and at which stage
  std::optional<RankedPlan> nearest;  // the plan that `why` speaks of
  std::vector<Remedy> remedies;
  bool tried_more_devices = false;  // up to hundreds of them
};

// The plan that would fit if the devices had a little more memory: as little more as makes a
// difference, to a hundredth. Nothing when memory is not what is missing.
std::optional<RankedPlan> nearest_plan(const Problem& problem, const SearchOptions& options,
                                       const Session& session);

// Whether any plan fits under the pins, looked for where memory is used most sparingly: with full
// recompute and small micro-batches, as far as pins leave that open.
bool fits_thriftily(const Problem& problem, const SearchOptions& options, const Session& session);

// Searches for the nearest plan and for remedies; every remedy that it names was found to work.
NoPlan why_no_plan(const Problem& problem, const SearchOptions& options, const SearchResult& result,
                   const Session& session);

// "nothing fits: in the nearest plan (...) stage 2 needs ...; it fits without `tensor` 8"
std::string in_words(const NoPlan& no_plan);

}  // namespace plait
