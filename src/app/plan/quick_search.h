#pragma once

#include <chrono>
#include <optional>

#include "app/request/session.h"
#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// How advice is searched for: as the user searched, until the session is asked to stop or all
// searches for it together have taken as long as the user gives a search.
struct Trial {
  SearchOptions options;
  const Session& session;
  std::chrono::steady_clock::time_point end;

  Seconds left() const;
};

Trial trial_of(const SearchOptions& options, const Session& session);

// The options with what is left of their time after so much of it.
SearchOptions in_time_left(SearchOptions options, Seconds spent);

// Bytes that all devices together must hold, and can: the latter up to the limit of the job; the
// reserve may be broken, which makes it a bound.
Bytes state_of(const Problem& problem, const Pins& pins);
Bytes memory_of(const Problem& problem);

// True when the states alone exceed the memory of all devices: no need to search.
bool is_hopeless(const Problem& problem, const Pins& pins);

// Some plan of the problem under these pins: the first that turns up is enough.
std::optional<Plan> any_plan(const Problem& problem, const Trial& trial, const Pins& pins);
bool is_solvable(const Problem& problem, const Trial& trial, const Pins& pins);

// Where memory is short, small micro-batches and full recomputation are what fits if anything does.
bool is_solvable_thriftily(const Problem& problem, const Trial& trial, const Pins& pins);

}  // namespace plait
