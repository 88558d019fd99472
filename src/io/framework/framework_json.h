#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/format/json_reader.h"
#include "plan/framework.h"

namespace plait {

// What some constants of a framework were fitted on, or where else they come from.
struct FrameworkFit {
  std::vector<std::string> of;  // keys of `traits` and `mixed_precision`
  std::string on;
  std::string date;
};

// A row of data/catalogue/frameworks.json.
struct FrameworkEntry {
  Framework framework;
  std::string like;                  // the row that it differs from; "" = none
  std::string what;                  // it is, in one line
  std::vector<std::string> aliases;  // programs that run in this way
  std::vector<FrameworkFit> fits;
};

// One framework of a file: an entry of its own, or `"like": "megatron-lm"` and what differs.
// `known` gives the entry of that name and complains when there is none.
using KnownFramework = std::function<const Framework&(const JsonValue& name)>;
FrameworkEntry read_framework_entry(const JsonValue& object, const KnownFramework& known);

// {"host_block_us": 500, "traffic": 0.58, "kernels": "fused", "send_blocks": false, ..}; what is
// absent is taken from `fallback`.
FrameworkTraits read_traits(const JsonValue& object, const FrameworkTraits& fallback);

// The constants that can be fitted, which are numbers, and their values in the units of their keys.
struct TraitValue {
  std::string_view key;
  double value = 0;
};
std::vector<TraitValue> trait_values(const FrameworkTraits& traits);

// An object on one line; read_framework_entry() gives the same framework again, bit for bit.
std::string framework_json(const Framework& framework);

}  // namespace plait
