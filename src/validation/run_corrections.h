#pragma once

#include <span>
#include <string_view>

#include "validation/run_row.h"

namespace plait {

// What is known of a published table that its columns do not say or say wrongly. It is about the
// data, never about the cost model: each entry changes cells of a row before it is interpreted and
// says what in the data shows it. docs/accuracy.md lists them with the error without them.
struct RunCorrection {
  std::string_view source;
  std::string_view what;
  std::string_view evidence;
  void (*apply)(RunRow& row);
};
std::span<const RunCorrection> run_corrections();

}  // namespace plait
