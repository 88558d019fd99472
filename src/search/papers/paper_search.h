#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/engine.h"
#include "cost/span_frame.h"
#include "search/space/pipeline_suffix.h"
#include "search/space/search.h"
#include "search/space/shortlist.h"
#include "search/space/space.h"

namespace plait {

// Relative: times that differ by less are equal.
inline constexpr double kSameTime = 1e-9;

// The devices of a stage that has no units yet, and how they are cut.
struct Slot {
  std::vector<DeviceId> devices;  // ordered as in Stage
  int tensor = 1;
  int data = 1;
  std::vector<int> shares;  // as in Stage
};

// What a unit of each kind takes on a stage at least, and all units together.
struct Pace {
  struct Times {
    std::vector<double> by_kind;
    double whole = 0;
    void lower(const Times& other);

    // What follows from these, by settle().
    std::vector<double> part;  // of the whole, by kind
    double worth = 0;          // wholes in a second
    void settle();
  };
  Times pass;  // forward and backward of one micro-batch
  Times step;  // and its part of what follows the last of them: gradient sync and optimizer
  bool empty() const { return pass.by_kind.empty(); }
  // To the other's where those are less.
  void lower(const Pace& other);
};

// Devices that are cut in one way, and what has been found out about them; PaperSearch does so when
// it is first asked.
struct PaperFrame {
  SpanFrame span;
  Pace pace{};
  std::vector<double> times{};  // PaperSearch::times
  struct Run {
    StageTime time;
    bool is_timed = false;
    int fits_with = 0;  // micro-batches in flight, at least
  };
  std::vector<Run> runs{};  // by class; RunClasses
};

// A pipeline without units.
struct Layout {
  PlanSettings settings;
  std::vector<Slot> slots;            // first stage first
  std::vector<PaperFrame*> frames{};  // of the slots; equal slots share one

  int stages() const { return static_cast<int>(frames.size()); }
};

// Degrees that hold for all stages. tensor * data * pipeline * context devices are all there are.
struct Degrees {
  int tensor = 1;
  int data = 1;
  int pipeline = 1;
  int micro_batches = 1;
};

// What the planners that follow other people's papers share: stages take consecutive devices of an
// order; plain pipelines, brought under another schedule where one is pinned; no recompute, ZeRO,
// context or expert parallelism unless pinned (none of those papers searches them); sequence
// parallelism as in the rest of the space. Keeps the plans that are found. docs/planners.md says
// what each planner does with it.
class PaperSearch {
 public:
  explicit PaperSearch(const SearchContext& context);

  const Space& space() const { return space_; }
  int units() const { return space_.problem().model.unit_count(); }
  Recompute recompute() const { return recompute_; }
  // "" or why the pins leave nothing to try.
  const std::string& obstacle() const { return obstacle_; }
  // Whether time is up, enough plans were costed, or a stop was asked for.
  bool stopped();

  PlanSettings settings(int micro_batches) const;
  // Whether plans of the space and the pins leave room for a pipeline of so many stages.
  bool allows_stages(int stages) const;
  // Whether so many micro-batches are pinned and promising, as far as anything is.
  bool tries(int micro_batches) const;
  // Ascending in tensor, data and micro-batches. `max_tensor` also bounds the tensor degree, which
  // divides the devices of every node.
  std::vector<Degrees> uniform_degrees(int max_tensor) const;
  // The devices of `order`, cut evenly; nothing where that is not allowed, or too slow however it
  // is cut. Valid until the next call, as layout().
  std::optional<Layout> uniform_layout(const std::vector<DeviceId>& order, const Degrees& degrees);

  // Whether the slot can be part of a sound plan that the pins allow.
  bool allows(const Slot& slot, const PlanSettings& settings);
  // Valid until the next call. Every slot must be allowed.
  Layout layout(const PlanSettings& settings, std::vector<Slot> slots);
  // A frame of any devices, kept until frames are forgotten.
  PaperFrame& frame(const PlanSettings& settings, const Slot& slot);
  // Forgets all frames, and says so, when they have become many.
  bool forget_many_frames();

  // Whether only plans that are faster than a cutoff are asked for.
  bool has_cutoff() const { return has_cutoff_; }
  // What a stage takes in a plan that is of use, at most.
  double longest_stage(int micro_batches) const {
    return has_cutoff_ ? cutoff().value / micro_batches : HUGE_VAL;
  }
  const Pace& pace(PaperFrame& frame, int micro_batches) const;
  // Least time of a hand-over between stages on these devices; their tensor groups must be tidy.
  Seconds send_floor(const PlanSettings& settings, std::span<const DeviceId> from,
                     std::span<const DeviceId> to) const;
  // To sum the gradients of an embedding that is tied to the output layer, with these first and
  // last stages.
  Seconds tied_sync(std::span<const DeviceId> first, std::span<const DeviceId> last,
                    int tensor) const;
  // What a pipeline adds to its stages, at least.
  struct Between {
    Seconds sends;  // of the way from the first stage to the last
    Seconds tied;   // after the pipeline
  };
  // Whether no cut of the model over stages of these paces is faster than the cutoff.
  bool is_hopeless(std::span<const Pace* const> stages, const Between& between, int micro_batches);
  bool is_hopeless(const Layout& layout);

  // Forward and backward of one micro-batch.
  Seconds time(const PaperFrame& frame, const UnitRange& units) const {
    return frame.span.pass_time(units, recompute_).total();
  }
  // [u]: of units [0, u).
  const std::vector<double>& times(PaperFrame& frame) const;
  // Peak memory of the fullest device over what it has to give: fits when at most 1.
  double fill(const Layout& layout, int stage, const UnitRange& units) const;
  bool fits(const Layout& layout, int stage, const UnitRange& units);
  // To hand a micro-batch from a stage to the next, before unit `unit`.
  Seconds send(const PlanSettings& settings, const Slot& from, const Slot& to, int unit) const;

  // Whether these cuts make a plan that is not faster than the cutoff; counts it if so. `sends`: of
  // the hand-overs and of what is tied, none to leave them out.
  struct Sends {
    std::vector<Seconds> between;  // stage s and the next
    Seconds tied;
  };
  bool is_slow(const Layout& layout, const std::vector<int>& cuts, const Sends* sends = nullptr);
  // `cuts` has stages + 1 entries: stage s runs units [cuts[s], cuts[s + 1]).
  void offer(const Layout& layout, const std::vector<int>& cuts);
  // The same where is_slow() has been asked.
  void simulate(const Layout& layout, const std::vector<int>& cuts);
  // Whether no plan was offered, not even one that does not fit.
  bool has_nothing() const { return found_.evaluations() == 0; }
  void report_progress(double fraction) const;
  SearchResult result(const std::string& nothing_found) const;

 private:
  // Whether all tensor groups are as Space has them: in one pool, straddling nodes only as whole
  // nodes.
  bool has_tidy_tensor_groups(const Slot& slot) const;
  // What is known of runs that read like this one; nothing when runs are not told apart.
  PaperFrame::Run* known_run(PaperFrame& frame, const UnitRange& units);
  StageTime stage_time(PaperFrame& frame, const UnitRange& units);
  std::vector<int> key_of(const PlanSettings& settings, const Slot& slot) const;
  Plan plan_of(const Layout& layout, const std::vector<int>& cuts) const;
  // Only faster plans are of use.
  Seconds cutoff() const { return std::min(context_.options.cutoff, found_.best()); }
  // Whether the slowest of stages of these paces_ does, however the model is cut.
  bool takes_at_least(double limit, Pace::Times Pace::*times) const;
  bool cuts_evenly_by(int tensor);

  const SearchContext& context_;
  const Space& space_;
  const CostEngine& engine_;
  TableSource tables_;
  Shortlist found_;
  Schedule schedule_;
  bool sequence_parallel_ = false;  // wherever a tensor degree is above one
  Recompute recompute_;
  std::string obstacle_;
  struct Place {
    int pool = 0;
    int position = 0;  // among the pool's devices
  };
  std::vector<Place> places_;  // by device
  std::map<std::vector<int>, std::unique_ptr<PaperFrame>> frames_;
  std::vector<int> units_of_kind_;
  std::size_t most_frequent_kind_ = 0;
  struct EqualStages {
    const Pace* pace = nullptr;
    int count = 0;
  };
  std::vector<EqualStages> paces_;      // of the pipeline that is judged
  std::map<int, bool> is_even_degree_;  // by tensor degree
  BytesPerSecond fastest_uplink_;
  Seconds least_latency_;    // of an uplink
  double least_output_ = 0;  // of a unit that another one follows
  bool has_cutoff_ = false;
  std::int64_t slow_ = 0;        // plans that were not worth a simulation
  std::size_t key_numbers_ = 0;  // in all keys of frames_, and of known runs
  bool stopped_ = false;
};

// Units per stage as pinned, as cuts; empty when none are.
std::vector<int> pinned_cuts(const Pins& pins);

// Positions in Cluster::nodes, nodes of one device type together, types in the order given.
std::vector<int> nodes_by_type(const Cluster& cluster, const std::vector<int>& types);
// Device types of the cluster's nodes in order of first appearance; a node counts as the type of
// its first device.
std::vector<int> node_types(const Cluster& cluster);
std::vector<DeviceId> devices_of(const Cluster& cluster, const std::vector<int>& nodes);

// Why a planner that gives all stages one pair of degrees found nothing.
std::string no_uniform_layout(std::string_view planner);

}  // namespace plait
