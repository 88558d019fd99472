#include "cli/flags/configured_flags.h"

#include <utility>

namespace plait {

std::vector<Flag> configured_flags(ConfiguredArguments& arguments) {
  std::vector<Flag> flags;
  for (FlagGroup& group : only_flags(
           plan_flags(arguments.plan),
           {"--model", "--cluster", "--device", "--seq", "--framework", "--global-batch",
            "--micro-batch", "--micro-batches", "--precision", "--recompute", "--lora", "--qlora"}))
    for (Flag& flag : group.flags) {
      flag.required = false;
      flags.push_back(std::move(flag));
    }
  return flags;
}

std::vector<Flag> memory_and_price_flags(ConfiguredArguments& arguments) {
  std::vector<Flag> flags = memory_flags(arguments.memory);
  flags.push_back(price_flag(arguments.prices));
  return flags;
}

ConfiguredRequest configured_request(const std::string& from, const std::string& path,
                                     const ConfiguredArguments& arguments) {
  const PlanRequest& request = arguments.plan.request;
  ConfiguredRequest out{from, path, request.source};
  out.source.memory = arguments.memory;
  out.source.prices = arguments.prices;
  const Pins& pins = request.search.pins;
  out.told.sizes.micro_batch = pins.micro_batch;
  out.told.sizes.accumulation = pins.micro_batches;
  out.told.recompute = pins.recompute;
  return out;
}

}  // namespace plait
