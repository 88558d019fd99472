#pragma once

#include "io/format/json_reader.h"

namespace plait {

// DeepSpeed's keys, of ds_config.json and of zero_optimization in it; others are refused, as are
// those that plait has no words for.
void allow_deepspeed_keys(const JsonValue& root);
void allow_deepspeed_zero_keys(const JsonValue& zero);

}  // namespace plait
