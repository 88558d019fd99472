#include "graph/search/carried.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/error.h"
#include "graph/hlo/attributes.h"

namespace plait::graph {
namespace {

// The texts of {{...}, {...}}, one a leaf; of {...} itself where it is not a list.
std::vector<std::string> leaves_of(const std::string& text) {
  std::vector<std::string> leaves;
  if (!text.starts_with("{{")) return {text};
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && ++depth == 2) from = i;
    if (text[i] == '}' && depth-- == 2) leaves.push_back(text.substr(from, i + 1 - from));
  }
  return leaves.empty() ? std::vector<std::string>{text} : leaves;
}

// 0 where one of them is not positive.
double tiles_of(const std::vector<std::int64_t>& all) {
  double product = 1;
  for (const std::int64_t n : all) product *= static_cast<double>(std::max<std::int64_t>(n, 0));
  return product;
}

// The integers between the brackets that begin at `at`; `at` moves behind them.
std::optional<std::vector<std::int64_t>> bracketed(const std::string& text, std::size_t& at,
                                                   char open, char close) {
  if (at >= text.size() || text[at] != open) return std::nullopt;
  const std::size_t end = text.find(close, at);
  if (end == std::string::npos) return std::nullopt;
  const auto all = integers_in(std::string_view(text).substr(at + 1, end - at - 1));
  at = end + 1;
  return all;
}

// 0 .. n-1 as an array of `dims`, its dimensions permuted.
std::vector<int> in_order(const std::vector<std::int64_t>& dims,
                          const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> stride(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) stride[d - 1] = stride[d] * dims[d];
  std::vector<int> made;
  const std::function<void(std::size_t, std::int64_t)> visit = [&](std::size_t d, std::int64_t at) {
    if (d == order.size()) {
      made.push_back(static_cast<int>(at));
      return;
    }
    const auto dim = static_cast<std::size_t>(order[d]);
    for (std::int64_t i = 0; i < dims[dim]; ++i) visit(d + 1, at + i * stride[dim]);
  };
  visit(0, 0);
  return made;
}

// "<=[2,4]T(1,0)" or "0,2,1,3": the devices in the order of the tiles.
std::optional<std::vector<int>> devices_in(const std::string& text, std::size_t at, int devices) {
  if (text.compare(at, 2, "<=") != 0) {
    std::vector<int> made;
    const std::size_t end = std::min(text.find(' ', at), text.find('}', at));
    for (const std::int64_t d : integers_in(std::string_view(text).substr(at, end - at)))
      made.push_back(static_cast<int>(std::min<std::int64_t>(d, devices)));
    return made;
  }
  at += 2;
  const auto dims = bracketed(text, at, '[', ']');
  if (!dims || dims->empty() || dims->size() > 8 || tiles_of(*dims) != devices) return std::nullopt;
  std::vector<std::int64_t> order(dims->size());
  std::iota(order.begin(), order.end(), 0);
  if (at < text.size() && text[at] == 'T') {
    const auto given = bracketed(text, ++at, '(', ')');
    if (!given || !std::is_permutation(order.begin(), order.end(), given->begin(), given->end()))
      return std::nullopt;
    order = *given;
  }
  return in_order(*dims, order);
}

// The tiles of a placement, as of its text.
Tiles tiles_of(const Mesh& mesh, const Placement& placement, int rank) {
  return *read_sharding(gspmd_sharding(mesh, placement, rank), rank, mesh.devices());
}

// The copies of a tile may stand in any order.
bool same(Tiles a, Tiles b) {
  if (a.counts != b.counts || a.devices.size() != b.devices.size()) return false;
  const auto copies =
      static_cast<std::ptrdiff_t>(static_cast<double>(a.devices.size()) / tiles_of(a.counts));
  for (Tiles* tiles : {&a, &b})
    for (auto at = tiles->devices.begin(); at != tiles->devices.end(); at += copies)
      std::sort(at, at + copies);
  return a.devices == b.devices;
}

// All placements of the mesh's axes on `rank` dimensions, in all orders.
void each_placement(const Mesh& mesh, int rank,
                    const std::function<void(const Placement&)>& visit) {
  std::vector<int> axes(mesh.sizes.size());
  std::iota(axes.begin(), axes.end(), 0);
  do {
    std::vector<int> dim(axes.size(), -1);
    for (;;) {
      Placement placement;
      std::vector<std::int8_t> next(static_cast<std::size_t>(rank), 0);
      for (const int a : axes) {
        placement.dim[a] = static_cast<std::int8_t>(dim[a]);
        placement.rank[a] = dim[a] < 0 ? std::int8_t{0} : next[dim[a]]++;
      }
      visit(placement);
      std::size_t at = 0;
      while (at < dim.size() && ++dim[at] == rank) dim[at++] = -1;
      if (at == dim.size()) break;
    }
  } while (std::ranges::next_permutation(axes).found);
}

std::optional<Placement> find_placement(const Mesh& mesh, const Tiles& tiles, int rank) {
  std::optional<Placement> found;
  each_placement(mesh, rank, [&](const Placement& placement) {
    if (!found && same(tiles_of(mesh, placement, rank), tiles)) found = placement;
  });
  return found;
}

}  // namespace

std::vector<CarriedSharding> carried_shardings(const Program& program) {
  std::vector<CarriedSharding> all;
  for (const Node& node : program.nodes) {
    const bool marks = node.is("custom-call") && custom_call_target(*node.source) == "Sharding";
    if (node.kind != NodeKind::argument && !marks) continue;
    const std::string* text = node.source->attribute("sharding");
    const int value = node.outputs.front();
    if (text == nullptr || program.values[value].dims().empty()) continue;
    // The leaves of a parameter that is a tuple are arguments one after the other.
    const std::vector<std::string> leaves = leaves_of(*text);
    std::size_t leaf = 0;
    for (int a = node.argument - 1;
         a >= 0 && program.nodes[program.arguments[a]].source == node.source; --a)
      ++leaf;
    all.push_back({value, leaves.size() > leaf ? leaves[leaf] : leaves.front(),
                   program.module->place(*node.source)});
  }
  return all;
}

std::optional<Tiles> read_sharding(const std::string& text, int rank, int devices) {
  Tiles made;
  if (text == "{replicated}") {
    made.counts.assign(static_cast<std::size_t>(rank), 1);
    made.devices.resize(static_cast<std::size_t>(devices));
    std::iota(made.devices.begin(), made.devices.end(), 0);
    return made;
  }
  constexpr std::string_view kHead = "{devices=";
  if (!text.starts_with(kHead)) return std::nullopt;
  std::size_t at = kHead.size();
  const auto counts = bracketed(text, at, '[', ']');
  const bool copies = text.find("last_tile_dim_replicate") != std::string::npos ||
                      text.find("last_tile_dims={replicated}") != std::string::npos;
  if (!counts || tiles_of(*counts) != devices ||
      static_cast<int>(counts->size()) != rank + (copies ? 1 : 0))
    return std::nullopt;
  const auto order = devices_in(text, at, devices);
  if (!order || static_cast<int>(order->size()) != devices) return std::nullopt;
  made.counts.assign(counts->begin(), counts->begin() + rank);
  made.devices = *order;
  return made;
}

std::vector<std::optional<Placement>> kept_shardings(const Program& program, const Mesh& mesh) {
  std::vector<std::optional<Placement>> kept(program.values.size());
  std::map<std::pair<std::string, int>, std::optional<Placement>> known;
  for (const CarriedSharding& carried : carried_shardings(program)) {
    const auto& dims = program.values[carried.value].dims();
    const int rank = static_cast<int>(dims.size());
    const auto tiles = read_sharding(carried.text, rank, mesh.devices());
    const auto [it, fresh] = known.try_emplace({carried.text, rank});
    if (fresh && tiles) it->second = find_placement(mesh, *tiles, rank);
    const std::optional<Placement>& placement = it->second;
    bool divides = placement.has_value();
    for (int d = 0; divides && d < rank; ++d) divides = dims[d] % tiles->counts[d] == 0;
    if (!divides)
      throw InputError(carried.where,
                       "sharding=" + carried.text + " cannot be kept on a mesh of " +
                           text_of(mesh.sizes) +
                           ": no even division of the array by its axes is the same");
    kept[carried.value] = placement;
  }
  return kept;
}

}  // namespace plait::graph
