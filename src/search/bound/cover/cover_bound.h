#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cost/framework/framework.h"
#include "search/bound/cover/replica_needs.h"
#include "search/bound/cover/unit_mixes.h"
#include "search/space/space.h"

namespace plait {

// A lower bound on the step of every plan: of any schedule, any device order, any mix of types in a
// stage and any shares of its replicas; docs/planners.md#bounds derives it.
//
// In a step of Y seconds with m micro-batches of M samples, a stage of some units is a set of
// replicas that together do M samples, and none of them can do more samples than
//   cap = most b with  m x(b) + what the sum of gradients adds + optimizer <= Y
// where x(b) is the least that the replica's devices need for the units, with as much recompute as
// memory forces. So with a price on the devices of each type, a stage costs at least what the
// cheapest set of replicas with these caps does, and a plan at least what the cheapest partition of
// the units into stages does. If that is more than all devices cost, no plan takes Y seconds or
// less.
class CoverBound {
 public:
  // False if the model has too many kinds of units to compute the bound in a useful time.
  static bool is_usable(const Model& model);
  CoverBound(const CostEngine& engine, const Space& space);

  struct Range {
    Seconds least;  // known to be a bound
    Seconds most;   // of a plan that is known
  };
  struct Work {
    bool fine = true;             // look closely at plans of few micro-batches
    double questions = HUGE_VAL;  // to replicas, most, for each expert degree
    double precision = 0.002;     // of the bound
    double of_gap = 0.03;         // of what is not proven, what is not worth asking for
  };
  // Whether plans with this number of micro-batches may take this long, by what else is known.
  using MayTake = std::function<bool(int micro_batches, Seconds step)>;
  // A lower bound on the step of every plan, from the range.
  Seconds step(Range range, const Work& work, const MayTake& may_take,
               const std::function<bool()>& stop);

 private:
  static constexpr double kRounding = 1e-9;
  // How the copies of a stage's weights keep in step.
  enum class Sync { alone, near, far };  // one replica; inside a node; over the network
  struct Mode {
    int row = 0;  // of modes_of()
    Sync sync = Sync::alone;
    bool cuts_weights = false;  // ZeRO-3
    // Over the network: rings of one stage that share an adapter, relative to its tensor degree;
    // less than all do so only if as many tensor groups extend over several nodes.
    double sharing = 1;
    double across = 0;
  };
  // Where a stage stands among the others; docs/planners.md#bounds. Both count from the outside.
  struct Place {
    int delay = 0;  // of delays_: its backward work ends in that part of the step
    int depth = 0;  // of depths_: it holds more micro-batches than that
  };
  // Replicas of one cut that a stage may be made of, in one mode and place.
  struct Offer {
    int devices = 1;           // of a replica
    int fewest = 1;            // replicas
    std::vector<double> caps;  // samples, by device type; 0 = it cannot be one of them
    std::vector<double> need;  // of what all stages share beside the devices
  };
  // What a stage takes of the devices of each type, and of what else all stages share.
  struct Cover {
    double cost = HUGE_VAL;
    std::vector<double> used;
    int counts_left = 0;  // that may be tried for it
  };
  // What is asked of a replica.
  struct Question {
    int mix = 0;
    Mode mode;
    Place place;
    int replicas = 1;     // at least this many
    bool across = false;  // its tensor group extends over several nodes
  };
  // What recompute does to a replica of some units: the least time that memory allows, whichever
  // units are computed twice.
  struct Passes {
    bool fits = true;
    double total = 0;
    double backward = 0;  // of that, at least
  };

  // What a plan has everywhere.
  struct Setting {
    int micro_batches = 1;
    int expert = 1;  // degree
  };
  // No plan with this setting takes this long or less; false where it is not known, or the time is
  // up.
  bool refutes(const Setting& setting, double step);
  void set_places();
  void set_sends();
  std::vector<Mode> modes_of(int tensor) const;
  void list_offers(int mix);
  void list_depths(Question question, std::span<ReplicaKind*> kinds);
  // The caps of what it adds; empty when there is nothing.
  std::vector<double> add_offers(Question question, std::span<ReplicaKind*> kinds);
  // The same with this number of replicas and more, as long as more replicas shorten the way.
  void add_levels(const Question& question, std::span<ReplicaKind*> kinds, Offer offer, int most);
  void drop_dominated(std::vector<Offer>& offers) const;
  // Most samples of a micro-batch that such a replica can do, in the mean over those of its stage;
  // by device type.
  std::vector<double> caps_of(const Question& question, std::span<ReplicaKind*> kinds);
  // Of the replicas of a stage, the part whose tensor groups extend over several nodes at least.
  double least_across(const Question& question, const ReplicaKind& kind) const;
  int whole_cap(const Question& question, ReplicaKind& kind);
  // Of a question with this mix, whatever the number of replicas.
  std::uint64_t key_of(int mix, const Question& question, const ReplicaKind& kind);
  bool is_possible(const Question& question, ReplicaKind& kind, int count);
  // Seconds that the sum of a byte of gradients, or gathering one, takes at least; of what all
  // replicas have, and of experts.
  struct OfByte {
    double plain = 0;
    double experts = 0;
    double of(double parameters, double expert_parameters) const {
      return plain * parameters + experts * expert_parameters;
    }
  };
  OfByte of_byte(const ReplicaKind& kind, const Question& question) const;
  double of_plain_byte(const ReplicaKind& kind, const Question& question) const;
  // Bytes of a replica beyond what the device has when nothing is computed twice, but room is left
  // for units that are: `again`.
  double overflow(const Question& question, const ReplicaKind& kind,
                  const std::vector<UnitNeed>& needs, double again = 0) const;
  int live(const Question& question) const;
  // `byte`: what gathering one takes; nothing where weights are not cut.
  Passes passes(const Question& question, const ReplicaKind& kind,
                const std::vector<UnitNeed>& needs, const OfByte& byte) const;
  // Lower bound on the seconds through a stage whose mean replica has this number of samples.
  struct Way {
    double path = HUGE_VAL;
    double forward = HUGE_VAL;
  };
  Way way_through(const Question& question, std::span<ReplicaKind*> kinds, const Offer& offer,
                  int count);
  double least_backward(int mix, const ReplicaKind& kind);
  std::vector<double> nodes_filled(const Question& question, std::span<ReplicaKind*> kinds,
                                   const Offer& offer);
  void cheapest(const Offer& offer, std::span<const double> price, Cover& best) const;
  void cover(const Offer& offer, std::span<const double> price, std::size_t type, double left,
             double spent, std::vector<int>& counts, Cover& best) const;
  int replicas_for(double samples, double cap) const;
  // True when all devices and the time are too little, at these prices; else what it takes of each,
  // nothing where the time is up.
  bool too_dear(std::span<const double> price, std::vector<double>& used);
  std::vector<double> first_prices();

  const Problem& problem_;
  const Space& space_;
  UnitMixes mixes_;
  ReplicaNeeds needs_;
  FrameworkTraits traits_;
  StateBytes state_;
  StateBytes cut_state_;   // under ZeRO-3
  double traffic_ = 0;     // of the optimizer, bytes a parameter
  bool measured_ = false;  // optimizer steps may be
  bool cuts_optimizer_ = true;
  bool cuts_gradients_ = false;
  bool may_cut_weights_ = false;  // in a plan of one stage
  double kept_optimizer_ = 1;     // part of its state that is on the device
  bool always_cuts_weights_ = false;
  std::vector<int> devices_;                     // by type
  std::vector<std::vector<ReplicaKind*>> cuts_;  // kinds of the same degrees

  std::function<bool()> stop_ = [] { return false; };
  // Of the question that is being asked.
  int m_ = 1;
  int expert_ = 1;
  int samples_ = 1;  // of a micro-batch
  double step_ = 0;
  std::vector<double> delays_;  // parts of the step, ascending
  std::vector<int> depths_;     // numbers of stages, descending
  bool needs_way_ = false;      // the way through all stages may be too long
  bool fine_ = true;
  double questions_ = 0;                    // that may still be asked
  double send_ = 0;                         // to another node, seconds
  int crossings_ = 0;                       // most hand-overs to another node
  std::vector<double> limits_;              // devices of each type, seconds of the way, ..
  std::vector<std::vector<Offer>> offers_;  // by mix
  std::unordered_map<std::uint64_t, int>
      caps_;  // positions in counts() of caps, of the fewest replicas
};

}  // namespace plait
