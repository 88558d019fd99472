#pragma once

#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace plait {

// Consecutive devices of a node.
struct NodePart {
  int kind = 0;   // of node
  int first = 0;  // device on it
  int count = 0;
  friend auto operator<=>(const NodePart&, const NodePart&) = default;
};

// All orders in which the hosts of a mix may be listed, as one graph: a node of it is a set of
// hosts that come first, with what they have of a stage that is not complete; an edge lists one
// host more and completes stages. Stages have consecutive devices, so that many orders share most
// of the graph. Example: of 10 hosts of one kind and 10 of another there are 184,756 orders; with
// stages of half a host the graph has 121 nodes.
class OrderGraph {
 public:
  struct Shape {
    std::vector<int> devices;  // of a host of each kind
    std::vector<int> mix;      // hosts of each kind
    int stage_devices = 1;
    // Of a stage's devices so many in a row belong together; in which order such groups come does
    // not matter.
    int group_devices = 1;
    std::size_t most_edges = 0;
    // Of all hosts that are listed; 0: of the whole mix. Else the mix says how many hosts there
    // are, and an order may leave some out.
    int all_devices = 0;
    // Kinds whose hosts an order may have more of than there are; none: no kind. They have prices.
    std::vector<bool> is_priced{};
  };
  // A stage on these devices, which is the s-th of the pipeline.
  struct Place {
    std::vector<NodePart> parts;
    int stage = 0;
    bool ends_host = false;  // its last device is the last one of a host
  };
  struct Edge {
    int from = 0;
    int to = 0;
    int kind = 0;             // of the host that it lists
    std::vector<int> places;  // of the stages that it completes
  };

  // Orders in which some stage `may` not be where it is are left out. Nothing where there would be
  // more edges than asked for, or no host to begin with.
  static std::optional<OrderGraph> of(const Shape& shape,
                                      const std::function<bool(const Place&)>& may);

  const std::vector<Place>& places() const { return places_; }
  // The least sum of `cost` over the stages of any order; infinite if there is none.
  double least(const std::vector<double>& cost) const;
  // The same with a price for each host, by kind, and how many hosts of each kind the order has.
  struct Priced {
    double least = 0;
    std::vector<int> hosts;
  };
  Priced least_priced(const std::vector<double>& cost, const std::vector<double>& prices) const;
  // The least sum over the stages before each place, and after it.
  std::vector<double> least_before(const std::vector<double>& cost) const;
  std::vector<double> least_after(const std::vector<double>& cost) const;

  // By what was placed so far, 0 to `most`: the least sum of something over the stages so far.
  using Placed = std::vector<double>;
  // The same after another stage: what it adds to each is up to the stage.
  using Advance = std::function<void(int place, const Placed& before, Placed& after)>;
  // The least sums over all stages of any order; infinite where there is none.
  Placed least_placed(int most, const Advance& advance) const;

 private:
  struct State {
    std::vector<int> listed;     // hosts of each kind that has no price
    std::vector<NodePart> open;  // of a stage
    friend auto operator<=>(const State&, const State&) = default;
  };
  void join_ends(const std::map<int, std::map<State, int>>& levels);
  std::vector<double> sums(const std::vector<double>& cost) const;
  static void sort_groups(int devices, std::vector<NodePart>& parts);
  int place_of(Place place, const std::function<bool(const Place&)>& may);

  std::vector<Place> places_;
  std::map<std::tuple<std::vector<NodePart>, int, bool>, int> known_;  // places; or -1
  std::vector<Edge> edges_;                                            // by `from`, ascending
  int states_ = 1;
  int kinds_ = 0;
  int last_ = -1;  // all hosts are listed, or as many devices as there should be
};

}  // namespace plait
