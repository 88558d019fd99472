#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/layers.h"
#include "search/uniform/layouts/uniform_layouts.h"
#include "search/uniform/layouts/whole_layers.h"

namespace plait {

// Experts that are spread over more devices than a node of this kind has may stand on larger nodes
// of other kinds, which exchange less over the network: what they exchange is not known then.
ReplicaCut UniformLayouts::cut_of(const UniformLayout& layout, int kind, const NodeMix& mix) const {
  const bool cuts_weights =
      layout.settings.zero == ZeroStage::parameters ||
      (layout.settings.zero == ZeroStage::gradients && problem_.job.framework.fully_sharded);
  const bool enough = kinds_[kind].count() * kinds_[kind].devices() >= layout.stage_devices();
  const int own = kinds_[kind].devices();
  bool has_larger = false;
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    has_larger = has_larger || (mix[k] > 0 && kinds_[k].devices() > own);
  const bool is_apart = has_larger && layout.tensor * layout.settings.expert > own;
  const bool depends = (layout.settings.expert > 1 || cuts_weights) && enough && !is_apart;
  return {.kind = kind,
          .tensor = layout.tensor,
          .context = layout.settings.context,
          .expert = depends ? layout.settings.expert : 1,
          .data = depends ? layout.data : 1,
          .micro_batch = problem_.job.global_batch / (layout.settings.micro_batches * layout.data),
          .sequence_parallel = layout.settings.sequence_parallel,
          .zero = cuts_weights && depends ? layout.settings.zero : ZeroStage::off,
          .recompute = layout.recompute};
}

// Stages have consecutive devices. Where all nodes have as many, and a stage has some nodes or a
// part of one, the nodes of a kind are taken as they come. Else a stage that is larger than any
// node crosses the network, and no ring through a node of this kind is faster than its adapter,
// shared by the rings of a tensor group. A stage that has no room on the nodes of a kind has nodes
// of other kinds too, and more copies.
ReplicaCopies UniformLayouts::copies_of(const UniformLayout& layout, int kind,
                                        const NodeMix& mix) const {
  const int replica = layout.tensor * layout.settings.context;
  const int on_node = kinds_[kind].devices();
  const int size = layout.stage_devices();
  bool in_order = on_node % size == 0 || size % on_node == 0;
  int largest = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (mix[k] == 0) continue;
    in_order = in_order && kinds_[k].devices() == on_node;
    largest = std::max(largest, kinds_[k].devices());
  }
  bool is_known = in_order || (size > largest && layout.tensor <= on_node);
  const int most = mix[kind] * on_node / replica;
  // Of any nodes it is not known how many of this kind there are.
  const bool enough = most >= layout.data && (!layout.of_any_nodes || size <= on_node);
  if (!enough && (layout.settings.expert > 1 || problem_.job.zero_group > 0)) is_known = false;
  ReplicaCopies out{.kind = kind,
                    .tensor = layout.tensor,
                    .context = layout.settings.context,
                    .expert = layout.settings.expert,
                    .data = is_known ? std::min(most, layout.data) : 0,
                    .sequence_parallel = layout.settings.sequence_parallel,
                    .zero = layout.settings.zero};
  out.network_only = !in_order;
  if (out.zero != ZeroStage::off) out.of_update = 1.0 * out.data / layout.data;
  return out;
}

// All micro-batches and what follows them. Of the sum of gradients G, what is not hidden behind the
// backward pass of one micro-batch, b, counts: max(e G, G - (1 - e) b), and of the gathering of
// weights the same with the forward pass. Both sides are sums over units, and either holds; the one
// that is larger for the whole model is taken. Of a stage of several kinds of node, where passes
// are those of the slowest, gradients and weights hide behind all of it together.
std::vector<double> UniformLayouts::step_times(const UniformLayout& layout, int kind,
                                               const NodeMix& mix, bool alone) const {
  const ModelTime& time = times_.at(cut_of(layout, kind, mix));
  const FinishTimes& finish = times_.at(copies_of(layout, kind, mix));
  const double m = layout.settings.micro_batches;
  const double hidden = 1 - data_exposed_;
  const auto sum = [](const std::vector<double>& parts) {
    return std::accumulate(parts.begin(), parts.end(), 0.0);
  };
  const double forward = sum(time.forward);
  const double gradients = sum(finish.gradients);
  const double weights = sum(finish.weights);
  const bool both = gradients + weights > time.total;
  const bool sums = alone ? gradients > time.total - forward : both;
  const bool gathers = alone ? weights > forward : both;
  std::vector<double> out;
  for (std::size_t u = 0; u < time.by_unit.size(); ++u) {
    const double f = time.forward[u];
    const double b = time.by_unit[u] - f;
    const double g = finish.gradients[u];
    const double w = finish.weights[u];
    out.push_back(m * time.by_unit[u] + finish.update[u] +
                  (sums ? g - hidden * b : data_exposed_ * g) +
                  (gathers ? w - hidden * f : data_exposed_ * w));
  }
  return out;
}

// With X_k what the whole model takes of a step on a stage of nodes of kind k, and w_u the least
// part of it that unit u has on any kind, stages that take x_s have done the model when
// sum x_s / X_k(s) is at least W = sum w_u; so a step takes W / sum 1 / X_k(s) at least. Under
// 1F1B and GPipe the first micro-batch has to pass all stages as well (closed_form in
// cost/pipeline/simulator.h): with X_k of one micro-batch, c_s = m - k_s + (k_s - 1) / 2 and
// k_s = min(m, p - s),
//   sum of the round trip + W / sum over s of 1 / (c_s X_k(s)).
// That sum is largest with the fastest kinds on the stages of the least c_s, the first ones; and as
// many stages at most have no kind that is slower than the k-th as find room on the first k.
Seconds UniformLayouts::bound_of(const UniformLayout& layout, const NodeMix& mix,
                                 Seconds limit) const {
  std::vector<const ModelTime*> used;
  std::vector<std::vector<double>> steps;
  std::vector<double> whole;  // sums of steps
  const auto kinds = std::ranges::count_if(mix, [](int nodes) { return nodes > 0; });
  std::vector<double> devices;
  double fastest = HUGE_VAL;
  std::vector<std::pair<double, double>> speeds;  // of each kind: a whole model, devices
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (mix[k] == 0) continue;
    used.push_back(&times_.at(cut_of(layout, static_cast<int>(k), mix)));
    steps.push_back(step_times(layout, static_cast<int>(k), mix, kinds == 1));
    whole.push_back(std::accumulate(steps.back().begin(), steps.back().end(), 0.0));
    fastest = std::min(fastest, used.back()->total);
    devices.push_back(1.0 * mix[k] * kinds_[k].devices());
    speeds.emplace_back(used.back()->total, devices.back());
  }
  // Models that all stages do together in a second: the devices that do most, where some may rest.
  const auto rate_of = [&](const auto& time_on) {
    std::vector<std::pair<double, double>> own;  // a whole model, devices
    for (std::size_t i = 0; i < used.size(); ++i) own.emplace_back(time_on(i), devices[i]);
    std::ranges::stable_sort(own, {}, &std::pair<double, double>::first);
    double left = layout.devices();
    double sum = 0;
    for (const auto& [time, count] : own) {
      sum += std::min(left, count) / layout.stage_devices() / time;
      left -= std::min(left, count);
    }
    return sum;
  };
  const double rate = rate_of([&](std::size_t i) { return used[i]->total; });
  const double per_step = rate_of([&](std::size_t i) { return whole[i]; });
  double work = 1;
  double step = 1;
  double round_trip = fastest;
  if (used.size() > 1) {
    work = round_trip = step = 0;
    for (std::size_t u = 0; u < used.front()->by_unit.size(); ++u) {
      double part = HUGE_VAL;
      double part_of_step = HUGE_VAL;
      double least = HUGE_VAL;
      for (std::size_t i = 0; i < used.size(); ++i) {
        part = std::min(part, used[i]->by_unit[u] / used[i]->total);
        part_of_step = std::min(part_of_step, steps[i][u] / whole[i]);
        least = std::min(least, used[i]->by_unit[u]);
      }
      work += part;
      step += part_of_step;
      round_trip += least;
    }
  }
  const double m = layout.settings.micro_batches;
  double bound = std::max(m * work / rate, step / per_step);
  if (layout.schedule == Schedule::one_f_one_b || layout.stages == 1) {
    std::ranges::stable_sort(speeds, {}, &std::pair<double, double>::first);
    double inverse = 0;
    double room = 0;  // devices of the kinds up to this one
    auto kind = speeds.begin();
    for (int s = 0; s < layout.stages; ++s) {
      for (; kind != speeds.end() && room + kind->second < 1.0 * (s + 1) * layout.stage_devices();
           ++kind)
        room += kind->second;
      const double k = std::min(m, static_cast<double>(layout.stages - s));
      const double weight = m - k + (k - 1) / 2;
      inverse += weight > 0 ? 1 / (weight * kind->first) : HUGE_VAL;
    }
    bound = std::max(bound, round_trip + work / inverse);
  } else if (layout.schedule == Schedule::gpipe) {
    bound = std::max(bound, round_trip + (m - 1) * work / rate);
  } else if (layout.schedule == Schedule::zb_v) {
    double way = 0;
    for (std::size_t u = 0; u < used.front()->way.size(); ++u) {
      double least = HUGE_VAL;
      for (const ModelTime* time : used) least = std::min(least, time->way[u]);
      way += least;
    }
    bound = std::max(bound, way);
  }
  return Seconds(with_whole_layers(layout, mix, steps, round_trip, bound, limit.value));
}

// The bound when stages have whole layers. A stage counts for the slowest kind of node that it has
// a part of: so many stages at most have none that is slower than the k-th, as find room on the
// nodes of the first k.
double UniformLayouts::with_whole_layers(const UniformLayout& layout, const NodeMix& mix,
                                         const std::vector<std::vector<double>>& steps,
                                         double round_trip, double bound, double limit) const {
  if (layout.stages == 1 || layer_units_.empty() || bound >= limit) return bound;
  const int last = problem_.model.unit_count() - 1;
  struct Kind {
    double devices = 0;
    double layer = HUGE_VAL;
    double head = 0;
  };
  std::vector<Kind> kinds;
  double forward = HUGE_VAL;   // of a layer on any kind
  double backward = HUGE_VAL;  // the same
  double layer = HUGE_VAL;
  double head = HUGE_VAL;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (mix[k] == 0) continue;
    const std::vector<double>& own = steps[kinds.size()];
    const ModelTime& time = times_.at(cut_of(layout, static_cast<int>(k), mix));
    Kind& kind = kinds.emplace_back();
    kind.devices = 1.0 * mix[k] * kinds_[k].devices();
    kind.head = is_layer(problem_.model.unit(last)) ? 0 : own[last];
    for (const int u : layer_units_) {
      kind.layer = std::min(kind.layer, own[u]);
      layer = std::min(layer, time.by_unit[u]);
      forward = std::min(forward, time.forward[u]);
      backward = std::min(backward, time.by_unit[u] - time.forward[u]);
    }
    if (kind.head > 0) head = std::min(head, time.by_unit[last]);
  }
  const int layers = static_cast<int>(layer_units_.size());
  std::ranges::stable_sort(kinds, {}, &Kind::layer);
  std::vector<StagesOfAKind> stages;
  double devices = 0;
  double before = 0;
  for (const Kind& kind : kinds) {
    devices = std::min(devices + kind.devices, 1.0 * layout.devices());
    const double upto = std::floor(devices / layout.stage_devices());
    stages.push_back({upto - before, kind.layer, kind.head});
    before = upto;
  }
  bound = least_with_whole_layers(stages, layers, bound, limit);
  if (layout.schedule != Schedule::one_f_one_b || bound >= limit) return bound;
  stages.clear();
  const double m = layout.settings.micro_batches;
  // Of replicas of several types on a node no more is known than that one pass is half of both.
  const bool alike = std::ranges::all_of(kinds_, [](const NodeKind& kind) {
    return std::ranges::count(kind.types, kind.types.front()) == kind.devices();
  });
  const double longer = alike ? std::max(forward, backward) : layer / 2;
  for (int s = 0; s < layout.stages; ++s) {
    const double k = std::min(m, static_cast<double>(layout.stages - s));
    stages.push_back(
        {1, (m - k) * layer + (k - 1) * longer, std::isfinite(head) ? (m - 1) * head : 0});
  }
  return round_trip + least_with_whole_layers(stages, layers, std::max(0.0, bound - round_trip),
                                              limit - round_trip);
}

}  // namespace plait
