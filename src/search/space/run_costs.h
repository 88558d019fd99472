#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cost/span_frame.h"
#include "search/space/least_recompute.h"
#include "search/space/pipeline_suffix.h"
#include "search/space/space.h"

namespace plait {

// What runs of units cost on the devices of one frame. Worked out once for each class of runs
// (run_classes.h), when first asked for; not thread-safe.
class RunCosts {
 public:
  struct Choice : StageTime {
    UnitsRecomputed recompute;
  };

  RunCosts(const Space& space, const ScheduleSetting& rhythm, SpanFrame frame);

  const SpanFrame& frame() const { return frame_; }
  int unit_count() const { return space_.problem().model.unit_count(); }

  // From now on the first layers of every run are recomputed in full and the others not at all, the
  // same number of every run: with `least` layers it takes its time, with `most` it must fit. So
  // choose() gives what no number between them undercuts.
  struct FirstLayers {
    int least = 0;
    int most = 0;
  };
  void recompute_first(const FirstLayers& layers);

  // The fastest recompute choice with which the units fit when `after` stages follow; nothing when
  // none fits.
  std::optional<Choice> choose(const UnitRange& units, int after);
  // The same of runs that begin at a unit and end at each of these, ascending, when no stage
  // follows, but for rounding; up to the first that takes as long as the limit in a step, or does
  // not fit. More units must need more memory.
  void last_times(int begin, std::span<const int> ends, Seconds limit,
                  std::vector<StageTime>& times);
  Choice cost(const UnitRange& units, const UnitsRecomputed& recompute) const;
  bool fits(const UnitRange& units, const UnitsRecomputed& recompute, int after) const;
  // On the replica that is slowest over the whole model, with the least recompute. A lower bound
  // that adds up: summed over the units of a run it never exceeds what the run takes.
  StageTime alone(const UnitRange& units) const;

 private:
  struct Entry {
    Seconds forward;
    Seconds backward;
    Seconds finish;
    int most_after = 0;  // stages that may follow, or -1
    UnitsRecomputed recompute{};
  };
  Entry entry_of(const UnitRange& units, const UnitsRecomputed& least,
                 const UnitsRecomputed& most) const;
  Entry new_entry(const UnitRange& units, Recompute recompute) const;
  // Where some layers of the run may be recomputed and others not.
  std::optional<Choice> choose_by_layer(const UnitRange& units, int after);
  RunInFlight in_flight(const UnitRange& units, int after) const;
  // Where the longest run ends that begins there and fits when no stage follows.
  int longest_last(int begin, std::size_t recompute);
  // Sums over the units before each one, for many runs at once.
  struct Sums {
    std::optional<SpanFrame::FinishRates> rates;  // else they are of no use
    std::vector<double> parameters;               // trained ones
    std::vector<double> expert_parameters;
    std::vector<std::vector<PassTime>> times;  // [recompute * replicas + replica]
    std::vector<std::vector<PassTime>> network;
  };
  void set_sums();
  StageTime summed(const UnitRange& units, std::size_t recompute) const;

  const Space& space_;
  ScheduleSetting rhythm_;
  SpanFrame frame_;
  int slowest_ = 0;      // replica over the whole model
  int most_stages_ = 1;  // of a plan
  std::optional<FirstLayers> first_;
  std::vector<int> known_;  // [class * recomputes + r] = position in entries_, or -1
  std::vector<Entry> entries_;
  std::unordered_map<std::int64_t, std::optional<Choice>> by_layer_;  // by class and live ones
  std::vector<int> longest_;  // by recompute, of what was asked for last
  std::optional<Sums> sums_;
};

}  // namespace plait
