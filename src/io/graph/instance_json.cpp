#include "io/graph/instance_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "io/format/json_writer.h"
#include "io/graph/instance_lists.h"

namespace plait {
namespace {

using solve::Amount;
using solve::Edge;
using solve::Instance;
using solve::kForbidden;
using solve::Node;

constexpr Amount kMostUsage = Amount{1} << 61;
constexpr std::int64_t kMostCombinations = std::int64_t{1} << 31;

class Builder {
 public:
  Builder(const std::string& path, const InstanceLists& lists) : path_(path), lists_(lists) {}

  Instance build() {
    instance_.name = lists_.name;
    instance_.usage_limit = lists_.usage_limit.value_or(kMostUsage);
    if (instance_.usage_limit > kMostUsage)
      throw InputError(where("usage_limit"), "is too large: more than 2^61");
    same_count("nodes/costs", lists_.node_costs, "nodes/intervals", lists_.intervals);
    same_count("nodes/usages", lists_.node_usages, "nodes/intervals", lists_.intervals);
    same_count("edges/costs", lists_.edge_costs, "edges/nodes", lists_.edge_nodes);
    for (std::size_t i = 0; i < lists_.intervals.count(); ++i) add_node(i);
    for (std::size_t i = 0; i < lists_.edge_nodes.count(); ++i) add_edge(i);
    return std::move(instance_);
  }

 private:
  std::string where(const std::string& place) const { return path_ + "#/problem/" + place; }
  std::string where(const std::string& list, std::size_t item) const {
    return where(fmt::format("{}/{}", list, item));
  }

  void same_count(const std::string& name, const NumberLists& list, const std::string& other_name,
                  const NumberLists& other) const {
    if (list.count() == other.count()) return;
    throw InputError(where(name), fmt::format("has {} lists, but {} has {}", list.count(),
                                              other_name, other.count()));
  }

  void pair_wanted(const std::string& list, std::size_t item, const NumberLists& lists) const {
    if (lists.size(item) != 2)
      throw InputError(where(list, item),
                       fmt::format("must have two numbers, has {}", lists.size(item)));
  }

  void add_node(std::size_t i) {
    pair_wanted("nodes/intervals", i, lists_.intervals);
    const std::span<const Amount> interval = lists_.intervals.at(i);
    const std::span<const Amount> costs = lists_.node_costs.at(i);
    const std::span<const Amount> usages = lists_.node_usages.at(i);
    if (costs.empty()) throw InputError(where("nodes/costs", i), "is empty: a node needs a choice");
    if (usages.size() != costs.size())
      throw InputError(
          where("nodes/usages", i),
          fmt::format("has {} numbers, but the node has {} costs", usages.size(), costs.size()));
    Node node{
        interval[0], interval[1], {costs.begin(), costs.end()}, {usages.begin(), usages.end()}};
    count_cost(node.cost, where("nodes/costs", i));
    const Amount most = *std::max_element(usages.begin(), usages.end());
    if (most > kMostUsage - usage_)
      throw InputError(where("nodes/usages", i), "makes the usages add up to more than 2^61");
    usage_ += most;
    instance_.nodes.push_back(std::move(node));
  }

  void add_edge(std::size_t i) {
    pair_wanted("edges/nodes", i, lists_.edge_nodes);
    const std::span<const Amount> ends = lists_.edge_nodes.at(i);
    for (const Amount end : ends)
      if (end >= static_cast<Amount>(instance_.nodes.size()))
        throw InputError(where("edges/nodes", i), fmt::format("names node {}, but there are {}",
                                                              end, instance_.nodes.size()));
    const auto rows = static_cast<std::int64_t>(instance_.nodes[ends[0]].cost.size());
    const auto columns = static_cast<std::int64_t>(instance_.nodes[ends[1]].cost.size());
    if (rows * columns > kMostCombinations)
      throw InputError(
          where("edges/nodes", i),
          fmt::format("joins nodes with {} and {} choices: more than 2^31 combinations", rows,
                      columns));
    const std::span<const Amount> costs = lists_.edge_costs.at(i);
    if (static_cast<std::int64_t>(costs.size()) != rows * columns)
      throw InputError(where("edges/costs", i),
                       fmt::format("must have {} numbers, {} choices times {}, has {}",
                                   rows * columns, rows, columns, costs.size()));
    Edge edge{static_cast<int>(ends[0]), static_cast<int>(ends[1]), {costs.begin(), costs.end()}};
    count_cost(edge.cost, where("edges/costs", i));
    instance_.edges.push_back(std::move(edge));
  }

  // Sums of costs must stay below the mark of what is not allowed.
  void count_cost(const std::vector<Amount>& costs, const std::string& place) {
    Amount most = 0;
    for (const Amount cost : costs)
      if (cost < kForbidden) most = std::max(most, cost);
    if (most >= kForbidden - cost_)
      throw InputError(place, "makes the costs add up to 10^18, which means not allowed");
    cost_ += most;
  }

  const std::string& path_;
  const InstanceLists& lists_;
  Instance instance_;
  Amount cost_ = 0;
  Amount usage_ = 0;
};

}  // namespace

Instance read_instance(const std::string& path) {
  const InstanceLists lists = read_instance_lists(path);
  return Builder(path, lists).build();
}

std::string solution_json(const Instance& instance, const solve::Solution& solution) {
  std::string choices;
  for (const int choice : solution.choices)
    choices += fmt::format("{}{}", choices.empty() ? "" : ", ", choice);
  JsonObject json;
  json.text("name", instance.name);
  json.json("cost", std::to_string(solution.cost));
  json.json("lower_bound", std::to_string(solution.lower_bound));
  json.number("gap", solution.gap());
  json.json("choices", "[" + choices + "]");
  return json.str() + "\n";
}

}  // namespace plait
