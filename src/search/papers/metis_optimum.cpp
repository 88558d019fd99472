#include "search/papers/metis_optimum.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "plan/check.h"

namespace plait {
namespace {

// A way to cut the devices that end at some rank.
struct Shape {
  MetisCut cut;
  int devices = 0;
};

// The last stages of a pipeline.
struct Label {
  double sum = 0;  // of all stages, with sends, sync and batches
  double longest = 0;
  double update = 0;
  double gradients = 0;
  double bandwidth = HUGE_VAL;  // of its first stage
  int stages = 0;
  int next = -1;   // label of the stages after the first
  int shape = -1;  // of the first stage, by its last rank
  int last_rank = 0;
  UnitRange layers;
  bool dropped = false;
};

double positive(double x) { return std::max(0.0, x); }

// The best plans so far.
class Best {
 public:
  explicit Best(int keep) : keep_(keep) {}
  double cutoff() const {
    return static_cast<int>(plans_.size()) < keep_ ? HUGE_VAL : plans_.back().cost.total().value;
  }
  void offer(MetisRanked plan) {
    const auto slower = [](const MetisRanked& a, const MetisRanked& b) {
      return a.cost.total() < b.cost.total();
    };
    plans_.insert(std::ranges::upper_bound(plans_, plan, slower), std::move(plan));
    if (static_cast<int>(plans_.size()) > keep_) plans_.pop_back();
  }
  std::vector<MetisRanked> take() { return std::move(plans_); }

 private:
  int keep_;
  std::vector<MetisRanked> plans_;
};

// What no stage can do without, whatever its shape: of all points of the profile the least.
struct Floors {
  std::vector<double> time;     // of the first 0, 1, .. layers in a row
  std::vector<double> work;     // device-seconds of them for one sample, on the best type
  std::vector<double> slow_by;  // by type: at least so many times that
  double sync = HUGE_VAL;

  explicit Floors(const MetisFormula& formula) : time{0}, work{0} {
    const auto& points = formula.table().points;
    slow_by.assign(points.size(), HUGE_VAL);
    for (int l = 0; l < formula.layers(); ++l) {
      double least = HUGE_VAL;
      std::vector<double> by_type(points.size(), HUGE_VAL);
      for (std::size_t type = 0; type < points.size(); ++type)
        for (const auto& [key, point] : points[type]) {
          least = std::min(least, point.layers[l].value);
          by_type[type] = std::min(by_type[type], point.layers[l].value * key.first / key.second);
        }
      const double best = *std::ranges::min_element(by_type);
      for (std::size_t type = 0; type < points.size(); ++type)
        slow_by[type] = std::min(slow_by[type], best > 0 ? by_type[type] / best : 1);
      time.push_back(time.back() + least);
      work.push_back(work.back() + best);
    }
    for (const auto& of_type : points)
      for (const auto& [key, point] : of_type) sync = std::min(sync, point.sync.value);
  }
};

// All pipelines over one order of the devices, with one number of micro-batches.
class OneOrder {
 public:
  OneOrder(const MetisFormula& formula, const Floors& floors, const Pins& pins,
           const std::vector<int>& tensors, const std::vector<DeviceId>& order, int micro_batches)
      : formula_(formula),
        floors_(floors),
        pins_(pins),
        tensors_(tensors),
        order_(order),
        micro_batches_(micro_batches),
        layers_(formula.layers()),
        capacity_{0} {
    for (const DeviceId id : order)
      capacity_.push_back(capacity_.back() +
                          1 / floors.slow_by[formula.problem().cluster.device(id).type]);
    for (const auto& points : formula.table().points)
      for (const auto& [key, point] : points) most_samples_ = std::max(most_samples_, key.second);
    bounds_.push_back(0);
    for (const int units : pins.stages) bounds_.push_back(bounds_.back() + units);
  }

  double bound() const {
    return bound({.sum = micro_batches_ * floors_.sync + batches()}, layers_,
                 static_cast<int>(order_.size()));
  }

  template <typename Stop>
  std::int64_t run(Best& best, const Stop& stop) {
    const int devices = static_cast<int>(order_.size());
    fronts_.resize(static_cast<std::size_t>(devices + 1) * (layers_ + 1));
    shapes_.resize(devices + 1);
    labels_.push_back({.sum = batches()});
    front(layers_, devices).push_back(0);
    for (int rank = devices; rank > 0 && !stop(); --rank) {
      make_shapes(rank);
      for (int end = layers_; end > 0; --end)
        for (const int label : std::vector<int>(front(end, rank)))
          if (!labels_[label].dropped) extend(label, end, rank, best);
    }
    return evaluations_;
  }

 private:
  double batches() const { return formula_.table().batch_generator.value * micro_batches_; }
  std::vector<int>& front(int end, int rank) {
    return fronts_[static_cast<std::size_t>(rank) * (layers_ + 1) + end];
  }

  // Of pipelines whose last stages are `label`, with the first `end` layers and `rank` devices to
  // come.
  double bound(const Label& label, int end, int rank) const {
    const int samples = formula_.problem().job.global_batch / micro_batches_;
    const double longest = end == 0 ? 0 : floors_.work[end] * samples / capacity_[rank];
    return label.sum + floors_.time[end] + (micro_batches_ - 1) * std::max(label.longest, longest) +
           label.update + label.gradients;
  }

  bool inside_nodes(int begin, int end, int tensor) const {
    for (int i = begin; i < end; ++i)
      if (formula_.problem().cluster.device(order_[i]).node !=
          formula_.problem().cluster.device(order_[i - (i - begin) % tensor]).node)
        return false;
    return true;
  }

  void make_shapes(int rank) {
    const int micro_batch = formula_.problem().job.global_batch / micro_batches_;
    const auto& points =
        formula_.table().points[formula_.problem().cluster.device(order_[rank - 1]).type];
    for (const int tensor : tensors_)
      for (int data = 1; data * tensor <= rank && data <= micro_batch; ++data) {
        if (micro_batch % data != 0 || !points.contains({tensor, micro_batch / data})) continue;
        if (pins_.data.value_or(data) != data) continue;
        if (pins_.micro_batch.value_or(micro_batch / data) != micro_batch / data) continue;
        const int begin = rank - data * tensor;
        if (!inside_nodes(begin, rank, tensor)) continue;
        if (auto cut = formula_.cut(std::span(order_).subspan(begin, rank - begin), data, tensor,
                                    micro_batches_))
          shapes_[rank].push_back({std::move(*cut), rank - begin});
      }
  }

  // Puts every stage that may end at layer `end` and device `rank` before the label.
  void extend(int label, int end, int rank, Best& best) {
    for (std::size_t s = 0; s < shapes_[rank].size(); ++s) {
      const Shape& shape = shapes_[rank][s];
      const int rest = rank - shape.devices;
      Label with = labels_[label];
      with.next = label;
      with.shape = static_cast<int>(s);
      with.last_rank = rank;
      with.bandwidth = shape.cut.bandwidth;
      ++with.stages;
      with.sum += with.next == 0 ? micro_batches_ * shape.cut.sync.value
                                 : formula_.send(shape.cut, end, labels_[label].bandwidth).value;
      for (int begin = end - 1; begin >= 0; --begin) {
        if (!formula_.fits(shape.cut, {begin, end})) break;
        if ((begin == 0) != (rest == 0) || !allowed(begin, with.stages, rest == 0)) continue;
        ++evaluations_;
        Label longer = with;
        longer.layers = {begin, end};
        const double time = formula_.time(shape.cut, longer.layers).value;
        longer.sum += time;
        longer.longest = std::max(longer.longest, time);
        if (longer.sum + (micro_batches_ - 1) * longer.longest >= best.cutoff()) break;
        longer.update = std::max(longer.update, formula_.update(shape.cut, longer.layers).value);
        longer.gradients =
            std::max(longer.gradients, formula_.gradients(shape.cut, longer.layers).value);
        if (bound(longer, begin, rest) >= best.cutoff()) continue;
        if (rest == 0)
          finish(longer, best);
        else
          insert(longer, begin, rest);
      }
    }
  }

  // Whether the pins allow the stage that is the `stages`-th from the end to begin there.
  bool allowed(int begin, int stages, bool is_first) const {
    if (pins_.pipeline && (stages > *pins_.pipeline || (is_first && stages != *pins_.pipeline)))
      return false;
    const int count = static_cast<int>(pins_.stages.size());
    return count == 0 ||
           (stages <= count && bounds_[count - stages] == begin && is_first == (stages == count));
  }

  // Whether no beginning makes `b` better than `a`.
  bool beats(const Label& a, const Label& b, int end) const {
    if ((pins_.pipeline || !pins_.stages.empty()) && a.stages != b.stages) return false;
    const Model& model = formula_.problem().model;
    const double elements = end == layers_ - 1 ? 1.0 * model.sequence_length * model.vocabulary
                                               : model.unit(end - 1).output;
    const double sent = most_samples_ * elements * positive(1 / a.bandwidth - 1 / b.bandwidth);
    return a.sum + (micro_batches_ - 1) * positive(a.longest - b.longest) +
               positive(a.update - b.update) + positive(a.gradients - b.gradients) + sent <=
           b.sum;
  }

  void insert(const Label& label, int end, int rank) {
    std::vector<int>& others = front(end, rank);
    for (const int other : others)
      if (beats(labels_[other], label, end)) return;
    std::erase_if(others, [&](int other) {
      labels_[other].dropped = beats(label, labels_[other], end);
      return labels_[other].dropped;
    });
    others.push_back(static_cast<int>(labels_.size()));
    labels_.push_back(label);
  }

  void finish(const Label& first, Best& best) {
    Plan plan;
    plan.micro_batches = micro_batches_;
    for (const Label* label = &first; label->next >= 0; label = &labels_[label->next]) {
      const Shape& shape = shapes_[label->last_rank][label->shape];
      Stage stage;
      stage.spans.push_back(
          {.units = label->layers, .tensor = shape.cut.tensor, .data = shape.cut.data});
      stage.devices.assign(order_.begin() + (label->last_rank - shape.devices),
                           order_.begin() + label->last_rank);
      stage.shares = shape.cut.shares;
      if (std::ranges::all_of(stage.shares, [&](int n) { return n == stage.shares.front(); }))
        stage.shares.clear();
      plan.stages.push_back(std::move(stage));
    }
    const auto cost = formula_.cost(plan);
    PLAIT_CHECK(cost.has_value());
    best.offer({std::move(plan), *cost});
  }

  const MetisFormula& formula_;
  const Floors& floors_;
  const Pins& pins_;
  const std::vector<int>& tensors_;
  const std::vector<DeviceId>& order_;
  int micro_batches_;
  int layers_;
  int most_samples_ = 1;
  std::vector<double> capacity_;  // of the first 0, 1, .. devices, in devices of the best type
  std::vector<int> bounds_;       // of the pinned stages
  std::vector<std::vector<Shape>> shapes_;  // by last rank + 1
  std::vector<Label> labels_;
  std::vector<std::vector<int>> fronts_;  // by layers and devices to come
  std::int64_t evaluations_ = 0;
};

// Tensor degrees that were measured and that cut the model evenly.
std::vector<int> tensor_degrees(const MetisFormula& formula, const Pins& pins) {
  const Problem& problem = formula.problem();
  std::set<int> degrees;
  for (std::size_t type = 0; type < problem.cluster.device_types.size(); ++type) {
    std::vector<DeviceId> devices;
    for (int i = 0; i < problem.cluster.device_count(); ++i)
      if (problem.cluster.devices[i].type == static_cast<int>(type)) devices.push_back(DeviceId(i));
    for (const auto& [key, point] : formula.table().points[type]) {
      const int tensor = key.first;
      if (pins.tensor.value_or(tensor) != tensor || tensor > static_cast<int>(devices.size()))
        continue;
      Stage whole;
      whole.spans.push_back({.units = {0, problem.model.unit_count()}, .tensor = tensor});
      whole.devices.assign(devices.begin(), devices.begin() + tensor);
      Plan plan;
      plan.micro_batches = problem.job.global_batch;
      plan.stages.push_back(std::move(whole));
      if (check_plan(problem, plan).empty()) degrees.insert(tensor);
    }
  }
  return {degrees.begin(), degrees.end()};
}

// The devices of each type together, types in every order.
std::vector<std::vector<DeviceId>> orders_of(const Cluster& cluster) {
  std::vector<int> types(cluster.device_types.size());
  std::iota(types.begin(), types.end(), 0);
  std::vector<std::vector<DeviceId>> orders;
  do {
    orders.emplace_back();
    for (const int type : types)
      for (int i = 0; i < cluster.device_count(); ++i)
        if (cluster.devices[i].type == type) orders.back().push_back(DeviceId(i));
  } while (std::ranges::next_permutation(types).found);
  return orders;
}

}  // namespace

MetisOptimum search_metis_optimum(const MetisFormula& formula, const SearchContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  const auto stop = [&] {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    return context.stop.stop_requested() || spent.count() > context.options.time_limit.value;
  };
  const Pins& pins = context.options.pins;
  const Floors floors(formula);
  const std::vector<int> tensors = tensor_degrees(formula, pins);
  const std::vector<std::vector<DeviceId>> orders = orders_of(context.problem.cluster);
  struct Part {
    const std::vector<DeviceId>* order;
    int micro_batches;
    double bound;
  };
  std::vector<Part> parts;
  const int batch = context.problem.job.global_batch;
  for (int m = 1; m <= batch; ++m) {
    if (batch % m != 0 || pins.micro_batches.value_or(m) != m) continue;
    for (const auto& order : orders)
      parts.push_back({&order, m, OneOrder(formula, floors, pins, tensors, order, m).bound()});
  }
  std::ranges::stable_sort(parts, {}, &Part::bound);
  Best best(context.options.keep);
  MetisOptimum result;
  for (const Part& part : parts) {
    if (part.bound >= best.cutoff()) break;
    result.evaluations +=
        OneOrder(formula, floors, pins, tensors, *part.order, part.micro_batches).run(best, stop);
    if (stop()) {
      result.cut_short = true;
      break;
    }
  }
  result.plans = best.take();
  return result;
}

}  // namespace plait
