#include "search/uniform/order_bounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cost/pipeline/schedule.h"
#include "model/layers.h"
#include "search/uniform/division/stage_divisions.h"

namespace plait {
namespace {

// Limits of work: tasks of the steps that are run through for one order of hosts.
constexpr double kMostStepTasks = 60'000;    // of one step
constexpr double kRoundTasks = 200'000;      // for the bound
constexpr double kNeighbourTasks = 600'000;  // for better divisions
constexpr double kLeastRounds = 3;
constexpr double kMostRounds = 12;
constexpr double kMostNeighbours = 120;
constexpr int kGameHalvings = 3;

// Of n layers so many are recomputed, as far as there are, and what that adds; or `fewer`.
void set_recompute(const LayerLoad& load, int recomputed, int fewer, InterleavedStage& stage) {
  stage.most_layers = 0;
  stage.recompute.clear();
  for (int n = 0; n <= load.most_layers(); ++n) {
    const int own = std::min(recomputed, n);
    if (load.needed[n] > own) return;
    stage.most_layers = n;
    stage.recompute.push_back(std::max(0, own - fewer) * load.recomputed);
  }
}

}  // namespace

OrderBounds::OrderBounds(const UniformLayout& layout, const Space& space, LayoutStages& stages,
                         double work, std::function<bool()> stop)
    : layout_(layout),
      space_(space),
      problem_(space.problem()),
      stages_(stages),
      work_(work),
      stop_(std::move(stop)),
      units_(problem_.model.unit_count()),
      layers_(layers_by_kind(problem_.model)) {}

Seconds OrderBounds::tied() const {
  Seconds sum;
  if (layout_.stages == 1) return sum;
  const Plan& plan = stages_.plan();
  for (const Tie& tie : problem_.model.ties)
    if (tie.first == 0 && tie.second == units_ - 1)
      sum += tied_sync_time(problem_, tie, plan.stages.front().devices, plan.stages.back().devices,
                            layout_.tensor);
  return sum;
}

// Every micro-batch passes every cut there and back. A link carries one hand-over at a time, and
// the network of a stage's nodes those to and from both of its neighbours.
Seconds OrderBounds::busiest_link() {
  Seconds most;
  Seconds before;  // from the stage before, over the network
  for (int s = 0; s < layout_.stages; ++s) {
    const bool last = s + 1 == layout_.stages;
    const HandOver least = last ? HandOver{} : least_over(s);
    const Seconds sent = least.crosses_nodes ? least.busy : Seconds(0);
    most = std::max({most, least.busy, before + sent});
    before = sent;
  }
  return layout_.settings.micro_batches * layout_.chunks * most;
}

// To the next stage, wherever the cut is.
HandOver OrderBounds::least_over(int s) {
  HandOver least = stages_.over(s, layers_->cut_after.front() + 1);
  for (const int unit : layers_->cut_after) {
    const HandOver& own = stages_.over(s, unit + 1);
    least.time = std::min(least.time, own.time);
    least.busy = std::min(least.busy, own.busy);
  }
  return least;
}

Seconds OrderBounds::way_through_v() {
  Seconds sends;
  std::map<int, const SpanFrame*> frames;
  for (int s = 0; s < layout_.stages; ++s) {
    frames.emplace(stages_.signature(s), &stages_.runs(s)->frame());
    if (s + 1 < layout_.stages) sends += least_over(s).time;
  }
  Seconds way = 4 * sends;  // both chunks of a stage hand over, there and back
  for (int u = 0; u < units_; ++u) {
    Seconds least(HUGE_VAL);
    for (const auto& [signature, frame] : frames)
      for (int r = 0; r < frame->replica_count(); ++r) {
        const UnitCost cost = frame->time_on(r, {u, u + 1}, layout_.recompute);
        least = std::min(least, cost.total() - cost.weight_gradient);
      }
    way += least;
  }
  return way;
}

OrderBounds::OfCuts OrderBounds::of_any_cut(Seconds enough) {
  // A V has both ends of the model on one stage.
  const Seconds after = layout_.schedule == Schedule::zb_v ? Seconds(0) : tied();
  OfCuts out{std::max(layout_.bound, layout_.untied + after), {}, {}};
  if (!layers_) return out;
  const Seconds busy = busiest_link();
  out.bound = std::max(out.bound, busy);
  if (out.bound >= enough) return out;
  if (layout_.schedule == Schedule::zb_v) {
    out.pipeline = fitting_pipeline();
    InterleavedBound found = busiest_stage_bound(out.pipeline, out.pipeline.others > 0 ? 0 : 2);
    if (out.pipeline.others == 0) out.layers = std::move(found.layers);
    out.bound = std::max({out.bound, Seconds(found.step), way_through_v()});
  } else if (layout_.schedule == Schedule::interleaved) {
    out.pipeline = fitting_pipeline();
    const double known = std::max({busy - after, layout_.bound - after, layout_.untied}).value;
    InterleavedBound found = interleaved_bound(out.pipeline, known, (enough - after).value, stop_);
    if (layers_->equal) out.layers = std::move(found.layers);
    out.bound = Seconds(found.step) + after;
  }
  return out;
}

InterleavedPipeline OrderBounds::fitting_pipeline() {
  InterleavedPipeline pipeline = interleaved_pipeline();
  for (int s = 0; s < layout_.stages; ++s) pipeline.stages[s].most_layers = most_layers(s);
  return pipeline;
}

InterleavedPipeline OrderBounds::interleaved_pipeline() {
  InterleavedPipeline pipeline{.layers = layers_->count,
                               .others = units_ - 2 - layers_->count,
                               .chunks = layout_.chunks,
                               .micro_batches = layout_.settings.micro_batches,
                               .forward_share = 0.5,
                               .tied = tied().value};
  for (int s = 0; s < layout_.stages; ++s) pipeline.stages.push_back(bound_stage(s, pipeline));
  pipeline.wrap = least_wrap().time.value;
  return pipeline;
}

// Both ends of the model are on the first stage of a V.
StagePlace OrderBounds::place_of(int s) const {
  return {.first = s == 0,
          .last = s + 1 == (layout_.schedule == Schedule::zb_v ? 1 : layout_.stages),
          .mean_layers = 1.0 * layers_->count / layout_.stages,
          .live = live(s)};
}

InterleavedStage OrderBounds::bound_stage(int s, InterleavedPipeline& pipeline) {
  const RunCosts& runs = *stages_.runs(s);
  const StagePlace place = place_of(s);
  InterleavedStage out = least_stage(runs, *layers_, place);
  for (const int u : layers_->units) {
    const StageTime layer = runs.alone({u, u + 1});
    pipeline.forward_share =
        std::min(pipeline.forward_share, layer.forward.value / layer.total().value);
  }
  out.wire_of_ends += wire_of_sends(s);
  if (s + 1 < layout_.stages) out.send = least_over(s).time.value;
  return out;
}

LayerBound OrderBounds::divide(const InterleavedPipeline& pipeline, int recompute_first,
                               Seconds enough, const CutLimits& limits) {
  const int p = layout_.stages;
  const int v = layout_.chunks;
  const double m = layout_.settings.micro_batches;
  if (2 * m * v * p > work_ * kMostStepTasks || splits_backward(layout_.schedule) || stop_())
    return {0, {}};
  std::vector<double> send;
  std::vector<double> busy;
  const HandOver wrap = least_wrap();
  for (int k = 0; k + 1 < p * v; ++k) {
    const HandOver over = k % p + 1 < p ? least_over(k % p) : wrap;
    send.push_back(over.time.value);
    busy.push_back(over.busy.value);
  }
  if (graph_)
    graph_->hand_over(send, busy);
  else
    graph_.emplace(
        StepGraph::Shape{layout_.schedule, p, v, layout_.settings.micro_batches, send, busy});
  LayerPipeline divided{.layers = layers_->count, .after = pipeline.tied};
  for (int s = 0; s < p; ++s) {
    const InterleavedStage& stage = pipeline.stages[s];
    const double in_time = enough.value / (m * stage.layer);
    int most = std::min(stage.most_layers, static_cast<int>(std::min(in_time, 1e6)) + 1);
    if (limits.most_layers > 0) most = std::min(most, limits.most_layers);
    const bool last = s + 1 == p;
    const int place = s == 0 ? 1 : last ? 2 : 0;
    const auto [at, is_new] = divisions_.try_emplace(
        {stages_.signature(s), place, most, recompute_first}, StageDivisions{});
    if (is_new)
      at->second = stage_divisions({.runs = *stages_.runs(s),
                                    .model = problem_.model,
                                    .layers = *layers_,
                                    .recompute = layout_.recompute,
                                    .recompute_first = recompute_first,
                                    .first = s == 0,
                                    .last = last,
                                    .chunks = v,
                                    .least_layers = limits.least_layers,
                                    .most_layers = most});
    divided.stages.push_back({&at->second, stage.wire, stage.wire_of_ends});
  }
  const auto tasks = static_cast<double>(graph_->task_count());
  return bound_layers(
      *graph_, divided, enough.value,
      {.rounds =
           static_cast<int>(work_ * std::clamp(kRoundTasks / tasks, kLeastRounds, kMostRounds)),
       .halvings = kGameHalvings + static_cast<int>(std::log2(work_)),
       .neighbours = static_cast<int>(work_ * std::min(kNeighbourTasks / tasks, kMostNeighbours)),
       .stop = stop_});
}

// From the last stage back to the first, wherever the cut is.
HandOver OrderBounds::least_wrap() const {
  const Plan& plan = stages_.plan();
  HandOver least;
  least.time = least.busy = Seconds(HUGE_VAL);
  for (const int unit : layers_->cut_after) {
    const HandOver own =
        hand_over(problem_, plan, plan.stages.back(), plan.stages.front(), unit + 1);
    least.time = std::min(least.time, own.time);
    least.busy = std::min(least.busy, own.busy);
  }
  return least;
}

// Where only some layers are recomputed: no more memory than with all of them.
int OrderBounds::most_layers(int s) {
  const bool some = layout_.recomputes_some || space_.pins().recompute_layers;
  const Recompute most = some ? Recompute::full : layout_.recompute;
  return plait::most_layers(stages_.runs(s)->frame(), space_, *layers_, most, place_of(s));
}

// Of hand-overs to the next stage and from the one before, without the way round.
double OrderBounds::wire_of_sends(int s) {
  Seconds busy;
  for (const int from : {s - 1, s}) {
    if (from < 0 || from + 1 == layout_.stages) continue;
    const HandOver least = least_over(from);
    if (least.crosses_nodes) busy += least.busy;
  }
  return layout_.settings.micro_batches * layout_.chunks * busy.value;
}

double OrderBounds::live(int s) const {
  return static_cast<double>(chunks_in_flight(layout_.schedule, layout_.stages, s,
                                              layout_.settings.micro_batches, layout_.chunks)) /
         layout_.chunks;
}

// Of every stage; alike ones once.
std::vector<LayerLoad> OrderBounds::layer_loads(Seconds limit) {
  std::vector<LayerLoad> loads;
  std::map<std::tuple<int, double, bool, bool>, int> known;
  for (int s = 0; s < layout_.stages; ++s) {
    const bool last = s + 1 == layout_.stages;
    const auto [at, is_new] = known.try_emplace({stages_.signature(s), live(s), s == 0, last}, s);
    if (is_new)
      loads.push_back(layer_load({.frame = stages_.runs(s)->frame(),
                                  .tied = space_.tied_copies(),
                                  .live = live(s),
                                  .has_first = s == 0,
                                  .has_last = last,
                                  .units = units_,
                                  .most_time = limit.value / layout_.settings.micro_batches}));
    else
      loads.push_back(loads[at->second]);
  }
  return loads;
}

// Under 1F1B, as UniformLayouts bounds layouts: the round trip T of a micro-batch, and the most
// c_s x_s of a stage, which is T / sum over s of 1 / c_s at least. A stage with n layers has
// c_s n x in less than the limit and T, so that n is at most `cap`, and of all layers at least
// first / cap are recomputed.
double OrderBounds::least_pipeline(const std::vector<LayerLoad>& loads, int first,
                                   double limit) const {
  if (layout_.schedule != Schedule::one_f_one_b || layout_.stages == 1) return 0;
  const double m = layout_.settings.micro_batches;
  const double layers = units_ - 2;
  double layer = HUGE_VAL;
  double recomputed = HUGE_VAL;
  double ends = 0;
  double inverse = 0;
  double least_weight = HUGE_VAL;
  for (int s = 0; s < layout_.stages; ++s) {
    layer = std::min(layer, loads[s].layer);
    recomputed = std::min(recomputed, loads[s].recomputed);
    ends += loads[s].ends;
    const double k = std::min(m, static_cast<double>(layout_.stages - s));
    const double weight = m - k + (k - 1) / 2;
    inverse += weight > 0 ? 1 / weight : HUGE_VAL;
    least_weight = std::min(least_weight, weight);
  }
  const double trip = layers * layer + ends;
  const double cap = std::floor((limit - trip) / (least_weight * layer));
  const double part = cap > first ? first / cap : 1;
  return (trip + part * layers * recomputed) * (1 + 1 / inverse);
}

std::vector<OrderBounds::Number> OrderBounds::numbers(Seconds limit, int most) {
  std::vector<Number> numbers;
  const Seconds after = tied();
  limit = limit - after;
  const double m = layout_.settings.micro_batches;
  const std::vector<LayerLoad> loads = layer_loads(limit);
  const InterleavedPipeline pipeline =
      layout_.stages > 1 ? interleaved_pipeline() : InterleavedPipeline{};
  for (int first = 1; first <= most; ++first) {
    const double busiest = least_busiest(loads, units_ - 2, first, limit.value / m);
    const Seconds bound = std::max(
        {layout_.untied, m * Seconds(busiest), Seconds(least_pipeline(loads, first, limit.value))});
    if (bound >= limit) continue;
    numbers.push_back({first, std::max(layout_.bound, bound + after), pipeline});
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s)
      set_recompute(loads[s], first, 0, numbers.back().pipeline.stages[s]);
  }
  std::ranges::stable_sort(numbers, {}, &Number::bound);
  return numbers;
}

std::vector<OrderBounds::Number> OrderBounds::numbers_in_chunks(Seconds limit) {
  std::vector<Number> numbers;
  const Seconds after = tied();
  limit = limit - after;
  const std::vector<LayerLoad> loads = layer_loads(limit);
  const InterleavedPipeline pipeline = interleaved_pipeline();
  int most = 0;
  for (const LayerLoad& load : loads)
    most = std::max(most, (load.most_layers() + layout_.chunks - 1) / layout_.chunks);
  for (int first = 1; first <= most; ++first) {
    InterleavedPipeline own = pipeline;
    int layers = 0;
    for (std::size_t s = 0; s < loads.size(); ++s) {
      const bool is_end = s == 0 || s + 1 == loads.size();
      set_recompute(loads[s], layout_.chunks * first, is_end ? 1 : 0, own.stages[s]);
      layers += own.stages[s].most_layers;
    }
    if (layers < own.layers) continue;
    const double known = std::max(layout_.untied, layout_.bound - after).value;
    const InterleavedBound found = interleaved_bound(own, known, limit.value, stop_);
    if (Seconds(found.step) < limit)
      numbers.push_back({first, Seconds(found.step) + after, std::move(own)});
  }
  std::ranges::stable_sort(numbers, {}, &Number::bound);
  return numbers;
}

}  // namespace plait
