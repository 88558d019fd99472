#include "search/uniform/division/v_layers.h"

#include <algorithm>

namespace plait {

std::vector<int> layers_by_speed(int layers, const std::vector<double>& layer_times) {
  const int stages = static_cast<int>(layer_times.size());
  const int between = 2 * (stages - 1);
  if (layers < between) return {};
  std::vector<int> out(stages, 2);
  out.front() = std::min(2, layers - between);
  for (int left = layers - between - out.front(); left > 0; --left) {
    int best = 0;
    for (int s = 1; s < stages; ++s)
      if ((out[s] + 1) * layer_times[s] < (out[best] + 1) * layer_times[best]) best = s;
    ++out[best];
  }
  return out;
}

std::vector<std::vector<int>> halves_of_stages(const std::vector<int>& layers) {
  std::vector<std::vector<int>> out;
  if (layers.empty()) return out;
  for (const int more : {1, 0}) {
    std::vector<int>& chunks = out.emplace_back(2 * layers.size());
    for (std::size_t s = 0; s < layers.size(); ++s) {
      chunks[s] = (layers[s] + more) / 2;
      chunks[chunks.size() - 1 - s] = layers[s] - chunks[s];
    }
    if (std::ranges::none_of(layers, [](int n) { return n % 2 != 0; })) break;
  }
  return out;
}

}  // namespace plait
