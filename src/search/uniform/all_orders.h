#pragma once

#include <optional>
#include <vector>

#include "search/uniform/placed_stages.h"
#include "search/uniform/stage_rooms.h"

namespace plait {

// What a bound in all orders of hosts may take.
struct OrderWork {
  std::size_t most_edges = 0;       // of the graph
  std::size_t most_signatures = 0;  // stages that cost differently
  bool places_layers = false;       // stage by stage, which takes ten times as long
  bool counts_hosts = true;         // else they have prices in any case
};
constexpr OrderWork kUsualOrderWork{4'000, 200};
constexpr OrderWork kThoroughOrderWork{20'000, 800, true};

// What no plan of a layout undercuts, in whatever order its hosts are listed and however its layers
// are divided: of all orders at once, where they are too many to look at one by one.
//
// In a step of T seconds a stage has room for so many layers: those that fit in memory, and with
// which no path through the stage (most_layers() has them) and no work of its nodes' network takes
// longer than T. Which nodes a stage
// is on, and so what a layer takes there, depends on the order; the most room that the stages of an
// order have together is a longest path in a graph of all orders (OrderGraph). If that is less than
// the model has layers, no step takes T.
//
// The round trip R of a micro-batch is bounded by the same graph: with any price u of a layer, and
// stages that have from a_s to b_s layers of x_s,
//   R >= layers u + least sum over an order's stages of (ends + sends + min over n of n (x_s - u)),
// which is the Lagrangian of the sum with all layers placed. What the stages before a stage take
// follows from the layers that the others have no room for. Less room makes paths longer, and
// longer ones leave less room, until neither gains. Of layers of one kind, what the stages before a
// stage take is known by how many layers they have: the least of it over all orders and divisions
// is a shortest path through the graph, and how many layers a stage has room for depends on it.
//
// Of a family of layouts (UniformLayout::of_any_nodes) orders may leave hosts out. Where the graph
// would be too large, it does not count hosts: an order may have more of a kind than there are, and
// hosts have prices (have_room()).
class AllOrders {
 public:
  AllOrders(const UniformGround& ground, const UniformLayout& layout, const Space& space,
            const OrderWork& work);

  // Whether no plan of the layout takes less than so long, as far as is known.
  bool closes(Seconds step);
  // After it was asked that: nothing of the layout is faster than this, or than what was asked for.
  Seconds bound();
  // Whether that told anything: it is not asked for where no plan is known.
  bool is_known() const { return !layers_ || asked_ > 0; }
  // Whether some stage could have more layers, or some at all, if it had more memory.
  bool lacks_memory() const { return rooms_.lack_memory(); }

 private:
  using StageAt = PlacedStages::StageAt;
  using Around = StageRooms::Around;
  using Limits = StageRooms::Limits;
  // What no order undercuts.
  struct RoundTrip {
    double all = 0;
    double layers = 0;   // of that, what layers take
    double forward = 0;  // of that, the forward pass
    double sends = 0;    // one way from the first stage to the last
  };

  bool set_graph(double step);
  bool may_be(const OrderGraph::Place& place, double step);
  bool is_possible(double step);
  bool have_room(const std::vector<double>& most);
  struct Known {
    const std::vector<Around>& others;  // by place
    const std::vector<double>& most;    // layers
  };
  bool finds_room(Limits limits, const Known& known, int first_least, int first_most);
  bool places_all(const Limits& limits, const Known& known, int first_least, int first_most);
  double least_finish(const std::vector<double>& most, double fewest) const;
  // Over all orders, with all layers placed: the least sum of what layers take and of what else is.
  double least_sum(const std::vector<double>& most, const std::vector<double>& of_layer,
                   const std::vector<double>& beside) const;
  RoundTrip least_trip(const std::vector<double>& most) const;
  double whole_trips(const RoundTrip& trip) const;
  double in_chunks_of(double layers, int stages) const;
  std::vector<Around> around(const std::vector<double>& most) const;

  const UniformGround& ground_;
  const UniformLayout& layout_;
  double micro_batches_;
  PlacedStages placed_;
  StageRooms rooms_;
  const std::optional<LayersByKind>& layers_;
  OrderWork work_;
  std::vector<StageAt> stages_;  // by place of the graph
  std::optional<OrderGraph> graph_;
  std::vector<double> prices_;  // of a host, by kind, in layers; none where hosts are counted
  double asked_ = 0;            // untied
  bool gives_up_ = false;
};

}  // namespace plait
