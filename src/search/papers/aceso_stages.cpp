#include "search/papers/aceso_stages.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"

namespace plait {
namespace {

constexpr int kMostMixedDegree = 8;

// Segments of decoders of T5 have no seam of their own in Aceso's rules.
bool starts_part(const AcesoFormula& formula, int op) {
  if (op == 0) return true;
  return formula.rule(op).starts_segment || !formula.rule(op).recomputable ||
         !formula.rule(op - 1).recomputable || formula.name(op) == "dec-1st-layernorm";
}

std::uint64_t key_of(int a, int b, int c) {
  return (static_cast<std::uint64_t>(a) << 42) | (static_cast<std::uint64_t>(b) << 21) |
         static_cast<std::uint64_t>(c);
}

}  // namespace

AcesoStages::AcesoStages(const AcesoFormula& formula, int micro_batch, Bytes memory,
                         int most_devices)
    : formula_(formula), micro_batch_(micro_batch), memory_(memory.value) {
  find_segments();
  add_ways(most_devices);
  add_work();
  fragments_.resize(ways_.size());
}

void AcesoStages::find_segments() {
  const int count = formula_.op_count();
  for (int op = 0; op < count; ++op) {
    if (starts_part(formula_, op)) starts_.push_back(op);
    segment_of_.push_back(static_cast<int>(starts_.size()) - 1);
  }
  starts_.push_back(count);
  std::map<std::vector<int>, int> kinds;
  const int segments = static_cast<int>(starts_.size()) - 1;
  for (int s = 0; s < segments; ++s) {
    std::vector<int> ops;
    for (int op = starts_[s]; op < starts_[s + 1]; ++op) ops.push_back(formula_.kind(op));
    const int next = starts_[s + 1];
    const bool keeps = next < count && !formula_.rule(next).starts_segment;
    ops.push_back(keeps ? 1 : 0);
    const auto [it, is_new] = kinds.emplace(std::move(ops), static_cast<int>(kinds.size()));
    if (is_new) {
      keep_last_.push_back(keeps);
      first_of_.push_back(s);
    }
    kind_of_.push_back(it->second);
  }
  counts_.assign(kinds.size(), std::vector<int>(segments + 1, 0));
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    for (int s = 0; s < segments; ++s)
      counts_[kind][s + 1] = counts_[kind][s] + (kind_of_[s] == static_cast<int>(kind) ? 1 : 0);
  same_run_.assign(segments, 0);
  for (int s = 0; s < segments; ++s) {
    const int first = first_of_[kind_of_[s]];
    int& run = same_run_[s];
    while (s + run < segments && kind_of_[s + run] == kind_of_[first + run]) ++run;
  }
}

// The rows of the way's ops, of several algorithms the fastest; false where one was not measured.
bool AcesoStages::add_rows(Way& way, bool chooses) const {
  way.rows.assign(formula_.kind_count(), nullptr);
  way.algorithms.assign(formula_.kind_count(), 0);
  way.time = way.weights = way.kept = {0};
  for (int op = 0; op < formula_.op_count(); ++op) {
    const AcesoOp*& row = way.rows[formula_.kind(op)];
    const int choices = row != nullptr ? 0 : chooses ? formula_.rule(op).algorithms : 1;
    for (int a = 0; a < choices; ++a) {
      const AcesoOp* other = formula_.row(op, {micro_batch_ / way.data, way.tensor, a});
      if (other == nullptr) continue;
      if (row != nullptr && other->forward + other->backward >= row->forward + row->backward)
        continue;
      row = other;
      way.algorithms[formula_.kind(op)] = a;
    }
    if (row == nullptr) return false;
    way.time.push_back(way.time.back() + (row->forward + row->backward).value);
    way.weights.push_back(way.weights.back() + row->weights.value);
    way.kept.push_back(way.kept.back() +
                       row->activations.value * formula_.rule(op).activation_share);
  }
  return true;
}

void AcesoStages::add_ways(int most_devices) {
  const bool chooses = aceso_family(formula_.table().name) == "resnet";
  std::map<int, std::vector<int>> by_devices;
  for (int devices = 1; devices <= most_devices; devices *= 2) {
    for (int tensor = 1; tensor <= devices; tensor *= 2) {
      Way way;
      way.tensor = tensor;
      way.data = devices / tensor;
      if (micro_batch_ % way.data != 0) continue;
      if (!add_rows(way, chooses)) continue;
      by_devices[devices].push_back(static_cast<int>(ways_.size()));
      options_.push_back({devices, static_cast<int>(ways_.size()), static_cast<int>(ways_.size())});
      ways_.push_back(std::move(way));
    }
  }
  if (chooses)
    for (const auto& [devices, ways] : by_devices)
      for (const int first : ways)
        for (const int second : ways)
          if (first != second && devices <= kMostMixedDegree)
            options_.push_back({devices, first, second});
  for (const Option& option : options_) add_borders(option);
}

void AcesoStages::add_borders(const Option& option) {
  const Way& first = ways_[option.first];
  const Way& second = ways_[option.second];
  const int kinds = formula_.kind_count();
  auto& in = receive_.emplace_back(2 * kinds, HUGE_VAL);
  auto& out = send_.emplace_back(2 * kinds, HUGE_VAL);
  for (int op = 0; op < formula_.op_count(); ++op) {
    const int kind = formula_.kind(op);
    if (in[2 * kind] < HUGE_VAL) continue;
    const AcesoOp* sender =
        formula_.row(op, {micro_batch_ / second.data, first.tensor, second.algorithms[kind]});
    for (const int across : {0, 1}) {
      in[2 * kind + across] = formula_.send(first.rows[kind]->input, across != 0).value;
      if (sender != nullptr)
        out[2 * kind + across] = formula_.send(sender->output, across != 0).value;
    }
  }
}

void AcesoStages::add_work() {
  work_ = {0};
  for (int op = 0; op < formula_.op_count(); ++op) {
    double least = HUGE_VAL;
    for (const Way& way : ways_)
      least = std::min(least, way.tensor * way.data * (way.time[op + 1] - way.time[op]));
    work_.push_back(work_.back() + least);
  }
}

double AcesoStages::least(int option, int begin, int end) const {
  const Option& own = options_[option];
  const Way& first = ways_[own.first];
  if (!own.mixed()) return first.time[end] - first.time[begin];
  double sum = 0;
  const Way& second = ways_[own.second];
  for (int s = segment_of_[begin]; s <= segment_of_[end - 1]; ++s) {
    const int from = std::max(begin, starts_[s]);
    const int to = std::min(end, starts_[s + 1]);
    sum += std::min(first.time[to] - first.time[from], second.time[to] - second.time[from]);
  }
  return sum;
}

double AcesoStages::receive(int option, int begin, bool across) const {
  return receive_[option][2 * formula_.kind(begin) + (across ? 1 : 0)];
}

double AcesoStages::send(int option, int end, bool across) const {
  return send_[option][2 * formula_.kind(end - 1) + (across ? 1 : 0)];
}

const AcesoStages::Fragment& AcesoStages::fragment(int way, int segment, int from, int to) {
  auto& known = fragments_[way][key_of(kind_of_[segment], from, to)];
  if (known) return *known;
  known = std::make_unique<Fragment>();
  std::vector<RecomputeOp> ops;
  for (int i = from; i < to; ++i) {
    const int op = starts_[segment] + i;
    const AcesoOp& row = *ways_[way].rows[formula_.kind(op)];
    const bool last = starts_[segment] + i + 1 == starts_[segment + 1];
    ops.push_back({row.forward.value, row.activations.value * formula_.rule(op).activation_share,
                   formula_.rule(op).recomputable && !(last && keep_last_[kind_of_[segment]])});
    known->forward_but_last = known->forward_reserved;
    known->backward_but_last = known->backward_reserved;
    known->forward_reserved = std::max(known->forward_reserved, row.forward_reserved.value);
    known->backward_reserved = std::max(known->backward_reserved, row.backward_reserved.value);
  }
  known->menu = recompute_menu(ops);
  return *known;
}

void AcesoStages::gather(int way, UnitRange ops, bool is_last) {
  const int first = segment_of_[ops.begin];
  const int last = segment_of_[ops.end - 1];
  const auto add = [&](int segment, int from, int to) {
    const UnitRange range{starts_[segment] + from, starts_[segment] + to};
    parts_.push_back({&fragment(way, segment, from, to), 1, -1, range, {}});
  };
  const auto size = [&](int segment) { return starts_[segment + 1] - starts_[segment]; };
  add(first, ops.begin - starts_[first], first == last ? ops.end - starts_[first] : size(first));
  if (first == last) return;
  const int end = is_last ? last : last + 1;  // the very last op counts differently
  for (std::size_t kind = 0; kind < counts_.size(); ++kind) {
    const int count = counts_[kind][end] - counts_[kind][first + 1];
    if (count == 0) continue;
    const int sample = first_of_[kind];
    parts_.push_back({&fragment(way, sample, 0, size(sample)),
                      count,
                      static_cast<int>(kind),
                      {starts_[first + 1], starts_[end]},
                      {}});
  }
  if (is_last) add(last, 0, ops.end - starts_[last]);
}

double AcesoStages::raise(double memory, double per_byte, bool& fits) {
  steps_.clear();
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const auto& menu = parts_[p].fragment->menu;
    parts_[p].raised.assign(menu.size(), 0);
    for (std::size_t level = 1; level < menu.size(); ++level)
      steps_.push_back({(menu[level].saved - menu[level - 1].saved) /
                            std::max(1e-12, menu[level].time - menu[level - 1].time),
                        static_cast<int>(p), static_cast<int>(level)});
  }
  std::ranges::sort(steps_, [](const Step& a, const Step& b) {
    return std::tie(b.ratio, a.part, a.level) < std::tie(a.ratio, b.part, b.level);
  });
  double time = 0;
  double saved = 0;
  double peak = 0;
  for (const Step& step : steps_) {
    Part& part = parts_[step.part];
    const RecomputePoint& low = part.fragment->menu[step.level - 1];
    const RecomputePoint& high = part.fragment->menu[step.level];
    peak = std::max(peak, high.peak);
    const double bytes = (high.saved - low.saved) * per_byte;
    int count = part.count;
    const double missing = memory - saved * per_byte + peak - memory_;
    if (missing <= bytes * count) count = std::max(1, static_cast<int>(std::ceil(missing / bytes)));
    count = std::min(count, part.count);
    part.raised[step.level] = count;
    time += count * (high.time - low.time);
    saved += count * (high.saved - low.saved);
    const double now = memory - saved * per_byte + peak;
    if (now > memory_) continue;
    take_back(memory_ - now, per_byte, time);
    fits = true;
    return time;
  }
  fits = false;
  return HUGE_VAL;
}

void AcesoStages::take_back(double slack, double per_byte, double& time) {
  for (std::size_t p = parts_.size(); p-- > 0;) {
    Part& part = parts_[p];
    const auto& menu = part.fragment->menu;
    int level = static_cast<int>(menu.size()) - 1;
    while (level > 0 && part.raised[level] == 0) --level;
    if (level == 0) continue;
    const double bytes = (menu[level].saved - menu[level - 1].saved) * per_byte;
    if (bytes > slack) continue;
    const int count = std::min(part.raised[level], static_cast<int>(slack / bytes));
    part.raised[level] -= count;
    slack -= count * bytes;
    time -= count * (menu[level].time - menu[level - 1].time);
  }
}

double AcesoStages::reshard(const Option& option, int at) const {
  const auto choice = [&](int way, int op) {
    return AcesoChoice{ways_[way].tensor, ways_[way].data, ways_[way].algorithms[formula_.kind(op)],
                       false};
  };
  const auto change =
      formula_.reshard(at, choice(option.first, at - 1), choice(option.second, at), micro_batch_);
  return (change.first + change.second).value;
}

// The time of the stage that takes the second way from `switched_at` on; its parts stay behind.
double AcesoStages::fit(const Option& option, int behind, UnitRange ops, int switched_at) {
  ++evaluations_;
  parts_.clear();
  const bool mixed = switched_at < ops.end;
  const Way& first = ways_[option.first];
  const Way& second = ways_[option.second];
  gather(option.first, {ops.begin, switched_at}, !mixed);
  if (mixed) gather(option.second, {switched_at, ops.end}, true);
  double forward = 0, backward = 0;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const bool last = p + 1 == parts_.size();
    const Fragment& fragment = *parts_[p].fragment;
    forward = std::max(forward, last ? fragment.forward_but_last : fragment.forward_reserved);
    backward = std::max(backward, last ? fragment.backward_but_last : fragment.backward_reserved);
  }
  const auto sum = [&](const std::vector<double> Way::*of) {
    return (first.*of)[switched_at] - (first.*of)[ops.begin] + (second.*of)[ops.end] -
           (second.*of)[switched_at];
  };
  const double weights = sum(&Way::weights);
  const double kept = first.rows[formula_.kind(ops.begin)]->input.value + sum(&Way::kept);
  const double memory = formula_.state_share() * weights + kept * (behind + 1) +
                        std::max(forward + backward, weights);
  double time = sum(&Way::time);
  if (mixed) time += reshard(option, switched_at);
  if (memory <= memory_) {
    for (Part& part : parts_) part.raised.assign(part.fragment->menu.size(), 0);
    return time;
  }
  bool fits = false;
  const double again = raise(memory, behind + 1, fits);
  return fits ? time + again : HUGE_VAL;
}

AcesoStages::Fit AcesoStages::best(const Option& option, int behind, UnitRange ops) {
  if (!option.mixed()) return {fit(option, behind, ops, ops.end), ops.end};
  Fit out{HUGE_VAL, 0};
  const Way& first = ways_[option.first];
  const Way& second = ways_[option.second];
  for (int s = segment_of_[ops.begin] + 1; s <= segment_of_[ops.end - 1]; ++s) {
    const int at = starts_[s];
    const double bare = first.time[at] - first.time[ops.begin] + second.time[ops.end] -
                        second.time[at] + reshard(option, at);
    if (bare >= out.time) continue;
    const double time = fit(option, behind, ops, at);
    if (time < out.time) out = {time, at};
  }
  return out;
}

double AcesoStages::time(int option, int behind, int begin, int end) {
  // Equal runs cost the same: look at the first of them.
  const int segment = segment_of_[begin];
  const int first = first_of_[kind_of_[segment]];
  if (segment_of_[end - 1] - segment < same_run_[segment]) {
    const int shift = starts_[segment] - starts_[first];
    begin -= shift;
    end -= shift;
  }
  const std::uint64_t key = key_of(option * 64 + std::min(behind, 63), begin, end);
  const auto known = times_.find(key);
  if (known != times_.end()) return known->second;
  const double time = best(options_[option], behind, {begin, end}).time;
  times_.emplace(key, static_cast<float>(time));
  return time;
}

AcesoStage AcesoStages::stage(int option, int behind, UnitRange ops) {
  const Option& own = options_[option];
  const Fit found = best(own, behind, ops);
  PLAIT_CHECK(found.time < HUGE_VAL);
  fit(own, behind, ops, found.switched_at);
  AcesoStage out;
  out.ops = ops;
  out.devices = own.devices;
  for (int op = ops.begin; op < ops.end; ++op) {
    const Way& way = ways_[op < found.switched_at ? own.first : own.second];
    out.choices.push_back({way.tensor, way.data, way.algorithms[formula_.kind(op)], false});
  }
  for (const Part& part : parts_) {
    int member = 0;
    const auto take = [&](int begin) {
      std::size_t level = 0;
      while (level + 1 < part.raised.size() && part.raised[level + 1] > member) ++level;
      const std::vector<bool>& chosen = part.fragment->menu[level].ops;
      for (std::size_t i = 0; i < chosen.size(); ++i)
        out.choices[begin + static_cast<int>(i) - ops.begin].recomputed = chosen[i];
      ++member;
    };
    if (part.kind < 0) take(part.ops.begin);
    for (int s = part.kind < 0 ? 0 : segment_of_[part.ops.begin];
         part.kind >= 0 && starts_[s] < part.ops.end; ++s)
      if (kind_of_[s] == part.kind && member < part.count) take(starts_[s]);
  }
  return out;
}

}  // namespace plait
