#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "cost/engine.h"
#include "search/inside/chain_choice.h"
#include "search/space/space.h"

namespace plait {

// The best insides of stages: for each unit a tensor and a data degree, in which of its ways it is
// cut, and how it is recomputed.
// Stages have devices of one pool, under 1F1B.
class StageInsides {
 public:
  StageInsides(const Space& space, const CostEngine& engine, const PlanSettings& settings);

  struct Place {
    int pool = 0;
    int begin = 0;  // among the devices of the pool
    int devices = 1;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Inside {
    std::vector<std::int16_t> ways;  // of each unit, in the ground's numbering
    Seconds time;                    // forward and backward pass of a micro-batch
    Seconds finish;                  // once a step
  };
  // When `after` stages follow; nullptr where nothing fits. Within `precision` of the best one. It
  // stands until the next call.
  const Inside* best(const Place& place, const UnitRange& units, int after, double precision);
  std::vector<Span> spans(const Place& place, const UnitRange& units, const Inside& inside);
  // Times of all units before each one, each with the fastest of its ways: no stage of units [a, b)
  // is faster than the difference. Empty where such a stage cannot be.
  const std::vector<double>& least_times(const Place& place);

  // A unit by itself in one of its ways; those that it does not have take forever.
  struct UnitWay {
    double time = 0;
    double finish = 0;
    double held = 0;       // whatever is in flight
    double gradients = 0;  // of that
    double saved = 0;      // of each micro-batch in flight
    ChainWay way;          // what does not depend on what is in flight
    double loss = 0;
    double optimizer = 0;  // of finish
  };
  // Of units that are alike, every way; empty where such a stage cannot be.
  const std::vector<std::vector<UnitWay>>& ways(const Place& place) { return ground(place).units; }
  int distinct_of(int unit) const { return distinct_of_[unit]; }
  int distinct_count() const { return static_cast<int>(first_of_.size()); }
  // What the units of a stage may keep on a device, at most.
  Bytes room(const Place& place);

  const PlanSettings& settings() const { return settings_; }
  std::vector<DeviceId> devices_of(const Place& place) const;
  std::int64_t evaluations() const { return evaluations_; }

 private:
  // One pair of degrees with a split choice, and all that is known of the units under it.
  struct Cut {
    int tensor = 1;
    int data = 1;
    int split = 0;
    std::unique_ptr<SpanFrame> frame;
  };
  // Of the devices of a place, wherever it is.
  struct Ground {
    std::vector<Cut> cuts;
    std::vector<std::vector<UnitWay>> units;  // by distinct unit: [cut * recomputes + recompute]
    // Between all ways, by the kinds of the two units.
    std::map<std::pair<int, int>, std::vector<double>> changes;
    std::vector<double> least_times;
  };
  Ground& ground(const Place& place);
  Span span_of(const Ground& ground, int way, int unit) const;
  Place canonical(const Place& place) const;
  void add_units(Ground& ground);
  UnitWay unit_way(const Cut& cut, int index, int unit, Recompute recompute) const;
  const std::vector<double>& changes(Ground& ground, const Place& place, int unit);
  // With the ways of these cuts alone.
  std::optional<Inside> with_cuts(const Place& place, const UnitRange& units, int after,
                                  const std::vector<int>& cuts, double precision);
  ChainTask task(Ground& ground, const Place& place, const UnitRange& units, int after,
                 const std::vector<int>& cuts);
  std::optional<Inside> costed(const Place& place, const UnitRange& units, int after,
                               std::vector<std::int16_t> ways, Bytes& excess);
  Plan plan_of(const Place& place, std::vector<Span> spans, int after) const;

  const Space& space_;
  const CostEngine& engine_;
  PlanSettings settings_;
  TableSource tables_;
  std::vector<StageOption> options_;
  std::vector<int> distinct_of_;  // by unit: units that are alike, in layers that are
  std::vector<int> first_of_;     // by distinct unit
  std::map<Place, Ground> grounds_;
  using Key = std::tuple<Place, std::int64_t, int, int>;  // class, micro-batches kept, precision
  std::map<Key, std::optional<Inside>> known_;
  std::int64_t evaluations_ = 0;
};

}  // namespace plait
