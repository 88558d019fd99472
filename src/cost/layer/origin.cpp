#include "cost/layer/origin.h"

#include <fmt/format.h>

namespace plait {

std::string in_words(const Origin& origin) {
  if (origin.time == Source::analytic) return "analytic";
  if (origin.time == Source::measured) return "measured";
  std::string text = fmt::format("interpolated from tp {}", origin.tensor);
  if (origin.sequence != 0) text += fmt::format(", sequence {}", origin.sequence);
  text += fmt::format(", micro-batch {}", origin.micro_batch_low);
  if (origin.micro_batch_high != origin.micro_batch_low)
    text += fmt::format(" and {}", origin.micro_batch_high);
  return text;
}

}  // namespace plait
