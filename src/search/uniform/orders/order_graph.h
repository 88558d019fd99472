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
    bool parts_in_order = true;  // false: it does not matter in which order hosts have a stage
    std::size_t most_edges = 0;
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
    std::vector<int> places;  // of the stages that it completes
  };

  // Orders in which some stage `may` not be where it is are left out. Nothing where there would be
  // more edges than asked for, or no host to begin with.
  static std::optional<OrderGraph> of(const Shape& shape,
                                      const std::function<bool(const Place&)>& may);

  const std::vector<Place>& places() const { return places_; }
  // The least sum of `cost` over the stages of any order; infinite if there is none.
  double least(const std::vector<double>& cost) const;
  // The same over the stages before each place, and after it.
  std::vector<double> least_before(const std::vector<double>& cost) const;
  std::vector<double> least_after(const std::vector<double>& cost) const;

 private:
  struct State {
    std::vector<int> listed;     // hosts of each kind
    std::vector<NodePart> open;  // of a stage
    friend auto operator<=>(const State&, const State&) = default;
  };
  std::vector<double> sums(const std::vector<double>& cost) const;
  int place_of(Place place, const std::function<bool(const Place&)>& may);

  std::vector<Place> places_;
  std::map<std::tuple<std::vector<NodePart>, int, bool>, int> known_;  // places; or -1
  std::vector<Edge> edges_;                                            // by `from`, ascending
  int states_ = 1;
  int last_ = -1;  // all hosts are listed
};

}  // namespace plait
