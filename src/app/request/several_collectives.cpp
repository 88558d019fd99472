#include <vector>

#include "app/request/request_error.h"
#include "app/request/search_request.h"

namespace plait {

void refuse_several_collectives(const Cluster& cluster, const Target& target, const char* field) {
  if (target.name == "any") return;
  std::vector<bool> used(cluster.device_types.size());
  for (const Device& device : cluster.devices) used[device.type] = true;
  const std::string several = several_collectives(cluster, used);
  if (!several.empty())
    throw RequestError(field, several +
                                  ", libraries that do not sum with each other: no program trains "
                                  "on both; plan for each alone (`runs_on` any predicts it all the "
                                  "same)");
}

}  // namespace plait
