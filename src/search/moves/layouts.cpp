#include "search/moves/layouts.h"

#include <algorithm>
#include <map>

namespace plait {
namespace {

constexpr int kMostTensorTried = 16;
constexpr int kBatchesTried = 4;
constexpr double kMinority = 0.5;  // a part of the cluster below this part of its speed is left out

using Devices = std::vector<DeviceId>;

// Fastest first.
std::vector<Devices> device_sets(const Ground& ground) {
  std::map<double, Devices, std::greater<>> by_speed;
  double total = 0;
  for (int i = 0; i < ground.cluster().device_count(); ++i) {
    const double speed = ground.speed(ground.type(DeviceId(i)));
    by_speed[speed].push_back(DeviceId(i));
    total += speed;
  }
  std::vector<Devices> sets;
  Devices so_far;
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

class Layouts {
 public:
  explicit Layouts(const Ground& ground) : ground_(ground) {}

  std::vector<Draft> all() {
    if (ground_.pins().context.value_or(1) > 1) return {};
    for (const Devices& devices : device_sets(ground_)) {
      const int count = static_cast<int>(devices.size());
      const int most = std::min(count, ground_.problem().model.unit_count());
      for (const int stages : stage_counts(ground_, most))
        for (int tensor = 1; tensor <= std::min(kMostTensorTried, count / stages); tensor *= 2)
          if (ground_.allows_tensor(tensor)) add(devices, stages, tensor);
    }
    return std::move(drafts_);
  }

 private:
  // Tensor groups inside nodes, or over whole nodes of one type.
  std::vector<Devices> groups_of(const Devices& devices, int tensor) const {
    std::vector<Devices> groups;
    Devices group;
    for (const DeviceId id : devices) {
      const bool other_type = !group.empty() && ground_.type(group.front()) != ground_.type(id);
      const bool other_node = !group.empty() && ground_.node(group.back()) != ground_.node(id);
      const int on_node = ground_.node_size(id);
      if (other_type || (other_node && tensor <= on_node)) group.clear();
      group.push_back(id);
      if (static_cast<int>(group.size()) < tensor) continue;
      groups.push_back(std::move(group));
      group.clear();
    }
    return groups;
  }

  void add(const Devices& devices, int stages, int tensor) {
    const std::vector<Devices> groups = groups_of(devices, tensor);
    const int count = static_cast<int>(groups.size());
    if (count < stages) return;
    const int most = (count + stages - 1) / stages;
    int tried = 0;
    // Numbers of micro-batches with one sample a replica, two, ..
    const std::vector<int>& all = ground_.micro_batches();
    for (auto m = all.rbegin(); m != all.rend() && tried < kBatchesTried; ++m) {
      if (ground_.problem().job.global_batch / *m < most) continue;
      ++tried;
      add(groups, stages, *m, false);
      if (stages > 1 && count > stages) add(groups, stages, *m, true);
    }
  }

  // Stage s has the groups from s count / stages on, or every stages-th.
  void add(const std::vector<Devices>& groups, int stages, int micro_batches, bool apart) {
    Draft draft;
    draft.settings.schedule = ground_.schedules().front();
    draft.settings.micro_batches = micro_batches;
    draft.settings.zero = ground_.zeros().front();
    draft.settings.expert = ground_.pins().expert.value_or(1);
    draft.stages.resize(stages);
    const int count = static_cast<int>(groups.size());
    for (int s = 0; s < stages; ++s) {
      DraftStage& stage = draft.stages[s];
      stage.tensor = static_cast<int>(groups.front().size());
      stage.data = 0;
      stage.recompute = ground_.recomputes().front();
      const int begin = apart ? s : s * count / stages;
      const int end = apart ? count : (s + 1) * count / stages;
      for (int g = begin; g < end; g += apart ? stages : 1, ++stage.data)
        stage.devices.insert(stage.devices.end(), groups[g].begin(), groups[g].end());
    }
    const std::vector<double> equal(stages, 1.0);
    if (!cut_units(draft, 1, equal, ground_.prefix()) || !ground_.share_out(draft)) return;
    drafts_.push_back(std::move(draft));
  }

  const Ground& ground_;
  std::vector<Draft> drafts_;
};

}  // namespace

std::vector<Draft> regular_layouts(const Ground& ground) { return Layouts(ground).all(); }

}  // namespace plait
