#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/units.h"
#include "search/space/search.h"

namespace plait {

// How a front end takes part while a request is answered. Every member may be empty. Calls come
// from any thread, also at the same time.
struct Session {
  std::stop_token stop;                                     // asks for the best answer so far
  std::function<void(Seconds step)> on_improvement;         // the best step so far
  std::function<void(double fraction)> on_progress;         // of the work, from 0 to 1
  std::function<void(const std::string& text)> on_warning;  // before the search; answers keep them

  void warn(const std::vector<std::string>& warnings) const;
};

// A search of the problem in this session. The problem must outlive it.
SearchContext search_context(const Problem& problem, const SearchOptions& options,
                             const Session& session);

// Seconds since it was made.
class Stopwatch {
 public:
  Stopwatch();
  Seconds elapsed() const;

 private:
  double begin_;
};

}  // namespace plait
