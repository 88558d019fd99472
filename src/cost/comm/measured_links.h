#pragma once

#include <optional>
#include <string>

#include "base/units.h"
#include "cluster/cluster.h"
#include "cost/comm/collectives.h"
#include "plan/plan.h"
#include "profile/profile.h"

namespace plait {

// Collectives between devices of one type: the measured curve of a group of that shape where the
// profile has one, else the formula (cost/comm/collectives.h). Between two measured sizes the time
// is affine; beyond them it goes on with the slope of the last two, which may be neither negative
// nor steeper than proportional.
class MeasuredLinks {
 public:
  MeasuredLinks(const Profile& profile, const std::string& device_type)
      : profile_(profile), device_type_(device_type) {}

  Seconds all_reduce(const Group& group, Bytes size) const;
  Seconds all_gather(const Group& group, Bytes size) const;
  Seconds reduce_scatter(const Group& group, Bytes size) const;
  // Each member has 1/n of a tensor of `whole` bytes, and gets another 1/n of it.
  Seconds all_to_all(const Group& group, Bytes whole) const;
  // From one device to one other; nothing when it was not measured.
  std::optional<Seconds> send(bool same_node, Bytes size) const;

 private:
  std::optional<Seconds> measured(const char* collective, int nodes, int per_node,
                                  Bytes size) const;
  std::optional<Seconds> measured(const char* collective, const Group& group, Bytes size) const;

  const Profile& profile_;
  const std::string& device_type_;
};

// Per step, on the slowest of the device types that the plan uses.
Seconds measured_extras(const Profile& profile, const Cluster& cluster, const Plan& plan);

}  // namespace plait
