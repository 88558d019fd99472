#include "search/papers/aceso_inside.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace plait {
namespace {

constexpr double kFirstPrice = 1e-15;  // seconds a byte
constexpr double kLastPrice = 1e-8;
constexpr double kPriceStep = 8;
constexpr int kHalvings = 9;
constexpr int kMostWays = 4;
constexpr int kMostRounds = 6;

}  // namespace

const std::vector<AcesoInside::Way>& AcesoInside::ways(int devices) {
  const auto [it, is_new] = ways_.try_emplace(devices);
  if (!is_new) return it->second;
  for (int tensor = 1; tensor <= devices; tensor *= 2) {
    const int data = devices / tensor;
    if (micro_batch_ % data == 0 && formula_.row(0, {micro_batch_ / data, tensor, 0}) != nullptr &&
        static_cast<int>(it->second.size()) < kMostWays)
      it->second.push_back({tensor, data});
  }
  return it->second;
}

std::optional<AcesoInside::Choice> AcesoInside::priced(const AcesoPlace& place, UnitRange ops,
                                                       double price, bool& fits) {
  const std::vector<Way>& ways = this->ways(place.devices);
  const int states = 2 * static_cast<int>(ways.size());  // of a way, and whether it is recomputed
  if (states == 0) return std::nullopt;
  ++evaluations_;
  const double share = price * (place.behind + 1);
  struct Step {
    std::array<double, 2 * kMostWays> value;
    std::array<int, 2 * kMostWays> from;
    std::array<int, kMostWays> algorithm;
    std::array<double, kMostWays> kept;
  };
  std::vector<Step> steps(ops.size());
  for (int i = 0; i < ops.size(); ++i) {
    const int op = ops.begin + i;
    const AcesoRule& rule = formula_.rule(op);
    Step& own = steps[i];
    for (int w = 0; 2 * w < states; ++w) {
      const AcesoOp* best = nullptr;
      double least = HUGE_VAL;
      for (int a = 0; a < rule.algorithms; ++a) {
        const AcesoOp* row = formula_.row(op, {micro_batch_ / ways[w].data, ways[w].tensor, a});
        if (row == nullptr) continue;
        const double cost = (row->forward + row->backward).value +
                            price * formula_.state_share() * row->weights.value +
                            share * rule.activation_share * row->activations.value;
        if (cost >= least) continue;
        best = row;
        least = cost;
        own.algorithm[w] = a;
      }
      if (best == nullptr) return std::nullopt;
      if (i == 0)
        least += share * best->input.value + formula_.send(best->input, place.borders.in).value;
      own.kept[w] = rule.activation_share * best->activations.value;
      own.value[2 * w] = least;
      own.value[2 * w + 1] = rule.recomputable ? least + best->forward.value : HUGE_VAL;
    }
    if (i == 0) continue;
    const Step& last = steps[i - 1];
    const AcesoRule& before = formula_.rule(op - 1);
    const bool gives_back = before.activation_share != 1 || !rule.starts_segment;
    for (int w = 0; 2 * w < states; ++w) {
      std::array<double, 2> reach{HUGE_VAL, HUGE_VAL};
      std::array<int, 2> from{0, 0};
      for (int v = 0; 2 * v < states; ++v) {
        double change = 0;
        if (v != w) {
          const auto reshard = formula_.reshard(
              op, {ways[v].tensor, ways[v].data, last.algorithm[v], false},
              {ways[w].tensor, ways[w].data, own.algorithm[w], false}, micro_batch_);
          change = (reshard.first + reshard.second).value;
        }
        for (const int r : {0, 1})
          for (const int now : {0, 1}) {
            const double back = r == 1 && now == 1 && gives_back ? share * last.kept[v] : 0;
            const double value = last.value[2 * v + r] + change - back;
            if (value >= reach[now]) continue;
            reach[now] = value;
            from[now] = 2 * v + r;
          }
      }
      for (const int now : {0, 1}) {
        own.value[2 * w + now] += reach[now];
        own.from[2 * w + now] = from[now];
      }
    }
  }
  Choice out;
  out.stage.ops = ops;
  out.stage.devices = place.devices;
  out.stage.choices.resize(ops.size());
  int state = 0;
  for (int s = 1; s < states; ++s)
    if (steps.back().value[s] < steps.back().value[state]) state = s;
  for (int i = ops.size(); i-- > 0;) {
    const Way& way = ways[state / 2];
    out.stage.choices[i] = {way.tensor, way.data, steps[i].algorithm[state / 2], state % 2 == 1};
    if (i > 0) state = steps[i].from[state];
  }
  const auto cost = formula_.stage(out.stage, micro_batch_, place.behind, place.borders);
  if (!cost) return std::nullopt;
  fits = cost->memory() <= memory_;
  out.time = cost->time().value;
  return out;
}

AcesoInside::Choice AcesoInside::work_out(const AcesoPlace& place, UnitRange ops) {
  Choice best;
  best.time = HUGE_VAL;
  bool fits = false;
  const auto look = [&](double price) {
    const std::optional<Choice> found = priced(place, ops, price, fits);
    if (!found) return false;
    if (fits && found->time < best.time) best = *found;
    return true;
  };
  if (!look(0) || fits) return best;
  double high = kFirstPrice;
  while (high < kLastPrice && look(high) && !fits) high *= kPriceStep;
  if (!fits) return best;
  double low = high / kPriceStep;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::sqrt(low * high);
    look(middle);
    (fits ? high : low) = middle;
  }
  return best;
}

const AcesoInside::Choice* AcesoInside::best(const AcesoPlace& place, UnitRange ops) {
  const std::tuple key{place, ops.begin, ops.end};
  auto known = known_.find(key);
  if (known == known_.end()) known = known_.emplace(key, work_out(place, ops)).first;
  return known->second.time < HUGE_VAL ? &known->second : nullptr;
}

namespace {

struct Suffix {
  double longest = 0;
  double sum = 0;
  int parent = -1;
  int begin = 0;
  const AcesoInside::Choice* stage = nullptr;
};

// Pipelines of one outline with cuts near its own, built from the end.
std::vector<Suffix> best_cuts(AcesoInside& inside, const AcesoFormula& formula,
                              const AcesoOutline& outline, int micro_batches, int reach) {
  const int stages = static_cast<int>(outline.devices.size());
  const int count = formula.op_count();
  const auto step = [&](const Suffix& s) { return (micro_batches - 1.0) * s.longest + s.sum; };
  std::vector<Suffix> all{{0, 0, -1, count, nullptr}};
  std::vector<int> ends{0};
  int used = 0;
  for (const int devices : outline.devices) used += devices;
  for (int s = stages; s-- > 0;) {
    AcesoPlace place{outline.devices[s], stages - 1 - s, {}};
    place.borders.out = used % formula.devices_per_node() == 0;
    used -= outline.devices[s];
    place.borders.in = used > 0 && used % formula.devices_per_node() == 0;
    std::vector<int> next;
    const int least = s == 0 ? 0 : std::max(1, outline.begins[s] - reach);
    const int most = s == 0 ? 0 : std::min(count - 1, outline.begins[s] + reach);
    for (int begin = least; begin <= most; ++begin) {
      std::vector<int> kept;
      for (const int end : ends) {
        const Suffix after = all[end];
        if (after.begin <= begin) continue;
        const auto* choice = inside.best(place, {begin, after.begin});
        if (choice == nullptr) continue;
        const Suffix own{std::max(after.longest, choice->time), after.sum + choice->time, end,
                         begin, choice};
        const auto worse = [&](int other) {
          return all[other].longest <= own.longest && all[other].sum <= own.sum;
        };
        if (std::ranges::any_of(kept, worse)) continue;
        all.push_back(own);
        kept.push_back(static_cast<int>(all.size()) - 1);
      }
      next.insert(next.end(), kept.begin(), kept.end());
    }
    ends = std::move(next);
  }
  if (ends.empty()) return {};
  std::vector<Suffix> out;
  const auto best = std::ranges::min_element(ends, {}, [&](int e) { return step(all[e]); });
  for (int e = *best; all[e].stage != nullptr; e = all[e].parent) out.push_back(all[e]);
  return out;
}

}  // namespace

std::optional<std::vector<AcesoStage>> with_best_inside(AcesoInside& inside,
                                                        const AcesoFormula& formula,
                                                        AcesoOutline outline, int micro_batches,
                                                        int reach) {
  std::vector<Suffix> best;
  double step = HUGE_VAL;
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<Suffix> found = best_cuts(inside, formula, outline, micro_batches, reach);
    if (found.empty()) break;
    const double own = (micro_batches - 1.0) * found.front().longest + found.front().sum;
    if (own >= step) break;
    step = own;
    best = std::move(found);
    for (std::size_t s = 0; s < best.size(); ++s) outline.begins[s] = best[s].begin;
  }
  if (best.empty()) return std::nullopt;
  std::vector<AcesoStage> stages;
  for (const Suffix& suffix : best) stages.push_back(suffix.stage->stage);
  return stages;
}

}  // namespace plait
