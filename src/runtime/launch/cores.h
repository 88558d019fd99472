#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace plait::runtime {

// The cores that this thread may run on.
std::vector<int> available_cores();

// Cores of each rank, disjoint and in order; empty lists when `available` are too few.
std::vector<std::vector<int>> cores_of_ranks(const std::vector<int>& threads,
                                             const std::vector<int>& available);

// Environment variable in which a rank that is bound to cores finds all cores of the run: "0,1,5".
inline constexpr const char* kCoresOfRun = "PLAIT_CORES_OF_RUN";
std::string list_of_cores(const std::vector<int>& cores);

// Threads made while it lives may run on all cores of the run, not on this rank's alone; without
// kCoresOfRun, or with one that names no cores, it does nothing.
//
// For Gloo's receiving threads: they try the lock of a connection again and again instead of
// waiting for it, so on the one core of a rank they keep the sender that holds it from running for
// a time slice. On a Xeon of 16 cores an all-reduce of 1 KB between two ranks of one core takes 3.8
// ms so, and 0.2 ms without.
class RoamingThreads {
 public:
  RoamingThreads();
  ~RoamingThreads();
  RoamingThreads(const RoamingThreads&) = delete;
  RoamingThreads& operator=(const RoamingThreads&) = delete;

 private:
  cpu_set_t own_;
};

}  // namespace plait::runtime
