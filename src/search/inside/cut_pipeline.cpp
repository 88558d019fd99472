#include "search/inside/cut_pipeline.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace plait {
namespace {

constexpr double kCoarse = 2e-3;  // precision of insides while cuts are looked for
constexpr std::size_t kMostEnds = 6;
constexpr int kMostPositions = 64;  // of a first look
constexpr int kLongLayer = 24;      // ops
constexpr int kReach = 4;           // positions on either side of a cut
constexpr int kMostRounds = 6;
constexpr int kLongStage = 500;  // units: cuts of longer ones are not looked for op by op

// The end of a pipeline.
struct End {
  double longest = 0;  // in a step
  double sum = 0;      // of a micro-batch
  int begin = 0;
  int parent = -1;
};

}  // namespace

PipelineCuts::PipelineCuts(StageInsides& insides, const Space& space, const CostEngine& engine,
                           StagePlaces places)
    : insides_(insides),
      space_(space),
      engine_(engine),
      places_(std::move(places)),
      rounds_(insides.settings().micro_batches) {}

double PipelineCuts::promise() const {
  double speed = 0;
  for (const StageInsides::Place& place : places_) {
    const std::vector<double>& times = insides_.least_times(place);
    if (times.empty()) return HUGE_VAL;
    speed += 1 / times.back();
  }
  return (rounds_ - 1 + static_cast<double>(places_.size())) / speed;
}

double PipelineCuts::send(int stage, int unit) {
  if (!space_.problem().job.framework.traits.send_blocks) return 0;
  const auto [at, is_new] =
      sends_.try_emplace({stage, space_.problem().model.units[unit - 1]}, 0.0);
  if (!is_new) return at->second;
  const auto stage_at = [&](int s) {
    const int devices = places_[s].devices;
    return Stage{{{.units = {unit - 1, unit}, .tensor = 1, .data = devices}},
                 insides_.devices_of(places_[s]),
                 {}};
  };
  Plan plan;
  plan.micro_batches = insides_.settings().micro_batches;
  plan.sequence_parallel = insides_.settings().sequence_parallel;
  at->second =
      hand_over(space_.problem(), plan, stage_at(stage), stage_at(stage + 1), unit).time.value;
  return at->second;
}

void PipelineCuts::set_work() {
  if (!work_.empty()) return;
  const int units = space_.problem().model.unit_count();
  work_.assign(units + 1, HUGE_VAL);
  work_.front() = 0;
  devices_ = {0};
  for (const StageInsides::Place& place : places_) {
    devices_.push_back(devices_.back() + place.devices);
    const std::vector<double>& least = insides_.least_times(place);
    for (int u = 0; u < units && !least.empty(); ++u)
      work_[u + 1] = std::min(work_[u + 1], place.devices * (least[u + 1] - least[u]));
  }
  std::partial_sum(work_.begin(), work_.end(), work_.begin());
}

std::optional<CutPipeline> PipelineCuts::best(const Positions& positions, double bar,
                                              const std::function<bool()>& stop) {
  const int stages = static_cast<int>(places_.size());
  std::vector<End> all{{0, 0, space_.problem().model.unit_count(), -1}};
  std::vector<int> ends{0};
  const auto step = [&](const End& end) { return end.longest * (rounds_ - 1) / rounds_ + end.sum; };
  set_work();
  for (int s = stages; s-- > 0;) {
    const std::vector<double>& least = insides_.least_times(places_[s]);
    std::vector<int> next;
    for (const int begin : positions[s]) {
      std::vector<int> kept;
      // The longest of the stages before this one.
      const double before = s > 0 ? work_[begin] / devices_[s] : 0;
      if (rounds_ * before >= bar) continue;
      for (const int parent : ends) {
        const End behind = all[parent];
        if (behind.begin <= begin || stop()) continue;
        const UnitRange units{begin, behind.begin};
        const double sent =
            (s + 1 < stages ? send(s, units.end) : 0) + (s > 0 ? send(s - 1, units.begin) : 0);
        const double at_least = least[units.end] - least[units.begin] + sent;
        const double longest = std::max(behind.longest, rounds_ * std::max(at_least, before));
        if (step({longest, behind.sum + at_least + before}) >= bar) continue;
        const auto* inside = insides_.best(places_[s], units, stages - 1 - s, kCoarse);
        if (inside == nullptr) continue;
        const double time = inside->time.value + sent;
        const End own{std::max(behind.longest, rounds_ * time + inside->finish.value),
                      behind.sum + time, begin, parent};
        const auto as_good = [](const End& a, const End& b) {
          return a.longest <= b.longest && a.sum <= b.sum;
        };
        if (step(own) >= bar ||
            std::ranges::any_of(kept, [&](int k) { return as_good(all[k], own); }))
          continue;
        std::erase_if(kept, [&](int k) { return as_good(own, all[k]); });
        all.push_back(own);
        kept.push_back(static_cast<int>(all.size()) - 1);
        if (kept.size() > kMostEnds)
          kept.erase(std::ranges::max_element(kept, {}, [&](int k) { return step(all[k]); }));
      }
      next.insert(next.end(), kept.begin(), kept.end());
    }
    ends = std::move(next);
  }
  if (ends.empty()) return std::nullopt;
  int at = *std::ranges::min_element(ends, {}, [&](int e) { return step(all[e]); });
  CutPipeline out{{}, step(all[at])};
  for (; all[at].parent >= 0; at = all[at].parent) out.begins.push_back(all[at].begin);
  return out;
}

std::vector<int> PipelineCuts::begins_of_layers() const {
  const Model& model = space_.problem().model;
  std::vector<int> begins{0};
  int last_start = 0;
  for (int u = 1; u < model.unit_count(); ++u) {
    // Chains of ops that are not told apart into layers are cut anywhere.
    if (model.unit(u).starts_layer) last_start = u;
    if (model.unit(u).starts_layer || u - last_start >= kLongLayer) begins.push_back(u);
  }
  return begins;
}

// At most kReach positions of the list on either side, `stride` of them apart.
PipelineCuts::Positions PipelineCuts::positions_near(const std::vector<int>& begins,
                                                     const std::vector<int>& all, int stride) {
  const int count = static_cast<int>(all.size());
  Positions positions;
  for (const int begin : begins) {
    const int own = static_cast<int>(std::ranges::lower_bound(all, begin) - all.begin());
    std::vector<int>& near = positions.emplace_back();
    for (int i = -kReach; i <= kReach; ++i)
      if (const int at = own + i * stride; begin > 0 && at > 0 && at < count)
        near.push_back(all[at]);
  }
  positions.front() = {0};
  return positions;
}

std::optional<CutPipeline> PipelineCuts::between_layers(double bar,
                                                        const std::function<bool()>& stop) {
  const std::vector<int> layers = begins_of_layers();
  const int units = space_.problem().model.unit_count();
  std::vector<int> some;
  for (const int u : layers)
    if (u > 0 && u - (some.empty() ? 0 : some.back()) > units / kMostPositions) some.push_back(u);
  Positions positions(places_.size(), some);
  positions.front() = {0};
  const auto found = best(positions, bar, stop);
  if (found || some.size() + 1 >= layers.size()) return found;
  // Where memory is full, cuts so far apart may leave no pipeline: nearer to equal shares, then.
  set_work();
  std::vector<int> begins;
  for (std::size_t s = 0; s < places_.size(); ++s)
    begins.push_back(static_cast<int>(
        std::ranges::lower_bound(work_, work_.back() * devices_[s] / devices_.back()) -
        work_.begin()));
  for (int stride = static_cast<int>(layers.size()) / kMostPositions; stride > 0; stride /= kReach)
    if (const auto near = best(positions_near(begins, layers, stride), bar, stop)) return near;
  return std::nullopt;
}

CutPipeline PipelineCuts::refined(CutPipeline from, const std::function<bool()>& stop) {
  // Stages that are long are cut between layers, if there are any.
  const int units = space_.problem().model.unit_count();
  std::vector<int> all = begins_of_layers();
  if (units <= kLongStage * static_cast<int>(places_.size())) {
    all.resize(units);
    std::iota(all.begin(), all.end(), 0);
  }
  const auto improve = [&](int stride) {
    const auto better = best(positions_near(from.begins, all, stride), from.step, stop);
    if (better) from = *better;
    return better.has_value();
  };
  for (int stride = std::max(1, static_cast<int>(all.size()) / kMostPositions); !stop();
       stride = std::max(1, stride / 3)) {
    improve(stride);
    if (stride == 1) break;
  }
  for (int round = 0; round < kMostRounds && !stop() && improve(1); ++round) {
  }
  return from;
}

std::optional<Plan> PipelineCuts::plan(const CutPipeline& cuts) {
  Plan plan = plan_under(insides_.settings(), Schedule::one_f_one_b);
  for (std::size_t s = 0; s < places_.size(); ++s) {
    const int end =
        s + 1 < places_.size() ? cuts.begins[s + 1] : space_.problem().model.unit_count();
    const auto* inside = insides_.best(places_[s], {cuts.begins[s], end},
                                       static_cast<int>(places_.size() - 1 - s), 0);
    if (inside == nullptr) return std::nullopt;
    plan.stages.push_back({insides_.spans(places_[s], {cuts.begins[s], end}, *inside),
                           insides_.devices_of(places_[s]),
                           {}});
  }
  space_.drop_idle_switches(plan);
  return plan;
}

}  // namespace plait
