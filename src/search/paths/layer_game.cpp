#include "search/paths/layer_game.h"

#include <algorithm>
#include <numeric>

#include "search/paths/layer_moves.h"
#include "search/paths/matrix_game.h"

namespace plait {
namespace {

constexpr int kGameRounds = 150;
constexpr double kSame = 1e-9;    // relative
constexpr double kSolved = 5e-4;  // bound and division are that near
constexpr double kNear = 1.1;     // to what is wanted, for its neighbours to be looked at
constexpr std::size_t kFound = 4;
constexpr int kFirstHalvings = 10;  // for the first division
constexpr int kRowsAtOnce = 256;    // between two looks at the clock

using Division = DividedStages;

// Weights of what divisions take on a mean of paths.
struct MeanPath {
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> finish;
  double hand_overs = 0;
};

class LayerGame {
 public:
  LayerGame(StepGraph& graph, const LayerPipeline& pipeline)
      : graph_(graph),
        pipeline_(pipeline),
        count_(static_cast<int>(pipeline.stages.size())),
        chunks_(graph.shape().chunks) {
    set_leads();
    set_alone();
  }

  LayerBound run(double enough, const LayerGameEffort& effort) {
    LayerBound out;
    stop_ = &effort.stop;
    if (stop()) return {0, {}};
    allow(enough);
    double low = play(enough, effort.rounds);
    if (std::isinf(low)) return {may_be_placed(enough), {}};
    double high = std::min(enough, upper());
    for (int i = 0; i < effort.halvings && low < high * (1 - kSolved) && !stop(); ++i) {
      const double middle = (low + high) / 2;
      allow(middle);
      const double own = play(middle, std::max(1, effort.rounds / 4));
      low = std::max(low, std::min(middle, own));
      high = own >= middle ? std::min(high, upper()) : middle;
    }
    if (effort.neighbours > 0 && upper() < kNear * enough) look_around(effort.neighbours);
    out.step = low;
    out.found = std::move(found_);
    return out;
  }

 private:
  bool stop() const { return (*stop_)(); }
  double upper() const { return found_.empty() ? HUGE_VAL : found_.front().step; }

  // Nothing can be placed in less than `enough`: at all?
  double may_be_placed(double enough) {
    allow(HUGE_VAL);
    const MeanPath nothing = mean_of({});
    return least(nothing).stages.empty() && !stop() ? HUGE_VAL : enough;
  }

  // Before a stage begins, the first micro-batch has passed the first chunks of those before it,
  // and after its last backward pass the last one passes them again.
  void set_leads() {
    double in = 0;
    double out = 0;
    for (int s = 0; s < count_; ++s) {
      lead_in_.push_back(in);
      lead_out_.push_back(out);
      double forward = HUGE_VAL;
      double backward = HUGE_VAL;
      for (const auto& ways : *pipeline_.stages[s].divisions)
        for (const LayerDivision& way : ways) {
          forward = std::min(forward, way.forward.front());
          backward = std::min(backward, way.backward.front());
        }
      if (!std::isfinite(forward)) continue;  // nothing fits there
      const double send = s + 1 < count_ ? graph_.shape().send[s] : 0;
      in += forward + send;
      out += backward + send;
    }
  }

  // What a stage takes alone with each division, and at least with so many layers.
  void set_alone() {
    const double m = graph_.shape().micro_batches;
    alone_.resize(count_);
    least_alone_.resize(count_);
    for (int s = 0; s < count_; ++s) {
      const LayerPipeline::Stage& stage = pipeline_.stages[s];
      for (const auto& ways : *stage.divisions) {
        const auto layers = static_cast<double>(alone_[s].size());
        const double wire = layers * stage.wire + stage.wire_of_ends;
        std::vector<double>& own = alone_[s].emplace_back();
        double least = HUGE_VAL;
        for (const LayerDivision& way : ways) {
          const double busy = m * (std::accumulate(way.forward.begin(), way.forward.end(), 0.0) +
                                   std::accumulate(way.backward.begin(), way.backward.end(), 0.0));
          const double time = busy + lead_in_[s] + std::max(way.finish, lead_out_[s]);
          own.push_back(std::max(wire, time + pipeline_.after));
          least = std::min(least, own.back());
        }
        least_alone_[s].push_back(least);
      }
    }
  }

  // Which divisions let a stage alone finish within a step of that length.
  void allow(double step) {
    const double limit = step * (1 + kSame);
    allowed_.resize(count_);
    for (int s = 0; s < count_; ++s) {
      const StageDivisions& divisions = *pipeline_.stages[s].divisions;
      allowed_[s].resize(divisions.size());
      for (std::size_t n = 0; n < divisions.size(); ++n) {
        allowed_[s][n].clear();
        for (std::size_t w = 0; w < divisions[n].size(); ++w)
          if (alone_[s][n][w] <= limit) allowed_[s][n].push_back(&divisions[n][w]);
      }
    }
  }

  PipelineTimes mean_times(const std::vector<double>& part) const {
    PipelineTimes mean = times_.front();
    const auto add = [](std::vector<double>& sum, const std::vector<double>& own, double weight) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * own[i];
    };
    for (std::vector<double>* sum : {&mean.forward, &mean.backward, &mean.finish})
      std::ranges::fill(*sum, 0.0);
    for (std::size_t j = 0; j < part.size(); ++j) {
      if (part[j] <= 0) continue;
      add(mean.forward, times_[j].forward, part[j]);
      add(mean.backward, times_[j].backward, part[j]);
      add(mean.finish, times_[j].finish, part[j]);
    }
    return mean;
  }

  MeanPath mean_of(const std::vector<double>& part) const {
    MeanPath mean;
    mean.forward.assign(static_cast<std::size_t>(count_) * chunks_, 0);
    mean.backward = mean.forward;
    mean.finish.assign(count_, 0);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] <= 0) continue;
      for (std::size_t k = 0; k < mean.forward.size(); ++k) {
        mean.forward[k] += part[i] * paths_[i].forward[k];
        mean.backward[k] += part[i] * paths_[i].backward[k];
      }
      mean.finish[paths_[i].last] += part[i];
      mean.hand_overs += part[i] * paths_[i].hand_overs;
    }
    return mean;
  }

  double length_of(const MeanPath& mean, int stage, const LayerDivision& way) const {
    double sum = mean.finish[stage] * way.finish;
    for (int c = 0; c < chunks_; ++c)
      sum += mean.forward[stage * chunks_ + c] * way.forward[c] +
             mean.backward[stage * chunks_ + c] * way.backward[c];
    return sum;
  }

  struct Answer {
    double length = HUGE_VAL;
    Division stages;
  };

  // The division that is shortest on a mean of paths, of those allowed; none when it is stopped.
  Answer least(const MeanPath& mean) const {
    const int layers = pipeline_.layers;
    std::vector<double> before(layers + 1, HUGE_VAL);  // least sum, by layers placed
    std::vector<std::vector<const LayerDivision*>> taken;
    std::vector<std::vector<int>> placed;
    before[0] = 0;
    for (int s = 0; s < count_; ++s) {
      std::vector<double> next(layers + 1, HUGE_VAL);
      auto& own = taken.emplace_back(layers + 1, nullptr);
      auto& from = placed.emplace_back(layers + 1, -1);
      const int most = std::min(layers, static_cast<int>(allowed_[s].size()) - 1);
      for (int n = 0; n <= most; ++n) {
        if (n % kRowsAtOnce == 0 && stop()) return {};
        double length = HUGE_VAL;
        const LayerDivision* best = nullptr;
        for (const LayerDivision* way : allowed_[s][n]) {
          const double its = length_of(mean, s, *way);
          if (its < length) length = its, best = way;
        }
        if (best == nullptr) continue;
        for (int done = 0; done + n <= layers; ++done) {
          if (before[done] + length >= next[done + n]) continue;
          next[done + n] = before[done] + length;
          own[done + n] = best;
          from[done + n] = done;
        }
      }
      before = std::move(next);
    }
    if (!std::isfinite(before[layers])) return {};
    Answer out{before[layers] + mean.hand_overs + pipeline_.after, Division(count_)};
    int done = layers;
    for (int s = count_ - 1; s >= 0; --s) {
      out.stages[s] = taken[s][done];
      done = placed[s][done];
    }
    return out;
  }

  // Adds a division and its critical path, if it is new.
  bool add(const Division& division) {
    if (std::ranges::find(divisions_, division) != divisions_.end()) return false;
    divisions_.push_back(division);
    times_.push_back(times_of(division));
    for (std::size_t i = 0; i < paths_.size(); ++i)
      lengths_[i].push_back(paths_[i].length(times_.back()));
    const StepPath path = graph_.longest(times_.back());
    note(division, path.length(times_.back()) + pipeline_.after);
    add(path);
    return true;
  }

  bool add(const StepPath& path) {
    if (std::ranges::find(paths_, path) != paths_.end()) return false;
    paths_.push_back(path);
    std::vector<double>& row = lengths_.emplace_back();
    for (const PipelineTimes& times : times_) row.push_back(path.length(times));
    return true;
  }

  void note(const Division& division, double step) {
    const auto at = std::ranges::upper_bound(found_, step, {}, &DividedLayers::step);
    found_.insert(at, {step, division});
    if (found_.size() > kFound) found_.pop_back();
  }

  // The first division: all stages about as busy as each other.
  bool start(double step) {
    double high = step;
    if (!std::isfinite(high)) high = 1;
    while (!have_room(high) && high < step) high *= 2;
    double low = 0;
    for (int i = 0; i < kFirstHalvings && have_room(high); ++i) {
      const double middle = (low + high) / 2;
      (have_room(middle) ? high : low) = middle;
    }
    allow(high);
    MeanPath work = mean_of({});
    std::ranges::fill(work.forward, 1.0);
    std::ranges::fill(work.backward, 1.0);
    const Answer first = least(work);
    allow(step);
    if (first.stages.empty()) return false;
    add(first.stages);
    return true;
  }

  // Whether stages that take no longer each have room for all layers.
  bool have_room(double step) const {
    std::size_t sum = 0;
    for (const std::vector<double>& least : least_alone_) {
      std::size_t most = least.size();
      while (most > 0 && least[most - 1] > step * (1 + kSame)) --most;
      if (most == 0) return false;
      sum += most - 1;
    }
    return sum >= static_cast<std::size_t>(pipeline_.layers);
  }

  // What the least mean of allowed divisions is at least; infinite if there is none.
  double play(double step, int rounds) {
    double bound = 0;
    if (divisions_.empty() && !start(step)) return stop() ? 0 : HUGE_VAL;
    for (int round = 0; round < rounds && !stop(); ++round) {
      const Mixtures mixed = solve_matrix_game(lengths_, kGameRounds);
      const Answer answer = least(mean_of(mixed.rows));
      if (answer.stages.empty() && stop()) break;
      bound = std::max(bound, answer.length);
      if (bound >= step * (1 - kSame) || bound >= upper() * (1 - kSolved)) break;
      const bool more = add(answer.stages);
      const bool longer = add(graph_.longest(mean_times(mixed.columns)));
      if (!more && !longer) break;
    }
    return bound;
  }

  // Moves a layer from one stage to another as long as that makes the best step shorter. Each move
  // that fails tells a path more.
  void look_around(int most) {
    Division best = found_.front().stages;
    double step = found_.front().step;
    for (bool moved = true; moved && most > 0 && !stop();) {
      moved = false;
      const double wanted = step * (1 - kSame);
      for (const LayerMove& move : moves_that_may_help(pipeline_, paths_, best, wanted)) {
        if (most-- <= 0 || moved) break;
        Division other = best;
        shift(pipeline_, other, move.from, -1);
        shift(pipeline_, other, move.to, 1);
        const PipelineTimes times = times_of(other);
        if (longest_known(times) >= wanted) continue;
        StepPath path = graph_.longest(times);
        const double own = path.length(times) + pipeline_.after;
        if (own >= wanted) {
          paths_.push_back(std::move(path));
          continue;
        }
        step = own;
        best = other;
        note(best, step);
        moved = true;
      }
    }
  }

  double longest_known(const PipelineTimes& times) const {
    double longest = 0;
    for (const StepPath& path : paths_) longest = std::max(longest, path.length(times));
    return longest + pipeline_.after;
  }

  StepGraph& graph_;
  const LayerPipeline& pipeline_;
  const std::function<bool()>* stop_ = nullptr;
  int count_;
  int chunks_;
  std::vector<double> lead_in_;
  std::vector<double> lead_out_;
  std::vector<std::vector<std::vector<double>>> alone_;  // by stage, layers, way
  std::vector<std::vector<double>> least_alone_;
  std::vector<std::vector<std::vector<const LayerDivision*>>> allowed_;  // by stage, layers
  std::vector<Division> divisions_;                                      // columns of the game
  std::vector<PipelineTimes> times_;                                     // of each
  std::vector<StepPath> paths_;                                          // rows
  std::vector<std::vector<double>> lengths_;                             // [path][division]
  std::vector<DividedLayers> found_;
};

}  // namespace

LayerBound bound_layers(StepGraph& graph, const LayerPipeline& pipeline, double enough,
                        const LayerGameEffort& effort) {
  return LayerGame(graph, pipeline).run(enough, effort);
}

}  // namespace plait
