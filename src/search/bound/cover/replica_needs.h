#pragma once

#include <array>
#include <memory>
#include <set>
#include <vector>

#include "cost/engine.h"
#include "search/bound/cover/unit_mixes.h"
#include "search/space/space.h"

namespace plait {

inline constexpr int kRecomputes = 3;

// What one unit of a kind needs at least of each device of a replica, for one micro-batch.
struct UnitNeed {
  std::array<double, kRecomputes> total{};  // seconds, by Recompute: forward and backward
  std::array<double, kRecomputes> saved{};  // bytes
  std::array<double, kRecomputes> again{};  // bytes, while it is computed twice
  // Seconds, whether it is computed twice or not. A layer that waits for the host is a little
  // shorter forward when it is, since what it waits is spread over all of it.
  double forward = 0;
  double backward = 0;
  double path = 0;       // forward and input gradient alone
  double aside = 0;      // weight gradient: at most
  double loss = 0;       // bytes, at the peak of the losses
  double workspace = 0;  // bytes, of its backward pass
};

// Parameters of one unit of a kind on each device of a replica, and those of them that are trained.
struct UnitParameters {
  double plain = 0;
  double experts = 0;
  double trained = 0;
  double trained_experts = 0;
  bool is_table = false;  // of an input or output layer
};

// Replicas of one device type that are cut in one way. Tensor groups are where they are best.
struct ReplicaKind {
  int type = 0;
  int tensor = 1;
  int context = 1;
  int expert = 1;
  int devices() const { return tensor * context; }
  std::vector<UnitParameters> parameters;  // by kind of UnitMixes
  // By sample count, then by kind; made when first asked for.
  std::vector<std::vector<UnitNeed>> needs;
  std::vector<std::vector<UnitNeed>> needs_across;
};

// A network that a device type may have at best.
struct BestLinks {
  double any = 0;      // bytes a second of a ring of its devices, wherever they are
  double between = 0;  // the same between nodes; 0 when there is one node
  int together = 1;    // most devices on one node, of all types
  int alike = 1;       // the same of this type
};

// Tensor degrees that a plan may have: those of any pool, and what doubling and halving makes of
// them.
std::set<int> possible_tensor_degrees(const Space& space);

// The least that the devices of a cluster need for the units of a model: for every device type, cut
// and number of samples, with tensor and expert groups over the fastest links there are, and with
// the cut of sequences that is best for each number. Nothing else is known of a plan.
class ReplicaNeeds {
 public:
  ReplicaNeeds(const CostEngine& engine, const Space& space, const UnitMixes& mixes);

  const Problem& problem() const { return engine_.problem(); }
  // Numbers of samples that are looked at, ascending from 1; what lies between two of them needs at
  // least as much as the lower one.
  const std::vector<int>& counts() const { return counts_; }
  std::vector<ReplicaKind>& kinds() { return kinds_; }
  const std::vector<int>& expert_degrees() const { return experts_; }
  // Of counts()[count].
  const std::vector<UnitNeed>& needs(ReplicaKind& kind, int count);
  // The same where the tensor group extends over several nodes.
  const std::vector<UnitNeed>& needs_across(ReplicaKind& kind, int count);
  const BestLinks& links(int type) const { return links_[type]; }
  // The most by which a unit's forward pass is shorter when it is computed twice, over its length.
  double saved_forward(const ReplicaKind& kind, int count) const;

 private:
  void list_links();
  Group best_group(int type, int members, bool across) const;
  Group best_expert_group(int type, int members) const;
  // One way to cut a unit that a plan may have.
  struct Way {
    bool sequence_parallel = false;
    bool across = false;
    int split = 0;
  };
  int splits_of(const ReplicaKind& kind) const {
    return kind.tensor > 1 ? space_.split_choices() : 1;
  }
  void merge(const ReplicaKind& kind, int count, const Way& way, std::vector<UnitNeed>& needs);
  void fill(const ReplicaKind& kind, int count, bool across, std::vector<UnitNeed>& needs);
  ReplicaShape shape_of(const ReplicaKind& kind, double samples, const Way& way) const;

  const CostEngine& engine_;
  const Space& space_;
  const UnitMixes& mixes_;
  std::vector<int> first_;  // by kind: a unit of it
  std::vector<int> counts_;
  std::vector<int> experts_;
  std::vector<ReplicaKind> kinds_;
  std::vector<BestLinks> links_;  // by device type
  struct Latency {
    Seconds inside{HUGE_VAL};
    Seconds between{HUGE_VAL};
    double inside_rate = 0;
  };
  std::vector<Latency> latencies_;  // the same
};

}  // namespace plait
