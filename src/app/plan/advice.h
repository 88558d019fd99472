#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/request/session.h"
#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// True when the weights and gradients alone exceed the memory of all devices: no need to search.
bool is_hopeless(const Problem& problem);

// One change with which a plan was found.
struct Remedy {
  std::vector<Dimension> without;      // pins to drop, or
  std::optional<Precision> precision;  // another one, or
  int cluster_times = 1;               // as many clusters
  std::string words;                   // "without `tensor` 8"
};

// Why a search came back without a plan, and what would help.
struct NoPlan {
  bool cut_short = false;  // before anything could be said
  bool hopeless = false;   // is_hopeless()
  std::string why;         // by how much the nearest plan misses, and at which stage
  std::vector<Remedy> remedies;
};

// Searches for the nearest plan and for remedies; every remedy that it names was found to work.
NoPlan why_no_plan(const Problem& problem, const SearchOptions& options, const SearchResult& result,
                   const Session& session);

// "nothing fits: in the nearest plan (...) stage 2 needs ...; it fits without `tensor` 8"
std::string in_words(const NoPlan& no_plan);

}  // namespace plait
