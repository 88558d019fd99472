#include "search/papers/aceso_optimum.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "search/papers/aceso_inside.h"
#include "search/papers/aceso_stages.h"

namespace plait {
namespace {

constexpr int kAllCuts = 640;        // up to so many ops, every cut is tried
constexpr int kAllMixedCuts = 3000;  // the same times devices, where stages may be mixed
constexpr int kCoarseCuts = 96;      // of a first look
constexpr int kWindow = 14;          // positions on each side of a cut that are tried next
constexpr std::size_t kMostLabels = 6;
constexpr int kMostImprovements = 4;
constexpr std::size_t kMostRefined = 6;
constexpr int kInsideReach = 5;          // ops on each side of a cut
constexpr double kWorthRefining = 1.05;  // over the best: pipelines of other numbers of stages
constexpr double kWidening[] = {1.04, 1.1, 1.2, 1.4, 2, 4, 1e9};

// The last stages of a pipeline.
struct AcesoLabel {
  double longest = 0;
  double sum = 0;
  int parent = -1;
  int option = -1;
  int begin = 0;  // op that it begins with
};

struct Found {
  double step = HUGE_VAL;
  std::vector<std::pair<int, int>> stages;  // option and first op, in order
};

// All pipelines for one size of micro-batch, with cuts at some ops.
class OneMicroBatch {
 public:
  OneMicroBatch(AcesoStages& stages, const AcesoFormula& formula, const AcesoTask& task,
                const SearchContext& context)
      : stages_(stages), task_(task), context_(context), per_node_(formula.devices_per_node()) {
    rounds_ = task.global_batch / stages.micro_batch() - 1.0;
    for (const auto& option : stages.options()) widest_ = std::max(widest_, option.devices);
  }

  double lower_bound() const { return bound(0, 0, stages_.work().back(), task_.devices); }

  // The best ones below `bar` of each number of stages that are within `slack` of the best, best
  // first.
  std::vector<Found> search(const std::vector<int>& cuts, double bar, double slack);

 private:
  double bound(double longest, double sum, double work, int devices) const {
    if (devices == 0) return work > 0 ? HUGE_VAL : rounds_ * longest + sum;
    return rounds_ * std::max(longest, work / devices) + sum + work / widest_;
  }
  bool is_inside_node(int used, int devices) const {
    const int end = task_.devices - used;
    return devices <= end && (end - devices) / per_node_ == (end - 1) / per_node_;
  }
  void extend(int behind, int used, std::size_t at, int label);
  void extend(int behind, int used, std::size_t at, int label, int option);
  void keep(int used, std::size_t at, const AcesoLabel& label);
  double step(const AcesoLabel& label) const { return rounds_ * label.longest + label.sum; }
  void finish(int stages, const AcesoLabel& label);

  AcesoStages& stages_;
  const AcesoTask& task_;
  const SearchContext& context_;
  int per_node_;
  double rounds_ = 0;
  int widest_ = 1;
  std::vector<int> cuts_;
  double bar_ = HUGE_VAL;
  double slack_ = 1;
  std::vector<int> best_;  // label by number of stages; -1 = none
  std::vector<AcesoLabel> labels_;
  std::vector<std::vector<int>> next_;  // by devices used and position: labels
};

void OneMicroBatch::keep(int used, std::size_t at, const AcesoLabel& label) {
  std::vector<int>& all = next_[used * cuts_.size() + at];
  for (const int other : all)
    if (labels_[other].longest <= label.longest && labels_[other].sum <= label.sum) return;
  std::erase_if(all, [&](int other) {
    return label.longest <= labels_[other].longest && label.sum <= labels_[other].sum;
  });
  labels_.push_back(label);
  all.push_back(static_cast<int>(labels_.size()) - 1);
  if (all.size() <= kMostLabels) return;
  all.erase(std::ranges::max_element(all, {}, [&](int l) { return step(labels_[l]); }));
}

void OneMicroBatch::finish(int stages, const AcesoLabel& label) {
  if (best_[stages] >= 0 && step(labels_[best_[stages]]) <= step(label)) return;
  bar_ = std::min(bar_, slack_ * step(label));
  labels_.push_back(label);
  best_[stages] = static_cast<int>(labels_.size()) - 1;
}

void OneMicroBatch::extend(int behind, int used, std::size_t at, int label, int option) {
  const int devices = stages_.options()[option].devices;
  if (!is_inside_node(used, devices)) return;
  const int rest = task_.devices - used - devices;
  const bool out = (task_.devices - used) % per_node_ == 0;
  const bool in = rest > 0 && rest % per_node_ == 0;
  const int end = cuts_[at];
  const AcesoLabel before = labels_[label];
  const double send = stages_.send(option, end, out);
  const std::vector<double>& work = stages_.work();
  std::size_t from = at;
  if (rest == 0) from = 1;  // only the stage that begins with the first op
  while (from-- > 0) {
    const int begin = cuts_[from];
    if (rest > 0 && from == 0) break;
    const double least = stages_.least(option, begin, end) + send;
    if (bound(std::max(before.longest, least), before.sum + least, 0, 0) >= bar_) break;
    if (bound(before.longest, before.sum + least, work[begin], rest) >= bar_) continue;
    const double time =
        stages_.time(option, behind, begin, end) + send + stages_.receive(option, begin, in);
    AcesoLabel own{std::max(before.longest, time), before.sum + time, label, option, begin};
    const double reach = bound(own.longest, own.sum, work[begin], rest);
    if (reach >= bar_) continue;
    if (rest > 0) {
      keep(used + devices, from, own);
    } else if (behind + 1 >= task_.first_stages) {
      finish(behind + 1, own);
    }
  }
}

void OneMicroBatch::extend(int behind, int used, std::size_t at, int label) {
  const AcesoLabel& own = labels_[label];
  const double reach = bound(own.longest, own.sum, stages_.work()[cuts_[at]], task_.devices - used);
  if (reach >= bar_) return;
  for (int option = 0; option < static_cast<int>(stages_.options().size()); ++option)
    extend(behind, used, at, label, option);
}

std::vector<Found> OneMicroBatch::search(const std::vector<int>& cuts, double bar, double slack) {
  cuts_ = cuts;
  bar_ = bar;
  slack_ = slack;
  labels_.assign(1, {0, 0, -1, -1, cuts.back()});
  const std::size_t width = cuts.size();
  std::vector<std::vector<int>> current((task_.devices + 1) * width);
  current[width - 1] = {0};
  const int most = std::min(task_.last_stages, task_.devices);
  best_.assign(most + 1, -1);
  for (int behind = 0; behind < most && !context_.should_stop(); ++behind) {
    next_.assign((task_.devices + 1) * width, {});
    for (int used = 0; used < task_.devices; ++used)
      for (std::size_t at = width; at-- > 1;)
        for (const int label : current[used * width + at]) extend(behind, used, at, label);
    current.swap(next_);
  }
  std::vector<Found> out;
  for (const int best : best_) {
    if (best < 0 || step(labels_[best]) > bar_) continue;
    Found& found = out.emplace_back();
    found.step = step(labels_[best]);
    for (int l = best; labels_[l].parent >= 0; l = labels_[l].parent)
      found.stages.emplace_back(labels_[l].option, labels_[l].begin);
  }
  std::ranges::stable_sort(out, {}, &Found::step);
  return out;
}

// Of the starts of segments as many as a first look takes.
std::vector<int> coarse_cuts(const std::vector<int>& starts) {
  const std::size_t stride = (starts.size() + kCoarseCuts - 1) / kCoarseCuts;
  std::vector<int> cuts;
  for (std::size_t i = 0; i + 1 < starts.size(); i += stride) cuts.push_back(starts[i]);
  cuts.push_back(starts.back());
  return cuts;
}

// Positions near those of the pipeline, `stride` apart.
std::vector<int> nearby_cuts(const Found& found, int ops, int stride) {
  std::set<int> cuts{0, ops};
  for (const auto& [option, begin] : found.stages)
    for (int i = -kWindow; i <= kWindow; ++i)
      if (const int at = begin + i * stride; at > 0 && at < ops) cuts.insert(at);
  return {cuts.begin(), cuts.end()};
}

std::vector<int> all_cuts(int ops) {
  std::vector<int> cuts;
  for (int i = 0; i <= ops; ++i) cuts.push_back(i);
  return cuts;
}

// Sizes of micro-batches that files have and that divide the batch.
std::vector<int> micro_batches(const AcesoFormula& formula, const AcesoTask& task) {
  std::set<int> sizes;
  for (const auto& [point, rows] : formula.table().points)
    if (task.global_batch % point.micro_batch == 0 &&
        task.micro_batch.value_or(point.micro_batch) == point.micro_batch)
      sizes.insert(point.micro_batch);
  return {sizes.begin(), sizes.end()};
}

struct Candidate {
  std::unique_ptr<AcesoStages> stages;
  std::unique_ptr<OneMicroBatch> search;
  std::vector<Found> found;  // best first
  double step() const { return found.empty() ? HUGE_VAL : found.front().step; }
};

// Better cuts of a pipeline below the bar: near its own, finer and finer.
Found refined(OneMicroBatch& search, Found found, int ops, double bar) {
  const auto improve = [&](int stride) {
    const std::vector<Found> better =
        search.search(nearby_cuts(found, ops, stride), std::min(bar, found.step), 1);
    if (!better.empty()) found = better.front();
    return !better.empty();
  };
  for (int stride = std::max(1, ops / kCoarseCuts / 2);; stride = std::max(1, stride / 8)) {
    improve(stride);
    if (stride == 1) break;
  }
  for (int again = 0; again < kMostImprovements && improve(1); ++again) {
  }
  return found;
}

void take(Candidate& candidate, const Found& found, double& bar) {
  if (candidate.step() > found.step) candidate.found.insert(candidate.found.begin(), found);
  bar = std::min(bar, found.step);
}

// Every cut of every candidate, with what the others have reached as a bar.
void refine_all(std::vector<Candidate>& candidates, int ops, double& bar) {
  for (Candidate& one : candidates) {
    const std::vector<Found> found = one.search->search(all_cuts(ops), bar, 1);
    if (!found.empty()) take(one, found.front(), bar);
  }
}

// The most promising pipelines, whatever their micro-batch and number of stages.
std::vector<std::pair<Candidate*, Found>> promising(std::vector<Candidate>& candidates) {
  std::vector<std::pair<Candidate*, Found>> all;
  for (Candidate& one : candidates)
    for (const Found& found : one.found) all.emplace_back(&one, found);
  std::ranges::stable_sort(all, {}, [](const auto& pair) { return pair.second.step; });
  if (all.size() > kMostRefined) all.resize(kMostRefined);
  return all;
}

void refine_best(std::vector<Candidate>& candidates, int ops, double& bar) {
  for (auto& [candidate, found] : promising(candidates))
    take(*candidate, refined(*candidate->search, found, ops, found.step), bar);
}

std::vector<Candidate> candidates_of(const AcesoFormula& formula, const AcesoTask& task,
                                     const SearchContext& context) {
  std::vector<Candidate> candidates;
  const int widest = std::min(formula.devices_per_node(), task.devices);
  for (const int size : micro_batches(formula, task)) {
    Candidate one;
    one.stages = std::make_unique<AcesoStages>(formula, size, task.memory, widest);
    if (one.stages->options().empty()) continue;
    one.search = std::make_unique<OneMicroBatch>(*one.stages, formula, task, context);
    candidates.push_back(std::move(one));
  }
  std::ranges::stable_sort(candidates, {},
                           [](const Candidate& c) { return c.search->lower_bound(); });
  return candidates;
}

// Pipelines that are cut between layers; the best step.
double look_coarsely(std::vector<Candidate>& candidates) {
  double best = HUGE_VAL;
  for (Candidate& one : candidates) {
    const std::vector<int> cuts = coarse_cuts(one.stages->segment_starts());
    for (const double factor : kWidening) {
      if (!one.found.empty()) break;
      one.found = one.search->search(cuts, factor * one.search->lower_bound(), kWorthRefining);
    }
    best = std::min(best, one.step());
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::step);
  return best;
}

void rank(std::vector<AcesoStage> stages, int micro_batch, const AcesoFormula& formula,
          const AcesoTask& task, AcesoOptimum& out) {
  const auto cost = formula.cost(stages, task.global_batch, micro_batch);
  if (!cost || cost->memory > task.memory) return;
  out.plans.push_back({std::move(stages), micro_batch, *cost});
}

void rank(Candidate& candidate, const AcesoFormula& formula, const AcesoTask& task,
          AcesoOptimum& out) {
  if (candidate.found.empty()) return;
  const auto& found = candidate.found.front().stages;
  std::vector<AcesoStage> stages;
  for (std::size_t i = 0; i < found.size(); ++i)
    stages.push_back(candidate.stages->stage(
        found[i].first, static_cast<int>(found.size() - 1 - i),
        {found[i].second, i + 1 < found.size() ? found[i + 1].second : formula.op_count()}));
  rank(std::move(stages), candidate.stages->micro_batch(), formula, task, out);
}

// The most promising pipelines, each op in its own way.
void rank_inside(std::vector<Candidate>& candidates, const AcesoFormula& formula,
                 const AcesoTask& task, AcesoOptimum& out) {
  std::vector<std::pair<Candidate*, Found>> all = promising(candidates);
  std::map<int, AcesoInside> insides;
  for (const auto& [candidate, found] : all) {
    const int micro_batch = candidate->stages->micro_batch();
    AcesoInside& inside =
        insides.try_emplace(micro_batch, formula, micro_batch, task.memory).first->second;
    AcesoOutline outline;
    for (const auto& [option, begin] : found.stages) {
      outline.devices.push_back(candidate->stages->options()[option].devices);
      outline.begins.push_back(begin);
    }
    auto stages = with_best_inside(inside, formula, std::move(outline),
                                   task.global_batch / micro_batch, kInsideReach);
    if (stages) rank(std::move(*stages), micro_batch, formula, task, out);
  }
  for (const auto& [size, inside] : insides) out.evaluations += inside.evaluations();
}

}  // namespace

AcesoOptimum search_aceso_optimum(const AcesoFormula& formula, const AcesoTask& task,
                                  const SearchContext& context) {
  AcesoOptimum out;
  const int ops = formula.op_count();
  std::vector<Candidate> candidates = candidates_of(formula, task, context);
  double best = look_coarsely(candidates);
  const bool mixes = std::ranges::any_of(candidates, [](const Candidate& c) {
    return std::ranges::any_of(c.stages->options(), &AcesoStages::Option::mixed);
  });
  if (ops * (mixes ? task.devices : 1) <= (mixes ? kAllMixedCuts : kAllCuts))
    refine_all(candidates, ops, best);
  else if (!mixes)
    refine_best(candidates, ops, best);
  if (mixes) rank_inside(candidates, formula, task, out);
  for (Candidate& one : candidates) rank(one, formula, task, out);
  for (const Candidate& one : candidates) out.evaluations += one.stages->evaluations();
  std::ranges::stable_sort(out.plans, {}, [](const AcesoRanked& r) { return r.cost.step; });
  out.cut_short = context.should_stop();
  return out;
}

}  // namespace plait
