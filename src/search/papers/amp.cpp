#include <algorithm>
#include <cmath>
#include <map>

#include "search/papers/paper_search.h"
#include "search/papers/partition.h"
#include "search/space/planners.h"

// AMP (Li et al., NeurIPS 2022): the same degrees for all stages, devices in rank order, layers cut
// by dynamic programming.
namespace plait {
namespace {

// Tables of all runs of units are made; beyond this they are too large.
constexpr int kMostUnits = 2000;

// Times of all runs of units on the stages of a layout, and whether they fit.
class RunTable {
 public:
  RunTable(PaperSearch& search, const Layout& layout) : units_(search.units()) {
    std::map<const PaperFrame*, int> first;  // stage with this frame
    for (int s = 0; s < layout.stages(); ++s) {
      const auto [it, is_new] = first.emplace(layout.frames[s], s);
      same_.push_back(it->second);
      times_.emplace_back();
      longest_.push_back(most_units(search, layout, s));
      if (!is_new) continue;
      times_[s].resize(static_cast<std::size_t>(units_ + 1) * (units_ + 1));
      for (int begin = 0; begin < units_; ++begin)
        for (int end = begin + 1; end <= units_; ++end)
          times_[s][at({begin, end})] = search.time(*layout.frames[s], {begin, end}).value;
    }
  }

  double time(int stage, const UnitRange& units) const {
    if (units.end > longest_[stage][units.begin]) return HUGE_VAL;
    return times_[same_[stage]][at(units)];
  }

 private:
  // By first unit, where the longest run that fits ends: found by moving on from the one before, as
  // a longer run needs more memory.
  std::vector<int> most_units(PaperSearch& search, const Layout& layout, int stage) const {
    std::vector<int> ends;
    int end = 0;
    for (int begin = 0; begin < units_; ++begin) {
      end = std::max(end, begin);
      while (end < units_ && search.fits(layout, stage, {begin, end + 1})) ++end;
      ends.push_back(end);
    }
    return ends;
  }

  std::size_t at(const UnitRange& units) const {
    return static_cast<std::size_t>(units.begin) * (units_ + 1) + units.end;
  }

  int units_;
  std::vector<int> same_;  // by stage: the first with the same frame
  std::vector<std::vector<double>> times_;
  std::vector<std::vector<int>> longest_;
};

// Sends by the stage and the kind of the unit before the cut: nothing else matters.
class SendTable {
 public:
  SendTable(const PaperSearch& search, const Layout& layout)
      : kind_of_(search.space().problem().model.units),
        kinds_(search.space().problem().model.kinds.size()) {
    for (int s = 0; s + 1 < layout.stages(); ++s) {
      sends_.emplace_back(kinds_, -1.0);
      for (int unit = 1; unit < search.units(); ++unit) {
        double& send = sends_.back()[kind_of_[unit - 1]];
        if (send < 0)
          send = search.send(layout.settings, layout.slots[s], layout.slots[s + 1], unit).value;
      }
    }
  }
  double operator()(int stage, int unit) const { return sends_[stage][kind_of_[unit - 1]]; }

 private:
  const std::vector<int>& kind_of_;
  std::size_t kinds_;
  std::vector<std::vector<double>> sends_;
};

std::vector<int> cuts_for(PaperSearch& search, const Layout& layout) {
  if (auto cuts = pinned_cuts(search.space().pins()); !cuts.empty()) return cuts;
  const RunTable runs(search, layout);
  const SendTable sends(search, layout);
  return least_pipeline_time(
      {.stages = layout.stages(),
       .units = search.units(),
       .micro_batches = static_cast<double>(layout.settings.micro_batches),
       .time = [&](int stage, const UnitRange& units) { return runs.time(stage, units); },
       // The activation and, later, its gradient.
       .send = [&](int stage, int unit) { return 2 * sends(stage, unit); },
       .stop = [&] { return search.stopped(); },
       .longest = search.longest_stage(layout.settings.micro_batches)});
}

}  // namespace

SearchResult search_like_amp(const SearchContext& context) {
  PaperSearch search(context);
  const std::string nothing = no_uniform_layout("amp");
  if (!search.obstacle().empty()) return search.result(nothing);
  if (search.units() > kMostUnits) return search.result("amp cuts at most 2000 units");
  std::vector<DeviceId> order;
  for (int i = 0; i < context.problem.cluster.device_count(); ++i) order.push_back(DeviceId(i));
  const std::vector<Degrees> all = search.uniform_degrees(context.problem.cluster.device_count());
  for (std::size_t i = 0; i < all.size() && !search.stopped(); ++i) {
    search.report_progress(static_cast<double>(i) / static_cast<double>(all.size()));
    const std::optional<Layout> layout = search.uniform_layout(order, all[i]);
    if (!layout) continue;
    const std::vector<int> cuts = cuts_for(search, *layout);
    if (search.stopped()) break;
    if (cuts.empty() && search.has_cutoff()) continue;
    // An even cut that does not fit tells how much is missing.
    search.offer(*layout, cuts.empty() ? even_cuts(search.units(), layout->stages()) : cuts);
  }
  return search.result(nothing);
}

}  // namespace plait
