#include "app/request/memory_rule.h"

#include <fmt/format.h>

#include "app/request/request_error.h"
#include "report/quantities.h"

namespace plait {

void apply(const MemoryRule& rule, Job& job) {
  if (!rule.any()) return;
  if (rule.limit) {
    job.memory_limit = *rule.limit;
    job.reserve = 0;
    job.reserved = Bytes(0);
  }
  if (rule.reserve) {
    job.reserve = *rule.reserve;
    job.reserved = Bytes(0);
  }
  if (rule.reserved) job.reserved = *rule.reserved;
}

std::vector<std::string> memory_warnings(const Cluster& cluster, const Job& job) {
  std::vector<std::string> warnings;
  for (const DeviceType& type : cluster.device_types) {
    if (job.memory_limit > type.memory)
      warnings.push_back(fmt::format("`memory_limit` is {}, {} has {}, which counts there",
                                     in_words(job.memory_limit), type.name, in_words(type.memory)));
    if (job.reserved >= type.memory)
      throw RequestError("reserve", fmt::format("is {}, and {} has {}", in_words(job.reserved),
                                                type.name, in_words(type.memory)));
  }
  return warnings;
}

}  // namespace plait
