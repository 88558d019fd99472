#include "search/uniform/division/chunk_descent.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "model/layers.h"
#include "search/uniform/division/learned_path.h"

namespace plait {
namespace {

constexpr double kOfAnOutline = 0.125;   // relative to a simulation
constexpr double kGain = 1e-6;           // relative; less is rounding
constexpr double kMostTraced = 300'000;  // tasks of a step whose path is looked for
// A start that is slower than the best plan by more is not followed.
constexpr double kFar = 1.15;

class Descent {
 public:
  explicit Descent(const ChunkDescent& own)
      : own_(own), model_(own.engine.problem().model), memo_(own.engine.problem()) {}

  void run(std::vector<int> layers, Shortlist& found) {
    if (!look(layers)) return;
    keep(std::move(layers));
    if (excess_ <= Bytes(0) && step_ > kFar * found.best()) return;
    while (spent_ < own_.most_simulations && step_once()) {
    }
    if (excess_ <= Bytes(0) && step_ < found.best()) found.offer(plan_);
  }

 private:
  // Whether these layers make a plan that is better than what is kept. Of plans that do not fit,
  // the one that lacks less memory is better.
  bool look(const std::vector<int>& layers) {
    const std::vector<int> begins = begins_of_layers(model_, layers);
    std::optional<Plan> plan;
    if (!begins.empty()) plan = own_.plan_of(begins);
    if (!plan) return false;
    next_ = std::move(*plan);
    spent_ += kOfAnOutline;
    cost_ = own_.engine.outline(next_, &memo_);
    const Bytes excess = excess_of(cost_);
    if (excess > Bytes(0)) return excess < excess_;
    const Seconds limit = excess_ > Bytes(0) ? Seconds(HUGE_VAL) : (1 - kGain) * step_;
    if (cost_.step >= limit) return false;
    spent_ += 1;
    const double tasks = 3.0 * next_.micro_batches * static_cast<double>(layers.size());
    Trace trace;
    cost_ = own_.engine.simulate(next_, tasks <= kMostTraced ? &trace : nullptr, &memo_, limit);
    if (!trace.events.empty()) paths_.push_back(learned_path(next_, layers, cost_, trace));
    return cost_.step < limit;
  }

  void keep(std::vector<int> layers) {
    layers_ = std::move(layers);
    plan_ = next_;
    step_ = cost_.step;
    excess_ = std::max(Bytes(0), excess_of(cost_));
    busy_.clear();
    const int stages = plan_.stage_count();
    const int chunks = chunk_count(plan_.stages.front());
    busy_.resize(layers_.size());
    for (int s = 0; s < stages; ++s)
      for (int c = 0; c < chunks; ++c) {
        const StageCost& stage = cost_.stages[s];
        const Seconds passes = stage.forward_total() + stage.backward_total();
        busy_[chunk_position(plan_.schedule, stages, s, c)] =
            excess_ > Bytes(0) ? -stage.spare().value : passes.value;
      }
  }

  // The longest of the known paths from the given one on.
  double longest(const std::vector<int>& layers, std::size_t from) const {
    double longest = 0;
    for (std::size_t i = from; i < paths_.size(); ++i)
      longest = std::max(longest, paths_[i].with(layers));
    return longest;
  }

  // Moves that leave some known path as long as the step are of no use; of others those come first
  // whose paths are shortest.
  bool step_by_paths() {
    struct Move {
      int from = 0;
      int to = 0;
      double length = 0;
    };
    const double wanted = (1 - kGain) * step_.value;
    std::vector<double> now;
    for (const LearnedPath& path : paths_) now.push_back(path.with(layers_));
    std::vector<Move> moves;
    const int count = static_cast<int>(layers_.size());
    for (int from = 0; from < count; ++from)
      for (int to = 0; to < count; ++to) {
        if (from == to || layers_[from] == 0) continue;
        Move move{from, to};
        for (std::size_t i = 0; i < now.size() && move.length < wanted; ++i)
          move.length = std::max(move.length, now[i] + paths_[i].gain[to] - paths_[i].gain[from]);
        if (move.length < wanted) moves.push_back(move);
      }
    std::ranges::stable_sort(moves, {}, &Move::length);
    const std::size_t known = paths_.size();
    for (const Move& move : moves) {
      if (spent_ >= own_.most_simulations) return false;
      std::vector<int> layers = layers_;
      --layers[move.from];
      ++layers[move.to];
      if (longest(layers, known) >= wanted || !look(layers)) continue;
      keep(std::move(layers));
      return true;
    }
    return false;
  }

  bool step_once() {
    if (excess_ <= Bytes(0) && !paths_.empty()) return step_by_paths();
    std::vector<std::pair<int, int>> moves;
    const int count = static_cast<int>(layers_.size());
    for (int from = 0; from < count; ++from)
      for (int to = 0; to < count; ++to)
        if (from != to && layers_[from] > 0) moves.emplace_back(from, to);
    std::ranges::stable_sort(moves, std::ranges::greater{}, [&](const auto& move) {
      return busy_[move.first] - busy_[move.second];
    });
    for (const auto& [from, to] : moves) {
      if (spent_ >= own_.most_simulations) return false;
      std::vector<int> layers = layers_;
      --layers[from];
      ++layers[to];
      if (!look(layers)) continue;
      keep(std::move(layers));
      return true;
    }
    return false;
  }

  const ChunkDescent& own_;
  const Model& model_;
  StageMemo memo_;
  double spent_ = 0;
  std::vector<int> layers_;
  std::vector<double> busy_;  // by chunk: what its stage has to do, or lacks of memory
  Plan plan_;
  Seconds step_ = Seconds(HUGE_VAL);
  Bytes excess_ = Bytes(HUGE_VAL);
  Plan next_;
  Estimate cost_;
  std::vector<LearnedPath> paths_;
};

}  // namespace

std::vector<int> layers_in_order(const Model& model, const Plan& plan) {
  const int stages = plan.stage_count();
  const int chunks = chunk_count(plan.stages.front());
  std::vector<int> layers(static_cast<std::size_t>(stages) * chunks, 0);
  for (int s = 0; s < stages; ++s)
    for (const Span& span : plan.stages[s].spans)
      for (int u = span.units.begin; u < span.units.end; ++u)
        layers[chunk_position(plan.schedule, stages, s, span.chunk)] +=
            begins_layer(model.unit(u)) ? 1 : 0;
  return layers;
}

std::vector<int> begins_of_layers(const Model& model, const std::vector<int>& layers) {
  const int units = model.unit_count();
  std::vector<int> starts;
  for (int u = 0; u < units; ++u)
    if (begins_layer(model.unit(u))) starts.push_back(u);
  starts.push_back(units - 1);  // the head may be a chunk of its own
  std::vector<int> begins{0};
  std::size_t done = 0;
  for (std::size_t c = 0; c + 1 < layers.size(); ++c) {
    done += layers[c];
    if (done >= starts.size() || starts[done] <= begins.back()) return {};
    begins.push_back(starts[done]);
  }
  return begins;
}

void descend(const ChunkDescent& descent, std::vector<int> layers, Shortlist& found) {
  Descent(descent).run(std::move(layers), found);
}

}  // namespace plait
