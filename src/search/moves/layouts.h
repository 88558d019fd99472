#pragma once

#include <functional>
#include <vector>

#include "search/moves/ground.h"

namespace plait {

// A regular pipeline to start from.
struct RegularLayout {
  int devices = 0;  // which of the sets
  int stages = 1;
  int tensor = 1;
  int micro_batches = 1;
  bool apart = false;  // the replicas of a stage, and the pipeline inside; else on neighbours
};

// Regular pipelines: on all devices and on the faster types alone, cut into equal stages of one
// tensor degree, with few samples a replica. Devices that are left over stay idle. In an order in
// which the first ones of many are of all kinds.
class Layouts {
 public:
  // Those that it came to before it was stopped.
  Layouts(const Ground& ground, const std::function<bool()>& stop);

  const std::vector<RegularLayout>& all() const { return all_; }
  // Not all of them are sound or fit; without stages when there are not even devices.
  Draft draft_of(const RegularLayout& layout) const;

 private:
  using Devices = std::vector<DeviceId>;

  void list(int set, int stages, int tensor);
  // Tensor groups inside nodes, or over whole nodes of one type.
  std::vector<Devices> groups_of(const Devices& devices, int tensor) const;

  const Ground& ground_;
  std::vector<Devices> sets_;
  std::vector<RegularLayout> all_;
};

}  // namespace plait
