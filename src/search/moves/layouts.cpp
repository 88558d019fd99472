#include "search/moves/layouts.h"

#include <algorithm>
#include <map>

namespace plait {
namespace {

constexpr int kMostTensorTried = 16;
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

// 1, 2, 3, 4, 6, 8, 12, ..: and the number of units, if there are so many devices.
std::vector<int> stage_counts(const Ground& ground, int most) {
  if (ground.pins().pipeline) return {*ground.pins().pipeline};
  std::vector<int> counts;
  for (int p = 1; p <= most; p = p < 4 ? p + 1 : p + p / 2 - (p / 2) % 2 / 2) counts.push_back(p);
  return counts;
}

class Layouts {
 public:
  explicit Layouts(const Ground& ground) : ground_(ground) {}

  std::vector<Draft> all() {
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
  void add(const Devices& devices, int stages, int tensor) {
    const int data = static_cast<int>(devices.size()) / (stages * tensor);
    int tried = 0;
    // Numbers of micro-batches with one sample a replica, two, ..
    const std::vector<int>& all = ground_.micro_batches();
    for (auto m = all.rbegin(); m != all.rend() && tried < 3; ++m) {
      const int samples = ground_.problem().job.global_batch / *m;
      if (samples < data) continue;
      ++tried;
      for (const bool apart : {false, true}) {
        if (apart && (stages == 1 || data == 1)) continue;
        add(devices, stages, tensor, *m, apart);
      }
    }
  }

  void add(const Devices& devices, int stages, int tensor, int micro_batches, bool apart) {
    const int data = static_cast<int>(devices.size()) / (stages * tensor);
    Draft draft;
    draft.settings.schedule = ground_.schedules().front();
    draft.settings.micro_batches = micro_batches;
    draft.settings.zero = ground_.zeros().front();
    draft.settings.context = ground_.pins().context.value_or(1);
    draft.settings.expert = ground_.pins().expert.value_or(1);
    draft.stages.resize(stages);
    for (int s = 0; s < stages; ++s) {
      DraftStage& stage = draft.stages[s];
      stage.tensor = tensor;
      stage.data = data;
      stage.recompute = ground_.recomputes().front();
      for (int d = 0; d < data; ++d) {
        const int first = apart ? (d * stages + s) * tensor : (s * data + d) * tensor;
        stage.devices.insert(stage.devices.end(), devices.begin() + first,
                             devices.begin() + first + tensor);
      }
    }
    if (draft.settings.context > 1) return;
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
