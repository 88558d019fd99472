#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plait {

// Lists of numbers, one after another: [[1, 2], [3]].
struct NumberLists {
  std::vector<std::int64_t> numbers;
  std::vector<std::size_t> ends;
  std::size_t count() const { return ends.size(); }
  std::size_t begin(std::size_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  std::size_t size(std::size_t i) const { return ends[i] - begin(i); }
  std::span<const std::int64_t> at(std::size_t i) const {
    return std::span(numbers).subspan(begin(i), size(i));
  }
};

// What an instance file says, before anything is compared with anything else. No number is
// negative.
struct InstanceLists {
  std::string name;
  std::optional<std::int64_t> usage_limit;
  NumberLists intervals, node_costs, node_usages, edge_nodes, edge_costs;
};

InstanceLists read_instance_lists(const std::string& path);

}  // namespace plait
