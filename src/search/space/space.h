#pragma once

#include <compare>
#include <string>
#include <vector>

#include "cost/span_frame.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/target.h"
#include "search/space/pins.h"
#include "search/space/search.h"
#include "search/space/units/run_classes.h"
#include "search/space/units/tied_copies.h"
#include "search/space/units/units_recomputed.h"

namespace plait {

// Equal devices in equal nodes of one zone: nothing tells them apart but their position.
struct Pool {
  int type = 0;
  int per_node = 0;               // devices of this type on each of its nodes
  std::vector<DeviceId> devices;  // node by node
  int size() const { return static_cast<int>(devices.size()); }
};
// In order of first appearance.
std::vector<Pool> pools_of(const Cluster& cluster);

// What a stage takes of one pool.
struct Take {
  int pool = 0;
  int devices = 0;
  int samples = 0;  // of a micro-batch, for its replicas together; spread as evenly as possible
  friend auto operator<=>(const Take&, const Take&) = default;
};

// How a stage may be built, apart from its units: one take, or several in pool order (a mixed
// stage, whose replicas take shares in proportion to their speed).
struct StageOption {
  int tensor = 1;
  int data = 1;
  std::vector<Take> takes;

  int devices() const;
  // Replicas that a take makes.
  int data_of(const Take& take) const { return data * take.devices / devices(); }
  friend auto operator<=>(const StageOption&, const StageOption&) = default;
};

// A stage of the space: an option, where its takes begin in their pools, and its units.
struct PlacedStage {
  StageOption option;
  std::vector<int> begin;  // per take
  UnitRange units;
  UnitsRecomputed recompute;
};

// The space of plans that every planner searches, and the only place that decides what divides
// what. A plan of the space has
//   - m micro-batches, m a divisor of the global batch;
//   - stages of one tensor and data degree each; a stage takes the next free devices of one pool,
//   or of several pools
//     with one tensor degree; its replicas share a micro-batch as evenly as their speeds allow, and
//     their number divides the micro-batch or divides a pool evenly; devices may stay idle;
//   - tensor degrees that divide every op that they cut, and that divide a node's devices or are a
//     multiple of them, so that no group straddles nodes needlessly;
//   - recompute per stage, or of the first layers of each stage where the target runs that
//     (recomputes_by_layer()); ZeRO stage (3 only without a pipeline unless pinned), context degree
//     (above one for long sequences or when pinned) and expert degree for the plan;
//   - sequence parallelism wherever a tensor degree is above one and divides the tokens that a
//     device has of a sequence; where some degrees do and others do not, plans with it (and the
//     degrees that do) and plans without it are both in the space.
class Space {
 public:
  // Of the plans above, those that the target cannot run are left out as far as degrees, settings
  // and shares of stages tell; Shortlist asks why_not() for the rest.
  explicit Space(const Problem& problem, const Pins& pins, const Target& target = {});

  const Problem& problem() const { return problem_; }
  const Pins& pins() const { return pins_; }
  const Target& target() const { return target_; }
  const std::vector<Pool>& pools() const { return pools_; }
  bool pools_share_nodes() const { return pools_share_nodes_; }
  const RunClasses& run_classes() const { return run_classes_; }
  // Of the model's layers, the first units.
  const std::vector<int>& layer_starts() const { return layer_starts_; }
  const TiedCopies& tied_copies() const { return tied_copies_; }

  // What all stages of a plan share, every combination.
  const std::vector<PlanSettings>& settings() const { return settings_; }
  const std::vector<Recompute>& recomputes() const { return recomputes_; }  // fastest first
  // Whether layers of one stage may be recomputed in different ways, each stage as it likes: the
  // first ones in full, the next ones selectively.
  bool recomputes_by_layer() const { return recomputes_by_layer_; }
  // Values that Span::split may have: more than 1 where units are ops that can be cut in several
  // ways, and the target runs them.
  int split_choices() const { return split_choices_; }
  // Ascending; those that divide the ops they cut, and a node's devices or a multiple of them.
  std::vector<int> tensor_degrees(const Pool& pool) const;
  std::vector<StageOption> stage_options(const PlanSettings& settings) const;
  // Whether sequence parallelism, if these settings have it, can cut what a device has of a
  // sequence by this tensor degree.
  bool cuts_sequence(const PlanSettings& settings, int tensor) const;

  int min_stages() const { return min_stages_; }
  int max_stages(const PlanSettings& settings) const;
  // Whether a stage may have these units when `after` stages follow it.
  bool allows(const UnitRange& units, int after) const;
  // Where a take of `devices` with this tensor degree begins when `used` devices of the pool are
  // taken: the next place where no tensor group straddles nodes needlessly.
  int aligned(int pool, int used, int tensor) const;

  Stage stage_of(const PlacedStage& placed) const;
  // First stage first.
  Plan plan_of(const std::vector<PlacedStage>& stages, const PlanSettings& settings,
               Schedule schedule) const;
  // ZeRO and the cutting of sequences are said only where the degrees of a plan's stages give them
  // a meaning, or where they are pinned, so that equal plans are equal values.
  void drop_idle_switches(Plan& plan) const;
  // The plans of the space that these stages make: one, unless a schedule is pinned that can cut
  // stages into chunks in several ways (schedules.h).
  std::vector<Plan> plans_of(const std::vector<PlacedStage>& stages,
                             const PlanSettings& settings) const;

  // Why no plan of the space can exist, where that is so: the space is empty then.
  const std::optional<PinViolation>& violation() const { return violation_; }

 private:
  // Whether plans with this context degree cut norms and residuals over the tensor group: always,
  // never, or as a choice.
  std::vector<bool> sequence_parallel_choices(int context) const;
  void list_settings();
  std::vector<ZeroStage> zero_stages() const;

  const Problem& problem_;
  Pins pins_;
  Target target_;
  std::optional<PinViolation> violation_;
  std::vector<Pool> pools_;
  bool pools_share_nodes_ = false;  // nodes with devices of several types
  RunClasses run_classes_;
  std::vector<int> layer_starts_;
  TiedCopies tied_copies_;
  std::vector<PlanSettings> settings_;
  std::vector<Recompute> recomputes_;
  bool recomputes_by_layer_ = false;
  int split_choices_ = 1;
  int min_stages_ = 1;
  int max_stages_ = 1;
};

// Whether a tensor degree cuts every op of the model into equal parts; else `obstacle` says which
// it does not ("the 12 heads of decoder.attention").
bool cuts_evenly(const Model& model, int tensor, std::string* obstacle = nullptr);

// Whether a tensor degree divides the devices of the pool's nodes, or is a multiple of them.
bool tensor_fits(const Pool& pool, int tensor);

// Experts of the layers that have them, 0 if none has; the greatest common divisor when they
// differ.
int expert_count(const Model& model);

std::vector<int> divisors_of(int n);  // ascending

// Clusters up to this size are searched to the end; on larger ones options that are slower in
// themselves are left out.
inline constexpr int kExactDevices = 16;

// Tensor groups extend over at most this many nodes.
inline constexpr int kMaxTensorNodes = 4;

}  // namespace plait
