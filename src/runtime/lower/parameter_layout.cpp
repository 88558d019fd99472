#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "runtime/lower/layout.h"

namespace plait::runtime {
namespace {

// All values of one parameter: who holds which rows.
struct Holders {
  Parameter parameter;
  int first_op = 0;                                    // that uses it: backward passes end there
  std::map<std::pair<int, int>, std::set<int>> ranks;  // by (tensor, t)
};

std::int64_t row_size(const Parameter& parameter) {
  return static_cast<std::int64_t>(parameter.size()) / parameter.shape[0];
}

// Cut along the first dimension, a parameter falls apart into rows; else a shard is one piece.
bool by_rows(const Parameter& parameter) { return parameter.dim == 0; }

std::vector<Interval> pieces_of(const Parameter& parameter, int tensor, int t) {
  if (parameter.dim < 0) return {{0, 1}};
  std::vector<Interval> ranges = shard_of(parameter.parts, tensor, t);
  if (!by_rows(parameter)) ranges.resize(1);
  return ranges;
}

std::vector<std::int64_t> shard_shape(const Parameter& parameter, int tensor, int t) {
  std::vector<std::int64_t> shape = parameter.shape;
  if (parameter.dim < 0) return shape;
  shape[parameter.dim] = 0;
  for (const Interval& range : shard_of(parameter.parts, tensor, t))
    shape[parameter.dim] += range.size();
  return shape;
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t out = 1;
  for (const std::int64_t n : shape) out *= n;
  return out;
}

std::map<std::string, Holders> all_holders(const Layout& layout, const ExecProgram& program) {
  std::map<std::string, Holders> all;
  for (const SpanPlace& span : layout.spans)
    for (int i = span.begin; i < span.end; ++i)
      for (const Parameter& parameter : program.ops[i].parameters) {
        Holders& holders = all[parameter.name];
        if (holders.ranks.empty()) {
          holders.parameter = parameter;
          holders.first_op = i;
        }
        for (std::size_t place = 0; place < span.ranks.size(); ++place)
          holders.ranks[{span.tensor, static_cast<int>(place) % span.tensor}].insert(
              span.ranks[place]);
      }
  return all;
}

// The finest pieces, with the ranks that hold each.
std::map<std::pair<std::int64_t, std::int64_t>, std::set<int>> pieces_of(const Holders& holders) {
  std::set<std::int64_t> edges;
  for (const auto& [shard, ranks] : holders.ranks)
    for (const Interval& piece : pieces_of(holders.parameter, shard.first, shard.second)) {
      edges.insert(piece.begin);
      edges.insert(piece.end);
    }
  std::map<std::pair<std::int64_t, std::int64_t>, std::set<int>> pieces;
  for (const auto& [shard, ranks] : holders.ranks)
    for (const Interval& piece : pieces_of(holders.parameter, shard.first, shard.second))
      for (auto edge = edges.find(piece.begin); edge != edges.end() && *edge < piece.end; ++edge)
        pieces[{*edge, *std::next(edge)}].insert(ranks.begin(), ranks.end());
  return pieces;
}

double gradient_weight(const Parameter& parameter, int tensor, bool sequence_parallel) {
  if (parameter.dim >= 0 || parameter.gradient == GradientOf::part) return 1;
  if (parameter.gradient == GradientOf::positions && sequence_parallel) return 1;
  return 1.0 / tensor;
}

}  // namespace

std::int64_t LocalTensor::size() const { return product(shape); }

ParameterLayout parameter_layout(const Layout& layout, const ExecProgram& program, int rank) {
  ParameterLayout out;
  std::map<std::vector<int>, int> group_of;
  std::vector<Holders> in_order;
  for (auto& [name, holders] : all_holders(layout, program)) in_order.push_back(std::move(holders));
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const Holders& a, const Holders& b) { return a.first_op < b.first_op; });
  for (const Holders& holders : in_order) {
    const std::string& name = holders.parameter.name;
    const Parameter& parameter = out.all[name] = holders.parameter;
    std::map<std::pair<std::int64_t, std::int64_t>, std::pair<int, std::int64_t>> at;
    for (const auto& [rows, ranks] : pieces_of(holders)) {
      const std::vector<int> members(ranks.begin(), ranks.end());
      const auto [found, added] = group_of.emplace(members, static_cast<int>(out.groups.size()));
      if (added) out.groups.push_back({.ranks = members});
      ParameterGroup& group = out.groups[found->second];
      SharedRange range{.name = name, .rows = {rows.first, rows.second}, .offset = group.size};
      for (const auto& [shard, holder_ranks] : holders.ranks)
        if (holder_ranks.contains(members[0]) &&
            pieces_of(parameter, shard.first, shard.second)[0] == range.rows) {
          range.tensor = shard.first;
          range.t = shard.second;
        }
      range.count = by_rows(parameter) ? (rows.second - rows.first) * row_size(parameter)
                                       : product(shard_shape(parameter, range.tensor, range.t));
      at[rows] = {found->second, group.size};
      group.size += range.count;
      group.ranges.push_back(std::move(range));
    }
    for (const auto& [shard, ranks] : holders.ranks) {
      if (!ranks.contains(rank)) continue;
      LocalTensor local{.parameter = parameter, .tensor = shard.first, .t = shard.second};
      local.shape = shard_shape(parameter, shard.first, shard.second);
      local.weight = gradient_weight(parameter, shard.first, layout.sequence_parallel);
      std::int64_t offset = 0;
      for (const Interval& piece : pieces_of(parameter, shard.first, shard.second))
        for (const auto& [rows, place] : at) {
          if (rows.first < piece.begin || rows.second > piece.end) continue;
          const std::int64_t count =
              by_rows(parameter) ? (rows.second - rows.first) * row_size(parameter) : local.size();
          local.segments.push_back({.group = place.first,
                                    .group_offset = place.second,
                                    .offset = offset,
                                    .count = count});
          offset += count;
        }
      PLAIT_CHECK(offset == local.size());
      out.mine.push_back(std::move(local));
    }
  }
  return out;
}

}  // namespace plait::runtime
