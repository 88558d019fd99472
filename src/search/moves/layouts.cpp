#include "search/moves/layouts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <utility>

namespace plait {
namespace {

constexpr int kMostTensorTried = 16;
constexpr int kBatchesTried = 4;
constexpr double kMinority = 0.5;  // a part of the cluster below this part of its speed is left out

// Fastest first.
std::vector<std::vector<DeviceId>> device_sets(const Ground& ground) {
  std::map<double, std::vector<DeviceId>, std::greater<>> by_speed;
  double total = 0;
  for (int i = 0; i < ground.cluster().device_count(); ++i) {
    const double speed = ground.speed(ground.type(DeviceId(i)));
    by_speed[speed].push_back(DeviceId(i));
    total += speed;
  }
  std::vector<std::vector<DeviceId>> sets;
  std::vector<DeviceId> so_far;
  double speed_so_far = 0;
  for (const auto& [speed, devices] : by_speed) {
    so_far.insert(so_far.end(), devices.begin(), devices.end());
    speed_so_far += speed * static_cast<double>(devices.size());
    if (speed_so_far >= kMinority * total) sets.push_back(so_far);
  }
  return sets;
}

// 1, 2, .. 8, 10, 12, 15, ..
std::vector<int> stage_counts(const Ground& ground, int most) {
  if (ground.pins().pipeline) return {*ground.pins().pipeline};
  std::vector<int> counts;
  for (int p = 1; p <= most; p = p < 8 ? p + 1 : p + p / 4) counts.push_back(p);
  return counts;
}

}  // namespace

Layouts::Layouts(const Ground& ground, const std::function<bool()>& stop) : ground_(ground) {
  if (ground.pins().context.value_or(1) > 1) return;
  sets_ = device_sets(ground);
  for (int set = 0; set < static_cast<int>(sets_.size()) && !stop(); ++set) {
    const int count = static_cast<int>(sets_[set].size());
    const int most = std::min(count, ground.problem().model.unit_count());
    for (const int stages : stage_counts(ground, most))
      for (int tensor = 1; tensor <= std::min(kMostTensorTried, count / stages); tensor *= 2)
        if (ground.allows_tensor(tensor)) list(set, stages, tensor);
  }
  std::mt19937_64 random(1);
  for (std::size_t i = all_.size(); i > 1; --i) std::swap(all_[i - 1], all_[random() % i]);
}

void Layouts::list(int set, int stages, int tensor) {
  const int groups = static_cast<int>(sets_[set].size()) / tensor;
  const int most = (groups + stages - 1) / stages;
  // Numbers of micro-batches with one sample a replica, two, ..
  const std::vector<int>& all = ground_.micro_batches();
  int tried = 0;
  for (auto m = all.rbegin(); m != all.rend() && tried < kBatchesTried; ++m) {
    if (ground_.problem().job.global_batch / *m < most) continue;
    ++tried;
    all_.push_back({set, stages, tensor, *m, false});
    if (stages > 1 && groups > stages) all_.push_back({set, stages, tensor, *m, true});
  }
}

std::vector<Layouts::Devices> Layouts::groups_of(const Devices& devices, int tensor) const {
  std::vector<Devices> groups;
  Devices group;
  for (const DeviceId id : devices) {
    const bool other_type = !group.empty() && ground_.type(group.front()) != ground_.type(id);
    const bool other_node = !group.empty() && ground_.node(group.back()) != ground_.node(id);
    if (other_type || (other_node && tensor <= ground_.node_size(id))) group.clear();
    group.push_back(id);
    if (static_cast<int>(group.size()) < tensor) continue;
    groups.push_back(std::move(group));
    group.clear();
  }
  return groups;
}

// Stage s has the groups from s count / stages on, or every stages-th.
Draft Layouts::draft_of(const RegularLayout& layout) const {
  const std::vector<Devices> groups = groups_of(sets_[layout.devices], layout.tensor);
  const int count = static_cast<int>(groups.size());
  Draft draft;
  if (count < layout.stages) return draft;
  draft.settings.schedule = ground_.schedules().front();
  draft.settings.micro_batches = layout.micro_batches;
  draft.settings.zero = ground_.zeros().front();
  draft.settings.expert = ground_.pins().expert.value_or(1);
  draft.settings.offload = ground_.pins().offload.value_or(0);
  draft.stages.resize(layout.stages);
  for (int s = 0; s < layout.stages; ++s) {
    DraftStage& stage = draft.stages[s];
    stage.tensor = layout.tensor;
    stage.data = 0;
    stage.recompute = UnitsRecomputed::all(ground_.recomputes().front());
    const int begin = layout.apart ? s : s * count / layout.stages;
    const int end = layout.apart ? count : (s + 1) * count / layout.stages;
    for (int g = begin; g < end; g += layout.apart ? layout.stages : 1, ++stage.data)
      stage.devices.insert(stage.devices.end(), groups[g].begin(), groups[g].end());
  }
  const std::vector<double> equal(layout.stages, 1.0);
  const bool made = cut_units(draft, 1, equal, ground_.prefix()) && ground_.share_out(draft);
  return made ? draft : Draft{};
}

}  // namespace plait
