#include "app/request/batch_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/request/request_error.h"
#include "report/quantities.h"

namespace plait {

BatchSamples samples_of(const BatchTokens& tokens, int sequence) {
  constexpr double kMost = 1e6;
  const auto whole = [](double value) { return value >= 1 && std::floor(value) == value; };
  const double decimal = tokens.decimal / sequence;
  const double binary = tokens.binary / sequence;
  const double samples = whole(decimal)  ? decimal
                         : whole(binary) ? binary
                                         : std::max(1.0, std::round(decimal));
  if (samples > kMost)
    throw RequestError("global_batch",
                       fmt::format("{} are {} samples of {} tokens, more than {}", tokens.text,
                                   grouped(samples), grouped(sequence), grouped(kMost)));
  BatchSamples out{static_cast<int>(samples), ""};
  if (!whole(decimal) && !whole(binary))
    out.note = fmt::format(
        "`global_batch`: {} are not a whole number of sequences of {} tokens; "
        "{} are taken",
        tokens.text, grouped(sequence), counted(samples, "sample"));
  return out;
}

}  // namespace plait
