#include "graph/mesh/placement.h"

#include <algorithm>

namespace plait::graph {

AxisSet Placement::axes() const {
  AxisSet set = 0;
  for (int a = 0; a < kMostAxes; ++a)
    if (dim[a] >= 0) set |= 1U << a;
  return set;
}

std::vector<int> Placement::axes_of(int d) const {
  std::vector<int> found;
  for (int a = 0; a < kMostAxes; ++a)
    if (dim[a] == d) found.push_back(a);
  std::ranges::sort(found, {}, [&](int a) { return rank[a]; });
  return found;
}

Seconds time_of(const Mesh& mesh, const std::vector<Transfer>& all) {
  Seconds sum;
  for (const Transfer& transfer : all)
    sum += time_of(mesh, transfer.kind, transfer.axes, transfer.size);
  return sum;
}

std::string partition_spec(const Placement& placement, int rank, int axes) {
  std::vector<std::string> dims;
  for (int d = 0; d < rank; ++d) {
    std::string names;
    int count = 0;
    for (const int a : placement.axes_of(d)) {
      if (a >= axes) continue;
      names += (count++ > 0 ? ", '" : "'") + axis_name(a) + "'";
    }
    dims.push_back(count == 0 ? "None" : count == 1 ? names : "(" + names + ")");
  }
  while (!dims.empty() && dims.back() == "None") dims.pop_back();
  std::string out = "P(";
  for (std::size_t d = 0; d < dims.size(); ++d) out += (d > 0 ? ", " : "") + dims[d];
  return out + ")";
}

// Tiles: devices a dimension; the order of the mesh's axes in the tiles, unused axes last. Axes
// that follow each other in both orders are written as one.
std::string gspmd_sharding(const Mesh& mesh, const Placement& placement, int rank) {
  std::vector<int> order;
  std::string tiles;
  for (int d = 0; d < rank; ++d) {
    int product = 1;
    for (const int a : placement.axes_of(d)) {
      order.push_back(a);
      product *= mesh.sizes[a];
    }
    tiles += (d > 0 ? "," : "") + std::to_string(product);
  }
  int copies = 1;
  for (int a = 0; a < mesh.axes(); ++a) {
    if (placement.dim[a] >= 0) continue;
    order.push_back(a);
    copies *= mesh.sizes[a];
  }
  if (copies == mesh.devices()) return "{replicated}";
  if (copies > 1) tiles += "," + std::to_string(copies);
  std::erase_if(order, [&](int a) { return mesh.sizes[a] == 1; });
  // Runs of consecutive axes.
  std::vector<std::pair<int, int>> runs;  // first axis, size
  std::vector<int> last;
  for (const int a : order) {
    const bool joins =
        !last.empty() && std::ranges::none_of(mesh.sizes, [](int s) { return s == 1; })
            ? a == last.back() + 1
            : false;
    if (joins) {
      runs.back().second *= mesh.sizes[a];
      last.back() = a;
    } else {
      runs.emplace_back(a, mesh.sizes[a]);
      last.push_back(a);
    }
  }
  std::vector<std::pair<int, int>> sorted = runs;
  std::ranges::sort(sorted);
  std::string out = "{devices=[" + tiles + "]<=[";
  for (std::size_t i = 0; i < sorted.size(); ++i)
    out += (i > 0 ? "," : "") + std::to_string(sorted[i].second);
  out += "]";
  if (sorted != runs) {
    out += "T(";
    for (std::size_t i = 0; i < runs.size(); ++i)
      out +=
          (i > 0 ? "," : "") + std::to_string(std::ranges::find(sorted, runs[i]) - sorted.begin());
    out += ")";
  }
  return out + (copies > 1 ? " last_tile_dim_replicate}" : "}");
}

}  // namespace plait::graph
