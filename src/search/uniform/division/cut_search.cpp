#include "search/uniform/division/cut_search.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "model/layers.h"

namespace plait {
namespace {

constexpr double kMostLabels = 12;  // of a stage that begins at a unit, with the usual work
constexpr std::size_t kCuts = 3;    // that are returned
// A cut that takes so many times what a plain balanced one does is not worth a label. Without a
// limit a model of 2,000 units has 2 million stages.
constexpr double kWorse = 1.25;

}  // namespace

CutSearch::CutSearch(const Space& space, const ScheduleSetting& rhythm, const CutLimits& limits,
                     double work)
    : space_(space),
      rhythm_(rhythm),
      limits_(limits),
      most_labels_(static_cast<std::size_t>(kMostLabels * work)),
      units_(space.problem().model.unit_count()),
      layers_before_{0} {
  const Model& model = space.problem().model;
  for (int u = 0; u < units_; ++u)
    layers_before_.push_back(layers_before_.back() + (begins_layer(model.unit(u)) ? 1 : 0));
}

int CutSearch::has_wrong_layers(const UnitRange& units) const {
  const int layers = layers_before_[units.end] - layers_before_[units.begin];
  if (limits_.most_layers > 0 && layers > limits_.most_layers) return 1;
  return layers < limits_.least_layers ? -1 : 0;
}

// By how much each respect of `kept` is above that of `other`, at most: a step that begins with it
// is longer by this part at most. A step is a sum of what is common and a maximum of these, with
// weights that are not below zero (PipelineSuffix::prepend). Where that is `enough` or more, no
// more than that is known.
double CutSearch::excess(const PipelineSuffix& kept, const PipelineSuffix& other, double enough) {
  const auto above = [](Seconds own, Seconds least) {
    if (own <= least) return 0.0;
    return least > Seconds(0) ? own / least - 1 : HUGE_VAL;
  };
  double most = above(kept.total, other.total);
  if (most >= enough) return most;
  most = std::max(most, above(kept.total + kept.slack, other.total + other.slack));
  if (most >= enough) return most;
  most = std::max(most, above(kept.total + kept.ended, other.total + other.ended));
  most = std::max(most, above(kept.most_forward, other.most_forward));
  return std::max(most, above(kept.most_backward, other.most_backward));
}

void CutSearch::insert(int stage, int begin, const Label& label) {
  std::vector<Label>& labels = labels_[stage][begin];
  for (const Label& other : labels)
    if (label.suffix.no_better_than(other.suffix)) return;
  // None of these is nearer to another one than the label that they are no better than.
  std::erase_if(labels,
                [&](const Label& other) { return other.suffix.no_better_than(label.suffix); });
  for (Label& other : labels)
    if (other.near >= 0)
      other.near = std::min(other.near, excess(label.suffix, other.suffix, other.near));
  const auto at = std::ranges::upper_bound(labels, label.suffix.step(), {},
                                           [](const Label& own) { return own.suffix.step(); });
  labels.insert(at, label);
  if (labels.size() > most_labels_) drop_one(stage, labels);
}

// Of too many, the one that another is nearest to being no worse than; never the best.
void CutSearch::drop_one(int stage, std::vector<Label>& labels) {
  for (std::size_t i = 1; i < labels.size(); ++i) {
    Label& own = labels[i];
    if (own.near >= 0) continue;
    own.near = HUGE_VAL;
    for (std::size_t k = 0; k < labels.size(); ++k)
      if (k != i) own.near = std::min(own.near, excess(labels[k].suffix, own.suffix, own.near));
  }
  auto dropped = labels.end() - 1;
  double least = HUGE_VAL;
  for (auto own = labels.begin() + 1; own != labels.end(); ++own)
    if (own->near < least) least = own->near, dropped = own;
  lost_[stage] = std::max(lost_[stage], least);
  for (Label& other : labels)
    if (excess(dropped->suffix, other.suffix, HUGE_VAL) <= other.near) other.near = -1;
  labels.erase(dropped);
}

void CutSearch::extend(const std::vector<Slot>& slots, int stage, int end, Seconds limit) {
  const int after = static_cast<int>(slots.size()) - 1 - stage;
  const std::vector<Label> none(1);
  const std::vector<Label>& tails = after == 0 ? none : labels_[stage + 1][end];
  const Seconds send = after == 0 ? Seconds(0) : slots[stage].send(end);
  const PipelineSuffix::SuffixConstants beat(rhythm_, after);
  const Model& model = space_.problem().model;
  for (int begin = stage == 0 ? 0 : end - 1; begin >= stage; --begin) {
    if (!model.unit(begin).starts_layer) continue;
    const UnitRange units{begin, end};
    const int wrong = has_wrong_layers(units);
    if (wrong > 0) return;
    // The stages before would have too much to do.
    const bool too_few = stage > 0 && rhythm_.micro_batches * least_before_[begin] >= stage * limit;
    if (wrong < 0 || too_few || !space_.allows(units, after)) continue;
    const auto choice = slots[stage].runs->choose(units, after);
    lacks_memory_ = lacks_memory_ || !choice;
    if (!choice) return;
    bool any = false;
    for (int i = 0; i < static_cast<int>(tails.size()); ++i) {
      PipelineSuffix longer = tails[i].suffix;
      longer.prepend(*choice, send, beat);
      if (longer.length(least_before_[begin]) >= limit) continue;
      any = true;
      insert(stage, begin, {longer, end, after == 0 ? -1 : i});
    }
    if (!any) return;
  }
}

std::vector<int> CutSearch::begins_of(int label) const {
  std::vector<int> begins;
  int begin = 0;
  for (const Labels& stage : labels_) {
    begins.push_back(begin);
    const Label& own = stage[begin][label];
    begin = own.end;
    label = own.parent;
  }
  return begins;
}

// Every stage takes its share of the units' least times; infinite where that does not fit.
Seconds CutSearch::balanced(const std::vector<Slot>& slots) const {
  const Seconds none(HUGE_VAL);
  const Model& model = space_.problem().model;
  PipelineSuffix suffix;
  int end = units_;
  for (int stage = static_cast<int>(slots.size()) - 1; stage >= 0; --stage) {
    const int after = static_cast<int>(slots.size()) - 1 - stage;
    const Seconds before = stage * (least_before_[end] / (stage + 1.0));
    int begin =
        static_cast<int>(std::ranges::lower_bound(least_before_, before) - least_before_.begin());
    begin = stage == 0 ? 0 : std::clamp(begin, stage, end - 1);
    while (begin > stage && !model.unit(begin).starts_layer) --begin;
    const UnitRange units{begin, end};
    if (units.size() <= 0 || !model.unit(begin).starts_layer || has_wrong_layers(units) != 0 ||
        !space_.allows(units, after))
      return none;
    const auto choice = slots[stage].runs->choose(units, after);
    if (!choice) return none;
    const Seconds send = after == 0 ? Seconds(0) : slots[stage].send(end);
    suffix.prepend(*choice, send, PipelineSuffix::SuffixConstants(rhythm_, after));
    end = begin;
  }
  return suffix.step();
}

CutResult CutSearch::run(const std::vector<Slot>& slots, Seconds limit, Seconds tied,
                         const std::function<bool()>& stop) {
  const int stages = static_cast<int>(slots.size());
  least_before_.assign(units_ + 1, Seconds(0));
  std::set<RunCosts*> distinct;
  for (const Slot& slot : slots) distinct.insert(slot.runs);
  for (int u = 0; u < units_; ++u) {
    Seconds least(HUGE_VAL);
    for (const RunCosts* runs : distinct) least = std::min(least, runs->alone({u, u + 1}).total());
    least_before_[u + 1] = least_before_[u] + least;
  }
  const Seconds open = std::min(limit - tied, kWorse * balanced(slots));
  labels_.assign(stages, Labels(units_ + 1));
  lost_.assign(stages, 0);
  lacks_memory_ = false;
  extend(slots, stages - 1, units_, open);
  for (int s = stages - 2; s >= 0; --s)
    for (int end = s + 1; end < units_; ++end) {
      if (labels_[s + 1][end].empty()) continue;
      if (stop()) return {};
      extend(slots, s, end, open);
    }
  CutResult out{{}, limit, lacks_memory_};
  const std::vector<Label>& whole = labels_[0][0];
  for (int i = 0; i < static_cast<int>(std::min(whole.size(), kCuts)); ++i)
    out.cuts.push_back({begins_of(i), whole[i].suffix.step() + tied});
  double lost = 1;
  for (const double own : lost_) lost *= 1 + own;
  Seconds best = open;  // what is longer was left out
  if (!out.cuts.empty()) best = std::min(best, out.cuts.front().length - tied);
  out.lower_bound = std::min(limit, best / lost + tied);
  return out;
}

}  // namespace plait
