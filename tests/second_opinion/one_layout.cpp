#include "second_opinion/one_layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "model/layers.h"
#include "plan/check.h"
#include "second_opinion/changes.h"

namespace plait::second_opinion {
namespace {

constexpr int kRuns = 5;
constexpr double kHot = 0.03;
constexpr double kCold = 0.0005;
constexpr int kProposalsPerPlan = 30;  // proposals that are not sound count a little, too

struct Layout {
  Plan settings;  // without stages
  std::vector<int> hosts;
  int tensor = 1;
  int stages = 1;
  int chunks = 1;
  Recompute recompute = Recompute::none;
  int first = 0;           // layers of every chunk that are recomputed in full, if none else are
  std::vector<int> units;  // of every chunk, in pipeline order
};

class Annealing {
 public:
  Annealing(const CostEngine& engine, const Target& target, const Options& options)
      : engine_(engine),
        problem_(engine.problem()),
        target_(target),
        options_(options),
        random_(options.seed),
        on_node_(problem_.cluster.nodes.size()) {
    for (int i = 0; i < problem_.cluster.device_count(); ++i)
      on_node_[problem_.cluster.devices[i].node].push_back(DeviceId(i));
    batches_ = divisors(problem_.job.global_batch);
  }

  std::optional<Opinion> run(const std::vector<Plan>& given) {
    std::vector<State> starts;
    for (const Plan& plan : given) {
      State own{layout_of(plan), HUGE_VAL, "given"};
      if (see(own)) starts.push_back(own);
    }
    const std::int64_t for_starts = options_.evaluations / 3;
    while (used_ < for_starts && !is_over()) {
      State own{random_layout(), HUGE_VAL, "random"};
      if (see(own)) starts.push_back(own);
    }
    std::ranges::stable_sort(starts, {}, &State::length);
    if (starts.size() > kRuns) starts.resize(kRuns);
    const std::int64_t left = options_.evaluations - used_;
    for (const State& start : starts)
      anneal(start, left * 2 / 3 / static_cast<std::int64_t>(starts.size()), kHot);
    while (!is_over() && std::isfinite(best_.length))
      anneal(best_, options_.evaluations / 8 + 1, kHot / 3);
    if (best_.length >= kTooLarge) return std::nullopt;
    return Opinion{*plan_of(best_.layout), Seconds(best_.length), used_, best_.start};
  }

 private:
  static constexpr double kTooLarge = 1e6;  // more than any step

  struct State {
    Layout layout;
    double length = HUGE_VAL;
    const char* start = "";
  };

  bool is_over() const { return used_ >= options_.evaluations || options_.stop(); }
  int draw(int least, int most) { return pick(random_, least, most); }

  std::vector<DeviceId> devices_of(const std::vector<int>& hosts) const {
    std::vector<DeviceId> out;
    for (const int host : hosts)
      out.insert(out.end(), on_node_[host].begin(), on_node_[host].end());
    return out;
  }

  Layout layout_of(const Plan& plan) const {
    Layout out;
    out.settings = plan;
    out.settings.stages.clear();
    for (const Stage& stage : plan.stages)
      for (const DeviceId id : stage.devices) {
        const int node = problem_.cluster.device(id).node;
        if (out.hosts.empty() || out.hosts.back() != node) out.hosts.push_back(node);
      }
    out.tensor = plan.stages.front().spans.front().tensor;
    out.stages = plan.stage_count();
    out.chunks = chunk_count(plan.stages.front());
    out.units.assign(static_cast<std::size_t>(out.stages) * out.chunks, 0);
    out.recompute = plan.stages.back().spans.back().recompute;
    for (int s = 0; s < out.stages; ++s)
      for (const Span& span : plan.stages[s].spans) {
        out.units[chunk_position(plan.schedule, out.stages, s, span.chunk)] += span.units.size();
        if (out.recompute != Recompute::none || span.recompute != Recompute::full) continue;
        int layers = 0;
        for (int u = span.units.begin; u < span.units.end; ++u)
          layers += begins_layer(problem_.model.unit(u)) ? 1 : 0;
        out.first = std::max(out.first, layers);
      }
    return out;
  }

  // The units of a chunk: the first layers in full, with what stands before them.
  void add_chunk(const Layout& layout, UnitRange units, Span like, Stage& stage) const {
    if (layout.recompute != Recompute::none || layout.first == 0) {
      like.units = units;
      like.recompute = layout.recompute;
      stage.spans.push_back(like);
      return;
    }
    int layers = 0;
    int end = units.begin;
    while (end < units.end) {
      if (begins_layer(problem_.model.unit(end)) && ++layers > layout.first) break;
      ++end;
    }
    // An embedding or a head without a layer is not recomputed.
    if (layers == 0) end = units.begin;
    const auto add = [&](UnitRange own, Recompute recompute) {
      if (own.size() <= 0) return;
      like.units = own;
      like.recompute = recompute;
      stage.spans.push_back(like);
    };
    add({units.begin, end}, Recompute::full);
    add({end, units.end}, Recompute::none);
  }

  std::optional<Plan> plan_of(const Layout& layout) const {
    const std::vector<DeviceId> devices = devices_of(layout.hosts);
    const int replica = layout.tensor * layout.settings.context;
    const int world = static_cast<int>(devices.size());
    if (world == 0 || world % (replica * layout.stages) != 0) return std::nullopt;
    const int size = world / layout.stages;
    Plan plan = layout.settings;
    std::vector<int> begins(layout.units.size() + 1, 0);
    std::partial_sum(layout.units.begin(), layout.units.end(), begins.begin() + 1);
    for (int s = 0; s < layout.stages; ++s) {
      Stage stage;
      stage.devices.assign(devices.begin() + static_cast<long>(s) * size,
                           devices.begin() + static_cast<long>(s + 1) * size);
      for (int c = 0; c < layout.chunks; ++c) {
        const int at = chunk_position(plan.schedule, layout.stages, s, c);
        add_chunk(layout, {begins[at], begins[at + 1]},
                  {.tensor = layout.tensor, .data = size / replica, .chunk = c}, stage);
      }
      plan.stages.push_back(std::move(stage));
    }
    const int sequence = problem_.model.sequence_length;
    plan.sequence_parallel = target_.sequence_parallel && layout.tensor > 1 && sequence > 1 &&
                             sequence / plan.context % layout.tensor == 0;
    if (size / layout.tensor == 1) plan.zero = ZeroStage::off;
    if (layout.stages == 1) plan.schedule = target_.schedules.front();
    if (layout.stages == 1 &&
        std::ranges::find(target_.schedules, Schedule::one_f_one_b) != target_.schedules.end())
      plan.schedule = Schedule::one_f_one_b;
    return plan;
  }

  bool see(State& state) {
    if (++proposals_ % kProposalsPerPlan == 0) ++used_;
    const std::optional<Plan> plan = plan_of(state.layout);
    if (!plan || !check_plan(problem_, *plan).empty() || why_not(target_, problem_, *plan))
      return false;
    ++used_;
    const Estimate cost = engine_.simulate(*plan);
    state.length = cost.step.value;
    if (!cost.fits) {
      double excess = 0;
      for (const StageCost& stage : cost.stages)
        excess = std::max(excess, -(stage.spare() / stage.capacity));
      state.length += kTooLarge * (1 + excess);
    }
    if (state.length < best_.length) best_ = state;
    return true;
  }

  // Layers in proportion to the speed of the stages' first devices.
  bool deal(Layout& layout) {
    const std::vector<DeviceId> devices = devices_of(layout.hosts);
    const std::size_t size = devices.size() / static_cast<std::size_t>(layout.stages);
    std::vector<double> weights(static_cast<std::size_t>(layout.stages) * layout.chunks, 1);
    for (int s = 0; s < layout.stages; ++s)
      for (int c = 0; c < layout.chunks; ++c)
        weights[chunk_position(layout.settings.schedule, layout.stages, s, c)] =
            target_.cuts == CutRule::between_layers ? peak_of(problem_, devices[s * size]) : 1;
    layout.units = apportion(problem_.model.unit_count() - 2, weights);
    if (layout.units.empty()) return false;
    ++layout.units.front();
    ++layout.units.back();
    return true;
  }

  Layout random_layout() {
    Layout out;
    std::map<double, std::vector<int>> by_speed;
    for (int n = 0; n < static_cast<int>(on_node_.size()); ++n)
      if (!on_node_[n].empty()) by_speed[-peak_of(problem_, on_node_[n].front())].push_back(n);
    const bool some = by_speed.size() > 1 && draw(0, 2) == 0;
    for (const auto& [speed, nodes] : by_speed)
      if (!some || out.hosts.empty() || draw(0, 1) == 0)
        out.hosts.insert(out.hosts.end(), nodes.begin(), nodes.end());
    if (draw(0, 1) == 0) std::ranges::reverse(out.hosts);
    const int world = static_cast<int>(devices_of(out.hosts).size());
    out.tensor = 1 << draw(0, 3);
    if (world % out.tensor != 0) out.tensor = 1;
    const std::vector<int> stages = divisors(world / out.tensor);
    out.stages = stages[draw(0, static_cast<int>(stages.size()) - 1)];
    out.settings.micro_batches = batches_[draw(0, static_cast<int>(batches_.size()) - 1)];
    draw_schedule(out);
    draw_recompute(out);
    draw_zero(out);
    if (!deal(out)) out.stages = out.chunks = 1, deal(out);
    return out;
  }

  void draw_schedule(Layout& layout) {
    layout.settings.schedule =
        target_.schedules[draw(0, static_cast<int>(target_.schedules.size()) - 1)];
    layout.chunks = layout.settings.schedule == Schedule::interleaved ? draw(2, 6)
                    : layout.settings.schedule == Schedule::zb_v      ? 2
                                                                      : 1;
    if (layout.stages == 1) layout.chunks = 1, layout.settings.schedule = target_.schedules[0];
  }

  void draw_recompute(Layout& layout) {
    layout.first = 0;
    layout.recompute = target_.recomputes[draw(0, static_cast<int>(target_.recomputes.size()) - 1)];
    if (layout.recompute == Recompute::none && target_.recompute_layers != RecomputeLayers::same &&
        draw(0, 1) == 0)
      layout.first = draw(1, std::max(1, problem_.model.unit_count() / layout.stages));
  }

  void draw_zero(Layout& layout) {
    const auto& zeros = layout.stages > 1 ? target_.zero_in_pipeline : target_.zero;
    layout.settings.zero = zeros[draw(0, static_cast<int>(zeros.size()) - 1)];
  }

  bool shift_layers(Layout& layout) {
    const int count = static_cast<int>(layout.units.size());
    if (count < 2) return false;
    for (int moves = draw(1, 3); moves > 0; --moves) {
      const int from = draw(0, count - 1);
      const int to = draw(0, 2) == 0 ? draw(0, count - 1) : from + (draw(0, 1) == 0 ? 1 : -1);
      if (to < 0 || to >= count || layout.units[from] < 2) continue;
      --layout.units[from];
      ++layout.units[to];
    }
    return true;
  }

  bool reorder_hosts(Layout& layout) {
    const int count = static_cast<int>(layout.hosts.size());
    std::vector<int> idle;
    for (int n = 0; n < static_cast<int>(on_node_.size()); ++n)
      if (std::ranges::find(layout.hosts, n) == layout.hosts.end()) idle.push_back(n);
    const int kind = draw(0, 3);
    if (kind == 0 && !idle.empty())
      layout.hosts.insert(layout.hosts.begin() + draw(0, count),
                          idle[draw(0, static_cast<int>(idle.size()) - 1)]);
    else if (kind == 1 && count > 1)
      layout.hosts.erase(layout.hosts.begin() + draw(0, count - 1));
    else if (kind == 2)
      std::swap(layout.hosts[draw(0, count - 1)], layout.hosts[draw(0, count - 1)]);
    else
      std::rotate(layout.hosts.begin(), layout.hosts.begin() + draw(0, count - 1),
                  layout.hosts.end());
    const auto world = static_cast<int>(devices_of(layout.hosts).size());
    if (world % (layout.stages * layout.tensor * layout.settings.context) != 0) {
      const std::vector<int> all = divisors(world / layout.tensor);
      layout.stages = all[draw(0, static_cast<int>(all.size()) - 1)];
    }
    return deal(layout);
  }

  bool scale(int& value) {
    const bool up = draw(0, 1) == 0;
    if (!up && value % 2 != 0) return false;
    value = up ? 2 * value : value / 2;
    return value >= 1;
  }

  bool change_degrees(Layout& layout) {
    switch (draw(0, 4)) {
      case 0:
        return scale(layout.tensor) && deal(layout);
      case 1: {
        const int world = static_cast<int>(devices_of(layout.hosts).size());
        const std::vector<int> all = divisors(world / layout.tensor);
        layout.stages = all[draw(0, static_cast<int>(all.size()) - 1)];
        if (layout.stages == 1) layout.chunks = 1;
        return deal(layout);
      }
      case 2:
        return scale(layout.settings.context);
      case 3:
        return scale(layout.settings.expert);
      default:
        layout.settings.micro_batches = batches_[draw(0, static_cast<int>(batches_.size()) - 1)];
        return true;
    }
  }

  bool change_rest(Layout& layout) {
    switch (draw(0, 2)) {
      case 0:
        draw_schedule(layout);
        return deal(layout);
      case 1:
        draw_recompute(layout);
        return true;
      default:
        draw_zero(layout);
        return true;
    }
  }

  bool change(Layout& layout) {
    const int kind = draw(0, 9);
    if (kind < 5) return shift_layers(layout);
    if (kind < 6) return reorder_hosts(layout);
    if (kind < 8) return change_degrees(layout);
    if (kind < 9) return change_rest(layout);
    return change_degrees(layout) && change_rest(layout);
  }

  void anneal(const State& start, std::int64_t evaluations, double hot) {
    State now = start;
    const std::int64_t begin = used_;
    while (used_ - begin < evaluations && !is_over()) {
      const double way = static_cast<double>(used_ - begin) / static_cast<double>(evaluations);
      const double temperature = hot * std::pow(kCold / hot, way);
      State next{now.layout, HUGE_VAL, start.start};
      if (!change(next.layout) || !see(next)) {
        ++proposals_;
        if (proposals_ % kProposalsPerPlan == 0) ++used_;
        continue;
      }
      const double worse = next.length / now.length - 1;
      if (worse <= 0 || draw(0, 999'999) / 1e6 < std::exp(-worse / temperature)) now = next;
    }
  }

  const CostEngine& engine_;
  const Problem& problem_;
  const Target& target_;
  const Options& options_;
  Random random_;
  std::vector<std::vector<DeviceId>> on_node_;
  std::vector<int> batches_;
  State best_;
  std::int64_t used_ = 0;
  std::int64_t proposals_ = 0;
};

}  // namespace

std::optional<Opinion> one_layout_opinion(const CostEngine& engine, const Target& target,
                                          const std::vector<Plan>& given, const Options& options) {
  return Annealing(engine, target, options).run(given);
}

}  // namespace plait::second_opinion
