#include "search/bound/cluster_lower_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "cost/passing_tables.h"
#include "cost/pipeline/schedule.h"
#include "search/bound/cover/replica_needs.h"
#include "search/space/short_contexts.h"
#include "search/space/space.h"

namespace plait {
namespace {

// All sample counts up to this are looked at, beyond it the divisors of the batch.
constexpr int kSmallBatch = 16;

std::vector<int> sample_counts(int global_batch) {
  std::set<int> counts;
  for (int b = 1; b <= std::min(global_batch, kSmallBatch); ++b) counts.insert(b);
  for (const int b : divisors_of(global_batch)) counts.insert(b);
  return {counts.begin(), counts.end()};
}

// Compute of each unit kind on one device, forward and backward; 0 for kinds without units.
struct KindTimes {
  std::vector<double> all;
  std::vector<double> path;  // without what schedules that split the backward pass do aside
};
// The same over all split choices of a unit.
struct ChoiceTimes {
  KindTimes least;
  std::vector<double> most;
  std::vector<double> kept;  // path over all: the least
};
KindTimes kind_times(const Model& model, const UnitTable& table, bool splits) {
  KindTimes out{std::vector<double>(model.kinds.size()), std::vector<double>(model.kinds.size())};
  std::vector<bool> seen(model.kinds.size());
  for (int u = 0; u < model.unit_count(); ++u) {
    const int kind = model.units[u];
    if (seen[kind]) continue;
    seen[kind] = true;
    const UnitCost cost = table.cost({u, u + 1}, Recompute::none);
    out.all[kind] = (cost.forward + cost.backward + cost.weight_gradient).value;
    out.path[kind] = splits ? (cost.forward + cost.backward).value : out.all[kind];
  }
  return out;
}

ChoiceTimes choice_times(const Model& model, PassingTables& tables, ReplicaShape shape, int choices,
                         bool splits) {
  ChoiceTimes out;
  for (shape.split = 0; shape.split < choices; ++shape.split) {
    const KindTimes own = kind_times(model, tables.table(shape), splits);
    tables.forget();
    if (shape.split == 0) {
      out.least = own;
      out.most = own.all;
      out.kept.assign(own.all.size(), 1);
    }
    for (std::size_t k = 0; k < own.all.size(); ++k) {
      out.least.all[k] = std::min(out.least.all[k], own.all[k]);
      out.least.path[k] = std::min(out.least.path[k], own.path[k]);
      out.most[k] = std::max(out.most[k], own.all[k]);
      if (own.all[k] > 0) out.kept[k] = std::min(out.kept[k], own.path[k] / own.all[k]);
    }
  }
  return out;
}

// The one that has most to compute.
int main_kind(const Model& model) {
  std::vector<double> work(model.kinds.size());
  for (const int kind : model.units) work[kind] += model.kinds[kind].forward().value;
  return static_cast<int>(std::ranges::max_element(work) - work.begin());
}

}  // namespace

ClusterLowerBound::ClusterLowerBound(const CostEngine& engine, const Pins& pins,
                                     const Target& target, const std::function<bool()>& stop) {
  const Problem& problem = engine.problem();
  const Space space(problem, pins, target);
  const Model& model = problem.model;
  const std::size_t types = problem.cluster.device_types.size();
  global_batch_ = problem.job.global_batch;
  counts_ = sample_counts(global_batch_);
  efforts_.resize(types);
  paces_.resize(model.kinds.size());
  for (PaceTable& paces : paces_) paces.by_type.resize(types);
  units_of_kind_.resize(model.kinds.size());
  for (const int kind : model.units) ++units_of_kind_[kind];
  main_kind_ = main_kind(model);
  // Stages of interleaved pipelines begin with the first of their chunks.
  const auto fills = [](Schedule schedule) {
    return schedule == Schedule::gpipe || schedule == Schedule::one_f_one_b;
  };
  const std::vector<Schedule> schedules =
      pins.schedule ? std::vector{*pins.schedule} : target.schedules;
  fills_pipeline_ = std::ranges::all_of(schedules, fills);
  splits_ = std::ranges::any_of(schedules, splits_backward);
  split_choices_ = space.split_choices();

  std::set<std::tuple<int, int, int, int, bool>> cuts;  // type, tensor, context, expert, sequence
  std::set<int> micro_batches;
  const std::set<int> degrees = possible_tensor_degrees(space);
  const std::vector<int> contexts = short_contexts(space);
  for (const PlanSettings& s : space.settings()) {
    micro_batches.insert(s.micro_batches);
    // A sequence that is cut leaves less to compute; moves cut it wherever that comes out even.
    const bool cut_pinned = pins.sequence_parallel.value_or(true);
    for (const Pool& pool : space.pools())
      for (const int tensor : degrees) {
        const bool cut = cut_pinned && tensor > 1 && model.sequence_length % tensor == 0;
        cuts.insert({pool.type, tensor, s.context, s.expert, cut});
        for (const int context : contexts) cuts.insert({pool.type, tensor, context, s.expert, cut});
      }
  }
  micro_batches_.assign(micro_batches.begin(), micro_batches.end());
  CutPaces none;
  none.main.by_type.resize(types);
  none.ratios.assign(types, {std::vector<double>(model.kinds.size(), HUGE_VAL), 1});
  std::map<std::tuple<int, int, int, bool>, std::size_t> alike;
  PassingTables tables(engine, static_cast<double>(cuts.size() * counts_.size() * split_choices_));
  for (const auto& [type, tensor, context, expert, sequence_parallel] : cuts) {
    is_whole_ = !(stop && stop());
    if (!is_whole_) return;
    const auto [at, is_new] =
        alike.try_emplace({tensor, context, expert, sequence_parallel}, by_cut_.size());
    if (is_new) by_cut_.push_back(none);
    add_cut(model, tables, type, {1, tensor, context, expert, sequence_parallel},
            by_cut_[at->second]);
  }
  for (PaceTable& paces : paces_) sort_paces(paces);
  for (CutPaces& cut : by_cut_) sort_paces(cut.main);
  for (const int m : micro_batches_) economies_.push_back(economy_of(model, global_batch_ / m));
}

void ClusterLowerBound::sort_paces(PaceTable& paces) const {
  for (std::vector<Pace>& own : paces.by_type) {
    std::ranges::sort(own, {}, &Pace::time);
    for (std::size_t i = 1; i < own.size(); ++i)
      own[i].samples = std::max(own[i].samples, own[i - 1].samples);
    for (const Pace& pace : own) paces.times.push_back(pace.time);
  }
  std::ranges::sort(paces.times);
}

void ClusterLowerBound::add_cut(const Model& model, PassingTables& tables, int type,
                                const Sharding& cut, CutPaces& paces) {
  const double devices = static_cast<double>(cut.tensor) * cut.context;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    ReplicaShape shape;
    shape.device_type = type;
    shape.sharding = cut;
    shape.sharding.samples = counts_[i];
    const ChoiceTimes choices =
        choice_times(model, tables, shape, cut.tensor > 1 ? split_choices_ : 1, splits_);
    const KindTimes& times = choices.least;
    // Counts up to the next that is looked at are not slower.
    const int most = i + 1 < counts_.size() ? counts_[i + 1] - 1 : counts_[i];
    Effort effort{counts_[i], {}};
    for (std::size_t k = 0; k < times.all.size(); ++k) {
      effort.by_kind.push_back(times.all[k] * devices / counts_[i]);
      paces_[k].by_type[type].push_back({times.path[k], most / devices});
      if (units_of_kind_[k] == 0) continue;
      CutPaces::Ratios& ratios = paces.ratios[type];
      const double main = choices.most[main_kind_];
      ratios.of_main[k] = std::min(ratios.of_main[k], main > 0 ? times.all[k] / main : 0);
      ratios.kept = std::min(ratios.kept, choices.kept[k]);
    }
    paces.main.by_type[type].push_back({times.all[main_kind_], most / devices});
    efforts_[type].push_back(std::move(effort));
  }
}

ClusterLowerBound::Economy ClusterLowerBound::economy_of(const Model& model,
                                                         int most_samples) const {
  Economy economy;
  std::vector<double> spend(model.kinds.size(), HUGE_VAL);
  for (const std::vector<Effort>& efforts : efforts_) {
    std::vector<double> least(model.kinds.size(), HUGE_VAL);
    for (const Effort& effort : efforts)
      for (std::size_t k = 0; k < least.size() && effort.samples <= most_samples; ++k)
        least[k] = std::min(least[k], effort.by_kind[k]);
    double whole = 0;
    for (std::size_t k = 0; k < least.size(); ++k)
      if (units_of_kind_[k] > 0) whole += least[k] * units_of_kind_[k];
    economy.worth.push_back(whole > 0 ? 1 / whole : 0);
    for (std::size_t k = 0; k < spend.size(); ++k)
      spend[k] = std::min(spend[k], economy.worth.back() * least[k]);
  }
  for (std::size_t k = 0; k < spend.size(); ++k)
    if (units_of_kind_[k] > 0) economy.spend += spend[k] * units_of_kind_[k];
  return economy;
}

double ClusterLowerBound::latency(const PaceTable& paces, const std::vector<int>& devices,
                                  double samples) const {
  const auto too_short = [&](double time) {
    double done = 0;
    for (std::size_t p = 0; p < devices.size(); ++p) {
      if (devices[p] == 0) continue;
      const std::vector<Pace>& own = paces.by_type[p];
      const auto after = std::ranges::upper_bound(own, time, {}, &Pace::time);
      if (after != own.begin()) done += devices[p] * (after - 1)->samples;
    }
    return done < samples;
  };
  const auto at = std::ranges::partition_point(paces.times, too_short);
  return at == paces.times.end() ? HUGE_VAL : *at;
}

double ClusterLowerBound::way(const std::vector<int>& devices, double samples) const {
  double sum = 0;
  if (std::ranges::count_if(devices, [](int own) { return own > 0; }) <= 1) {
    for (std::size_t k = 0; k < paces_.size(); ++k)
      if (units_of_kind_[k] > 0) sum += units_of_kind_[k] * latency(paces_[k], devices, samples);
    return sum;
  }
  std::vector<double> least(units_of_kind_.size(), HUGE_VAL);
  for (const CutPaces& cut : by_cut_) {
    const double main = latency(cut.main, devices, samples);
    if (!std::isfinite(main)) continue;
    double kept = 1;
    for (std::size_t p = 0; p < devices.size(); ++p)
      if (devices[p] > 0) kept = std::min(kept, cut.ratios[p].kept);
    for (std::size_t k = 0; k < least.size(); ++k)
      for (std::size_t p = 0; p < devices.size(); ++p)
        if (devices[p] > 0) least[k] = std::min(least[k], kept * main * cut.ratios[p].of_main[k]);
  }
  for (std::size_t k = 0; k < least.size(); ++k)
    if (units_of_kind_[k] > 0) sum += units_of_kind_[k] * least[k];
  return sum;
}

double ClusterLowerBound::step_with(std::size_t i, const std::vector<int>& devices) const {
  const int m = micro_batches_[i];
  const double samples = static_cast<double>(global_batch_) / m;
  double worth = 0;
  for (std::size_t p = 0; p < devices.size(); ++p) worth += devices[p] * economies_[i].worth[p];
  if (!(worth > 0)) return HUGE_VAL;
  const double slowest = samples * economies_[i].spend / worth;
  const double first = way(devices, samples);
  return std::max(m * slowest, fills_pipeline_ ? first + (m - 1) * slowest : first);
}

Seconds ClusterLowerBound::step(const std::vector<int>& devices) const {
  if (!is_whole_) return Seconds(0);
  double best = HUGE_VAL;
  for (std::size_t i = 0; i < micro_batches_.size(); ++i)
    best = std::min(best, step_with(i, devices));
  return Seconds(best);
}

std::vector<int> ClusterLowerBound::micro_batches(const std::vector<int>& devices,
                                                  Seconds cutoff) const {
  if (!is_whole_) return micro_batches_;
  std::vector<int> out;
  for (std::size_t i = 0; i < micro_batches_.size(); ++i)
    if (Seconds(step_with(i, devices)) < cutoff) out.push_back(micro_batches_[i]);
  return out;
}

}  // namespace plait
