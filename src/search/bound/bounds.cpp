#include "search/bound/bounds.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace plait {
namespace {

// For every pair of kinds that follow each other, the first unit of one such pair.
std::vector<int> first_of_each_pair(const std::vector<int>& kind_of) {
  std::vector<int> firsts;
  std::set<std::pair<int, int>> seen;
  for (int u = 0; u + 1 < static_cast<int>(kind_of.size()); ++u)
    if (seen.emplace(kind_of[u], kind_of[u + 1]).second) firsts.push_back(u);
  return firsts;
}

}  // namespace

Bounds::Bounds(const Space& space, const PlanSettings& settings, Schedule schedule,
               StageCosts& costs, const std::function<bool()>& stop)
    : space_(space), settings_(settings), schedule_(schedule), costs_(costs) {
  const std::vector<int>& kind_of = space.problem().model.units;
  const int units = static_cast<int>(kind_of.size());
  // Units of one kind cost the same.
  std::vector<int> first_of_kind(space.problem().model.kinds.size(), -1);
  for (int u = units - 1; u >= 0; --u) first_of_kind[kind_of[u]] = u;
  std::vector<std::vector<double>> in_pipeline(costs.option_count());  // [option][kind]
  std::vector<std::vector<double>> in_step(costs.option_count());
  std::vector<double> fastest(first_of_kind.size(), HUGE_VAL);
  const std::vector<int> neighbours = first_of_each_pair(kind_of);
  for (int o = 0; o < costs.option_count(); ++o) {
    // What a run of units saves against its units one by one is latency; count it for none.
    Seconds latency;
    if (stop()) return;
    for (const int u : neighbours)
      latency = std::max(latency, costs.run_time(o, {u, u + 1}).finish +
                                      costs.run_time(o, {u + 1, u + 2}).finish -
                                      costs.run_time(o, {u, u + 2}).finish);
    for (std::size_t k = 0; k < first_of_kind.size(); ++k) {
      const int u = first_of_kind[k];
      const StageTime unit = u < 0 ? StageTime{} : costs.run_time(o, {u, u + 1});
      const Seconds finish = std::max(Seconds(0), unit.finish - latency);
      in_pipeline[o].push_back(unit.total().value);
      in_step[o].push_back(unit.total().value + finish.value / settings.micro_batches);
      fastest[k] = std::min(fastest[k], unit.total().value);
    }
  }
  pipeline_ = economy_of(in_pipeline);
  step_ = economy_of(in_step);

  least_latency_.emplace_back();
  for (int u = 0; u < units; ++u)
    least_latency_.push_back(least_latency_.back() + Seconds(fastest[kind_of[u]]));
}

Bounds::Economy Bounds::economy_of(const std::vector<std::vector<double>>& time) const {
  const std::vector<int>& kind_of = space_.problem().model.units;
  std::vector<double> units_of_kind(space_.problem().model.kinds.size(), 0);
  for (const int kind : kind_of) ++units_of_kind[kind];
  std::vector<double> alone(space_.pools().size(),
                            0);  // of pools that can be a stage by themselves
  std::vector<double> mixed(space_.pools().size(), 0);  // of the others
  for (int o = 0; o < costs_.option_count(); ++o) {
    const StageOption& option = costs_.option_at(o);
    double whole = 0;
    for (std::size_t k = 0; k < units_of_kind.size(); ++k)
      if (units_of_kind[k] > 0) whole += units_of_kind[k] * time[o][k];
    for (const Take& take : option.takes) {
      double& price = (option.takes.size() > 1 ? mixed : alone)[take.pool];
      price = std::max(price, 1 / (whole * option.devices()));
    }
  }
  Economy economy;
  for (std::size_t p = 0; p < alone.size(); ++p)
    economy.device_price.push_back(alone[p] > 0 ? alone[p] : mixed[p]);
  std::vector<double> spend(space_.problem().model.kinds.size(), HUGE_VAL);
  for (int o = 0; o < costs_.option_count(); ++o) {
    double price = 0;
    for (const Take& take : costs_.option_at(o).takes)
      price += take.devices * economy.device_price[take.pool];
    for (std::size_t k = 0; k < spend.size(); ++k)
      spend[k] = std::min(spend[k], price * time[o][k]);
  }
  economy.least_spend.push_back(0);
  for (const int kind : kind_of)
    economy.least_spend.push_back(economy.least_spend.back() + spend[kind]);
  return economy;
}

double Bounds::worth(const Economy& economy, std::span<const int> used) const {
  double worth = 0;
  for (std::size_t p = 0; p < used.size(); ++p)
    worth += (space_.pools()[p].size() - used[p]) * economy.device_price[p];
  return worth;
}

void Bounds::set_rest(std::span<const int> used, Rest& rest) const {
  rest.pipeline = worth(pipeline_, used);
  rest.step = worth(step_, used);
  if (relaxation_) relaxation_->tails().left_over(used, rest.by_cell);
}

Seconds Bounds::any_step() const {
  const std::vector<int> nothing_used(space_.pools().size(), 0);
  const int units = space_.problem().model.unit_count();
  return settings_.micro_batches *
         time_if_work_were_divisible(step_, units, worth(step_, nothing_used));
}

Seconds Bounds::tighten(const SendLowerBound& sends, Seconds incumbent, const BoundWork& work,
                        const std::function<bool()>& stop) {
  if (!space_.run_classes().are_few() || !std::isfinite(incumbent.value)) return any_step();
  if (!relaxation_ || !relaxation_->serves(incumbent)) {
    auto relaxation =
        std::make_unique<Relaxation>(space_, settings_, schedule_, costs_, sends, incumbent, stop);
    if (!relaxation->usable()) return any_step();
    relaxation_ = std::move(relaxation);
  }
  const std::vector<int> nothing_used(space_.pools().size(), 0);
  const Seconds least = time_if_work_were_divisible(pipeline_, space_.problem().model.unit_count(),
                                                    worth(pipeline_, nothing_used));
  return std::max(any_step(), relaxation_->tighten(pipeline_.device_price, least, work));
}

bool Bounds::hopeless(const PipelineSuffix& tail, int left, const Rest& rest, Seconds limit) const {
  if (relaxation_) return relaxation_->tails().reaches(tail, left, rest.by_cell, limit);
  return tail.length(std::max(least_latency_[left], slowest_stage(left, rest))) >= limit;
}

Seconds Bounds::step(const PipelineSuffix& tail, int left, const Rest& rest, Seconds tied) const {
  const Seconds open = std::max(least_latency_[left], slowest_stage(left, rest));
  const Seconds bound =
      std::max(tail.length(open),
               settings_.micro_batches * time_if_work_were_divisible(step_, left, rest.step)) +
      tied;
  return relaxation_ ? std::max(bound, relaxation_->tails().step(tail, left, rest.by_cell, tied))
                     : bound;
}

}  // namespace plait
