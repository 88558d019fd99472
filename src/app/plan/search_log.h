#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/space/search.h"

namespace plait {

// One line of the story of a search: a better plan, or the end of a pass.
struct SearchEvent {
  Seconds elapsed;
  std::optional<std::int64_t> evaluations{};  // so far, where it is known
  Seconds best;                               // step of the best plan
  std::optional<Seconds> lower_bound{};
  std::string what;  // the plan, or the name of the pass
};

// The passes and the end of the search, put between the plans that were found meanwhile.
void add_passes(const SearchResult& result, Seconds elapsed, std::vector<SearchEvent>& log);

// seconds,evaluations,step_s,lower_bound_s,what; what is not known is empty.
std::string search_log_csv(const std::vector<SearchEvent>& log);

}  // namespace plait
