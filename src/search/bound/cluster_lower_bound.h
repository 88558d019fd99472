#pragma once

#include <functional>
#include <vector>

#include "cost/engine.h"
#include "search/space/search.h"

namespace plait {

class PassingTables;

// A lower bound on the step of any part of a cluster, from what its devices can compute at best: no
// communication, no memory limit, the best cut and number of samples for every device.
//
// With t(k, p, b) the time of unit kind k on device type p for b samples, e(k, p) the least
// device-seconds for one sample over all cuts and b up to B / m, and
//   worth(p) = 1 / sum over units of e(kind, p)      models that one device does in a second
//   spend(k) = min over p of worth(p) e(k, p)
// the slowest stage takes for a micro-batch of B / m samples at least
//   Y = B / m * sum over units of spend(kind) / sum over devices of worth(type),
// and a micro-batch takes for its way through all stages at least, on devices of one type,
//   L = sum over units of the least x for which all devices together do B / m samples in x,
// weight gradients not included where schedules do them aside. A stage of several types takes as
// long as its slowest replica does for all of its units, and another one may be the slowest for
// each of them. So there one kind of unit stands for all. Replicas of a stage are cut alike: with x
// the least time for the main kind of unit with all devices cut in one way, r(k) the least time of
// kind k over that of the main kind on any type, and s the least part of a unit's time that is not
// put aside,
//   L = sum over units of the least s * x * r(kind) over all cuts.
// Under GPipe and 1F1B a step has at least L + (m - 1) Y, under others at least L and m Y; the
// bound is the least of that over all m.
class ClusterLowerBound {
 public:
  // Clusters of many types have many tables of costs: where `stop` says so before they are made,
  // nothing is bounded.
  ClusterLowerBound(const CostEngine& engine, const Pins& pins, const Target& target = {},
                    const std::function<bool()>& stop = {});

  // Of the part of the cluster with the given number of devices of each type.
  Seconds step(const std::vector<int>& devices) const;
  // Numbers of micro-batches with which the bound is below the cutoff, ascending.
  std::vector<int> micro_batches(const std::vector<int>& devices, Seconds cutoff) const;

 private:
  // One cut and number of samples: what a device does in this time, at most.
  struct Pace {
    double time = 0;
    double samples = 0;  // per device
  };
  struct PaceTable {
    std::vector<std::vector<Pace>> by_type;  // ascending in both
    std::vector<double> times;               // of all types, ascending
  };
  struct CutPaces;
  struct Economy {
    std::vector<double> worth;  // by device type
    double spend = 0;           // of one sample
  };
  // Times of every kind for one cut, for each of counts_.
  void add_cut(const Model& model, PassingTables& tables, int type, const Sharding& cut,
               CutPaces& paces);
  void sort_paces(PaceTable& paces) const;
  Economy economy_of(const Model& model, int most_samples) const;
  double step_with(std::size_t i, const std::vector<int>& devices) const;  // micro_batches_[i]
  double latency(const PaceTable& paces, const std::vector<int>& devices, double samples) const;
  double way(const std::vector<int>& devices, double samples) const;

  // Effort of one cut with a number of samples: device-seconds for each of them.
  struct Effort {
    int samples = 0;
    std::vector<double> by_kind;
  };
  bool is_whole_ = true;                      // was not stopped
  std::vector<int> counts_;                   // samples that are looked at
  std::vector<std::vector<Effort>> efforts_;  // by device type
  std::vector<PaceTable> paces_;              // by kind, of what is not put aside
  int main_kind_ = 0;
  // Of one cut, over all numbers of samples; for stages of several types.
  struct CutPaces {
    struct Ratios {
      std::vector<double> of_main;  // by kind: least time over that of the main kind
      double kept = 1;              // least part of a unit's time that is not put aside
    };
    PaceTable main;              // of the main kind, all of it
    std::vector<Ratios> ratios;  // by device type
  };
  std::vector<CutPaces> by_cut_;
  std::vector<int> units_of_kind_;
  std::vector<int> micro_batches_;  // numbers of them that a step may have
  std::vector<Economy> economies_;  // by position in micro_batches_
  int global_batch_ = 1;
  bool splits_ = false;         // some schedule puts weight gradients aside
  int split_choices_ = 1;       // Span::split
  bool fills_pipeline_ = true;  // every schedule lets the first micro-batch pass before the rest
};

}  // namespace plait
