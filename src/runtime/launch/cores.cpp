#include "runtime/launch/cores.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <cstdlib>
#include <numeric>

namespace plait::runtime {
namespace {

cpu_set_t cores_of_run() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const char* list = std::getenv(kCoresOfRun);
  while (list != nullptr && *list != 0) {
    char* end = nullptr;
    const unsigned long core = std::strtoul(list, &end, 10);
    if (end == list) break;
    if (core < CPU_SETSIZE) CPU_SET(core, &set);
    list = *end == ',' ? end + 1 : end;
  }
  return set;
}

}  // namespace

std::vector<int> available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  return cores;
}

std::vector<std::vector<int>> cores_of_ranks(const std::vector<int>& threads,
                                             const std::vector<int>& available) {
  std::vector<std::vector<int>> cores(threads.size());
  const auto wanted =
      static_cast<std::size_t>(std::accumulate(threads.begin(), threads.end(), std::int64_t{0}));
  if (wanted > available.size()) return cores;
  auto next = available.begin();
  for (std::size_t rank = 0; rank < threads.size(); ++rank) {
    cores[rank].assign(next, next + threads[rank]);
    next += threads[rank];
  }
  return cores;
}

std::string list_of_cores(const std::vector<int>& cores) {
  return fmt::format("{}", fmt::join(cores, ","));
}

RoamingThreads::RoamingThreads() {
  CPU_ZERO(&own_);
  const cpu_set_t all = cores_of_run();
  if (CPU_COUNT(&all) == 0 || sched_getaffinity(0, sizeof(own_), &own_) != 0) return;
  sched_setaffinity(0, sizeof(all), &all);
}

RoamingThreads::~RoamingThreads() {
  if (CPU_COUNT(&own_) > 0) sched_setaffinity(0, sizeof(own_), &own_);
}

}  // namespace plait::runtime
