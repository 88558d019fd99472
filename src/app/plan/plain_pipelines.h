#pragma once

#include <optional>

#include "search/space/pins.h"

namespace plait {

// The first pin beyond plain 1F1B pipelines of tensor and data degrees, which are all that the
// formulas of Metis and Aceso know.
inline std::optional<Dimension> pin_beyond_plain_pipelines(const Pins& pins) {
  if (pins.zero.value_or(ZeroStage::off) != ZeroStage::off) return Dimension::zero;
  if (pins.schedule.value_or(Schedule::one_f_one_b) != Schedule::one_f_one_b)
    return Dimension::schedule;
  if (pins.chunks.value_or(1) > 1) return Dimension::chunks;
  if (pins.context.value_or(1) > 1) return Dimension::context;
  if (pins.expert.value_or(1) > 1) return Dimension::expert;
  if (pins.sequence_parallel.value_or(false)) return Dimension::sequence_parallel;
  return std::nullopt;
}

}  // namespace plait
