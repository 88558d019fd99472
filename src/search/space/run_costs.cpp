#include "search/space/run_costs.h"

#include <algorithm>

#include "cost/pipeline/schedule.h"

namespace plait {

RunCosts::RunCosts(const Space& space, const ScheduleSetting& rhythm, SpanFrame frame)
    : space_(space), rhythm_(rhythm), frame_(std::move(frame)) {
  if (const auto layers = space.pins().recompute_layers) first_ = FirstLayers{*layers, *layers};
  const Problem& problem = space.problem();
  most_stages_ = std::min(problem.model.unit_count(), problem.cluster.device_count());
  const UnitRange whole{0, problem.model.unit_count()};
  const Recompute recompute = space.recomputes().front();
  for (int r = 1; r < frame_.replica_count(); ++r)
    if (frame_.time_on(r, whole, recompute).total() >
        frame_.time_on(slowest_, whole, recompute).total())
      slowest_ = r;
}

RunCosts::Choice RunCosts::cost(const UnitRange& units, const UnitsRecomputed& recompute) const {
  const UnitCost time = frame_.time(recompute.of(units));
  const Seconds sync = frame_.gradient_sync(units, frame_.cover(time));
  return {{time.forward_total(), time.backward_total(), sync + frame_.optimizer(units)}, recompute};
}

RunInFlight RunCosts::in_flight(const UnitRange& units, int after) const {
  // Enough stages for the stage to be as far from the end as it is; the stages before it do not
  // matter to the schedules that are searched.
  const int live = chunks_in_flight(rhythm_.schedule, after + 1, 0, rhythm_.micro_batches, 1);
  return {units, 1.0 * live, rhythm_.schedule == Schedule::gpipe ? live - 1.0 : 0.0};
}

bool RunCosts::fits(const UnitRange& units, const UnitsRecomputed& recompute, int after) const {
  return plait::fits(space_, frame_, in_flight(units, after), recompute);
}

void RunCosts::recompute_first(const FirstLayers& layers) {
  first_ = layers;
  known_.clear();
  entries_.clear();
}

// More stages after it never leave a stage more memory.
RunCosts::Entry RunCosts::entry_of(const UnitRange& units, const UnitsRecomputed& least,
                                   const UnitsRecomputed& most_recomputed) const {
  int most = most_stages_;  // that fit, among 0 .. most_stages_ - 1 after it
  const double tied = space_.tied_copies().of(units);
  for (int r = 0; r < frame_.replica_count() && most > 0; ++r) {
    const SpanFrame::Memory memory = frame_.memory(r, most_recomputed.of(units), tied);
    const auto overflows = [&](int stages) {
      const int live = chunks_in_flight(rhythm_.schedule, stages, 0, rhythm_.micro_batches, 1);
      const int waiting = rhythm_.schedule == Schedule::gpipe ? live - 1 : 0;
      return memory.spare(live, waiting) < Bytes(0);
    };
    if (!overflows(most)) continue;
    int good = 0;
    while (most - good > 1) {
      const int middle = (good + most) / 2;
      (overflows(middle) ? most : good) = middle;
    }
    most = good;
  }
  if (most == 0) return {{}, {}, {}, -1, {}};
  const Choice time = cost(units, least);
  return {time.forward, time.backward, time.finish, most - 1, least};
}

std::optional<RunCosts::Choice> RunCosts::choose(const UnitRange& units, int after) {
  const RunClasses& classes = space_.run_classes();
  const std::vector<Recompute>& recomputes = space_.recomputes();
  if (!classes.are_few()) {
    if (first_) {
      const std::vector<int>& starts = space_.layer_starts();
      if (!fits(units, first_layers(starts, units, first_->most), after)) return std::nullopt;
      return cost(units, first_layers(starts, units, first_->least));
    }
    for (const Recompute recompute : recomputes) {
      const UnitsRecomputed all = UnitsRecomputed::all(recompute);
      if (fits(units, all, after)) return cost(units, all);
      if (space_.recomputes_by_layer()) return choose_by_layer(units, after);
    }
    return std::nullopt;
  }
  if (known_.empty()) known_.assign(classes.count() * recomputes.size(), -1);
  const std::size_t at = classes.of(units) * recomputes.size();
  for (std::size_t r = 0; r < recomputes.size(); ++r) {
    if (known_[at + r] < 0) {
      known_[at + r] = static_cast<int>(entries_.size());
      entries_.push_back(new_entry(classes.firsts()[classes.of(units)], recomputes[r]));
    }
    const Entry& entry = entries_[known_[at + r]];
    if (after <= entry.most_after)
      return Choice{{entry.forward, entry.backward, entry.finish}, entry.recompute};
    if (first_) return std::nullopt;
    if (space_.recomputes_by_layer()) return choose_by_layer(units, after);
  }
  return std::nullopt;
}

RunCosts::Entry RunCosts::new_entry(const UnitRange& units, Recompute recompute) const {
  const UnitsRecomputed all = UnitsRecomputed::all(recompute);
  if (!first_) return entry_of(units, all, all);
  const std::vector<int>& starts = space_.layer_starts();
  return entry_of(units, first_layers(starts, units, first_->least),
                  first_layers(starts, units, first_->most));
}

std::optional<RunCosts::Choice> RunCosts::choose_by_layer(const UnitRange& units, int after) {
  const RunInFlight run = in_flight(units, after);
  const auto chosen = [&]() -> std::optional<Choice> {
    const auto least = least_recompute(space_, frame_, run);
    return least ? std::optional(cost(units, *least)) : std::nullopt;
  };
  if (!space_.run_classes().are_few()) return chosen();
  const std::int64_t key = space_.run_classes().of(units) * (rhythm_.micro_batches + 1) +
                           static_cast<std::int64_t>(run.live);
  const auto known = by_layer_.find(key);
  if (known != by_layer_.end()) return known->second;
  return by_layer_.emplace(key, chosen()).first->second;
}

int RunCosts::longest_last(int begin, std::size_t r) {
  const int units = space_.problem().model.unit_count();
  const UnitsRecomputed all = UnitsRecomputed::all(space_.recomputes()[r]);
  const auto fits_to = [&](int end) { return fits({begin, end}, all, 0); };
  longest_.resize(space_.recomputes().size());
  // Mostly as far as the run before it, or a little farther.
  int good = longest_[r] > begin && fits_to(longest_[r]) ? longest_[r] : begin;
  int bad = units + 1;
  for (int stride = 1; bad - good > 1; stride *= 2) {
    const int end = bad > units ? std::min(good + stride, units) : (good + bad) / 2;
    (fits_to(end) ? good : bad) = end;
  }
  return longest_[r] = good;
}

void RunCosts::set_sums() {
  sums_.emplace();
  sums_->rates = frame_.finish_rates();
  if (!sums_->rates) return;
  const int units = space_.problem().model.unit_count();
  sums_->parameters.reserve(units + 1);
  sums_->expert_parameters.reserve(units + 1);
  for (int u = 0; u <= units; ++u) {
    const UnitCost before = frame_.time_on(0, {0, u}, Recompute::none);
    sums_->parameters.push_back(before.trained);
    sums_->expert_parameters.push_back(before.trained_experts);
  }
  for (const Recompute recompute : space_.recomputes())
    for (int r = 0; r < frame_.replica_count(); ++r) {
      std::vector<PassTime>& times = sums_->times.emplace_back();
      std::vector<PassTime>& network = sums_->network.emplace_back();
      times.reserve(units + 1);
      network.reserve(units + 1);
      for (int u = 0; u <= units; ++u) {
        const UnitCost before = frame_.time_on(r, {0, u}, recompute);
        times.push_back({before.forward_total(), before.backward_total()});
        network.push_back({before.network_forward, before.network_backward});
      }
    }
}

StageTime RunCosts::summed(const UnitRange& units, std::size_t recompute) const {
  const Sums& sums = *sums_;
  const auto replicas = static_cast<std::size_t>(frame_.replica_count());
  const auto between = [](const std::vector<PassTime>& before, const UnitRange& range) {
    return PassTime{before[range.end].forward - before[range.begin].forward,
                    before[range.end].backward - before[range.begin].backward};
  };
  PassTime time;
  PassTime network;
  for (std::size_t r = 0; r < replicas; ++r) {
    const std::size_t at = recompute * replicas + r;
    const PassTime own = between(sums.times[at], units);
    if (r > 0 && own.total() <= time.total()) continue;
    time = own;
    network = between(sums.network[at], units);
  }
  const auto parameters = [&](const UnitRange& range) {
    return SpanFrame::FinishRates::Parameters{
        sums.parameters[range.end] - sums.parameters[range.begin],
        sums.expert_parameters[range.end] - sums.expert_parameters[range.begin]};
  };
  return {time.forward, time.backward,
          sums.rates->finish(parameters(units), parameters(frame_.first_layer(units)),
                             frame_.cover_of(time, network))};
}

void RunCosts::last_times(int begin, std::span<const int> ends, Seconds limit,
                          std::vector<StageTime>& times) {
  if (!sums_) set_sums();
  const int units = space_.problem().model.unit_count();
  const std::vector<Recompute>& recomputes = space_.recomputes();
  times.clear();
  if (first_) {
    for (const int end : ends) {
      const auto choice = choose({begin, end}, 0);
      if (!choice) return;
      times.push_back(*choice);
    }
    return;
  }
  std::size_t r = 0;
  int longest = longest_last(begin, r);
  for (const int end : ends) {
    const UnitRange run{begin, end};
    if (run.size() == units) {  // has no second copy of what is tied
      if (const auto choice = choose(run, 0)) times.push_back(*choice);
      return;
    }
    if (end > longest && space_.recomputes_by_layer()) {
      const auto choice = choose(run, 0);
      if (!choice) return;
      times.push_back(*choice);
      if (rhythm_.micro_batches * choice->total() + choice->finish >= limit) return;
      continue;
    }
    while (end > longest) {
      if (++r == recomputes.size()) return;
      longest = longest_last(begin, r);
    }
    times.push_back(sums_->rates ? summed(run, r) : cost(run, UnitsRecomputed::all(recomputes[r])));
    if (rhythm_.micro_batches * times.back().total() + times.back().finish >= limit) return;
  }
}

StageTime RunCosts::alone(const UnitRange& units) const {
  const UnitCost time = frame_.time_on(slowest_, units, space_.recomputes().front());
  return {time.forward_total(), time.backward_total(),
          frame_.least_gradient_sync(units) + frame_.optimizer(units)};
}

}  // namespace plait
