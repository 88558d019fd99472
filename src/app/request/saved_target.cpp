#include "app/request/saved_target.h"

namespace plait {

const Target& saved_target(const PlanFile& file) {
  const Target* own = target_named(file.problem.job.framework.target);
  if (own != nullptr && !why_not(*own, file.problem, file.plan)) return *own;
  return *target_named("any");
}

}  // namespace plait
