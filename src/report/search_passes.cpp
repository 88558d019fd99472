#include "report/search_passes.h"

#include <cmath>

#include "report/quantities.h"

namespace plait {

std::string search_passes_table(const std::vector<PassReport>& passes, const Style& style) {
  Table table({{"pass", Align::left}, {"time"}, {"plans"}, {"step"}, {"bound"}});
  Seconds best(HUGE_VAL);
  Seconds bound;
  for (const PassReport& pass : passes) {
    table.row({pass.name, in_words(pass.elapsed), grouped(static_cast<double>(pass.evaluations)),
               pass.best < best ? in_words(pass.best) : "",
               pass.lower_bound > bound && std::isfinite(pass.lower_bound.value)
                   ? in_words(pass.lower_bound)
                   : ""});
    best = pass.best;
    bound = pass.lower_bound;
  }
  return table.str(style);
}

}  // namespace plait
