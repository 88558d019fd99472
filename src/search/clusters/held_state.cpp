#include "search/clusters/held_state.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cost/framework/framework.h"
#include "cost/op/adapters.h"

namespace plait {
namespace {

UnitRange common_units(const UnitRange& a, const UnitRange& b) {
  const int begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// Parameters of each unit: of experts, and the rest. A tied unit has a copy of its own.
std::vector<std::pair<double, double>> parameters_of(const Model& model, const Job& job) {
  std::vector<std::pair<double, double>> out;
  for (int u = 0; u < model.unit_count(); ++u) {
    auto& [experts, rest] = out.emplace_back(0.0, 0.0);
    for (const Op& op : model.unit(u).ops)
      (op.split == Split::experts ? experts : rest) += op.parameters * stored_share(job, op);
  }
  for (const Tie& tie : model.ties) out[tie.second].second += tie.parameters;
  return out;
}

}  // namespace

HeldState::HeldState(const Model& model, const Job& job, const Plan& plan, int devices)
    : shares_(devices) {
  const bool cut_weights = plan.zero == ZeroStage::parameters;
  const StateBytes bytes = state_bytes(job, cut_weights);
  for (auto& sums : bytes_before_) sums.push_back(0);
  for (const auto& [experts, rest] : parameters_of(model, job)) {
    // Adapters are small; what is not trained has no state.
    const double state = job.adapters ? 0 : bytes.optimizer;
    const double each[kKinds] = {rest * bytes.weight, rest * state, experts * bytes.weight,
                                 experts * state};
    for (int k = 0; k < kKinds; ++k) bytes_before_[k].push_back(bytes_before_[k].back() + each[k]);
  }
  for (const Stage& stage : plan.stages)
    for (const Span& span : stage.spans)
      for (int i = 0; i < static_cast<int>(stage.devices.size()); ++i) {
        const int tensor_rank = i % span.tensor;
        const int copy = i / span.tensor;
        const int copies = span.data * plan.context;
        Share share{span.units, {}};
        for (int k = 0; k < kKinds; ++k) {
          const int expert = k >= 2 ? plan.expert : 1;
          const bool cut = k % 2 == 0 ? cut_weights : plan.zero != ZeroStage::off;
          double rank = tensor_rank + static_cast<double>(span.tensor) * (copy % expert);
          double ranks = static_cast<double>(span.tensor) * expert;
          if (cut) {
            const int groups = std::max(1, copies / expert);
            const int group = copy / expert;
            rank = rank * groups + group;
            ranks *= groups;
          }
          share.parts[k] = {rank / ranks, (rank + 1) / ranks};
        }
        shares_[index(stage.devices[i])].push_back(share);
      }
}

Bytes HeldState::size(const UnitRange& units, int kind) const {
  return Bytes(bytes_before_[kind][units.end] - bytes_before_[kind][units.begin]);
}

double HeldState::union_length(std::vector<Interval>& intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin);
  double length = 0;
  double end = 0;
  for (const Interval& i : intervals) {
    if (i.end <= end) continue;
    length += i.end - std::max(end, i.begin);
    end = i.end;
  }
  return length;
}

Bytes HeldState::held(int device) const {
  Bytes sum;
  for (const Share& share : shares_[device])
    for (int k = 0; k < kKinds; ++k)
      sum += size(share.units, k) * (share.parts[k].end - share.parts[k].begin);
  return sum;
}

Bytes HeldState::kept(int device, const HeldState& other, int other_device) const {
  Bytes sum;
  for (const Share& a : shares_[device])
    for (const Share& b : other.shares_[other_device]) {
      const UnitRange units = common_units(a.units, b.units);
      for (int k = 0; k < kKinds && units.size() > 0; ++k) {
        const double length =
            std::min(a.parts[k].end, b.parts[k].end) - std::max(a.parts[k].begin, b.parts[k].begin);
        if (length > 0) sum += size(units, k) * length;
      }
    }
  return sum;
}

Bytes HeldState::kept_by_any(int device, const HeldState& other,
                             const std::vector<int>& others) const {
  Bytes sum;
  std::vector<Interval> overlaps;
  for (const Share& a : shares_[device]) {
    // Where spans of the others begin and end, units change hands.
    std::vector<int> cuts{a.units.begin, a.units.end};
    for (const int o : others)
      for (const Share& b : other.shares_[o])
        for (const int cut : {b.units.begin, b.units.end})
          if (a.units.begin < cut && cut < a.units.end) cuts.push_back(cut);
    std::ranges::sort(cuts);
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      const UnitRange units{cuts[c], cuts[c + 1]};
      if (units.size() == 0) continue;
      for (int k = 0; k < kKinds; ++k) {
        overlaps.clear();
        for (const int o : others)
          for (const Share& b : other.shares_[o]) {
            if (common_units(units, b.units).size() == 0) continue;
            const Interval both{std::max(a.parts[k].begin, b.parts[k].begin),
                                std::min(a.parts[k].end, b.parts[k].end)};
            if (both.begin < both.end) overlaps.push_back(both);
          }
        sum += size(units, k) * union_length(overlaps);
      }
    }
  }
  return sum;
}

Bytes HeldState::lost(const std::vector<bool>& survives) const {
  std::map<std::pair<int, int>, std::array<std::vector<Interval>, kKinds>> left;  // by span
  for (std::size_t d = 0; d < shares_.size(); ++d)
    for (const Share& share : shares_[d]) {
      auto& parts = left[{share.units.begin, share.units.end}];
      for (int k = 0; k < kKinds && survives[d]; ++k) parts[k].push_back(share.parts[k]);
    }
  Bytes sum;
  for (auto& [units, parts] : left)
    for (int k = 0; k < kKinds; ++k) {
      const double gone = 1 - union_length(parts[k]);
      if (gone > 1e-9) sum += size({units.first, units.second}, k) * gone;
    }
  return sum;
}

}  // namespace plait
