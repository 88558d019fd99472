#include "app/request/session.h"

#include <chrono>

namespace plait {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void Session::warn(const std::vector<std::string>& warnings) const {
  if (!on_warning) return;
  for (const std::string& warning : warnings) on_warning(warning);
}

SearchContext search_context(const Problem& problem, const SearchOptions& options,
                             const Session& session) {
  SearchContext context{problem, options, session.stop, {}, session.on_progress};
  if (session.on_improvement)
    context.on_improvement = [tell = session.on_improvement](const RankedPlan& best, std::int64_t) {
      tell(best.cost.step);
    };
  return context;
}

Stopwatch::Stopwatch() : begin_(now()) {}
Seconds Stopwatch::elapsed() const { return Seconds(now() - begin_); }

}  // namespace plait
