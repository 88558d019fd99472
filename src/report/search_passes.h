#pragma once

#include <string>
#include <vector>

#include "report/table.h"
#include "search/space/search.h"

namespace plait {

// What each pass of a search took and gave: its time, the plans that it costed, the best step and
// the lower bound after it where the pass changed them.
//
//   pass              time  plans     step    bound
//   settings       1.20 ms      0           1.050 s
//   uniform pools  0.80 ms     12  1.234 s
std::string search_passes_table(const std::vector<PassReport>& passes, const Style& style);

}  // namespace plait
