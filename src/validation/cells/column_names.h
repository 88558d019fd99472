#pragma once

#include <string_view>
#include <vector>

#include "validation/cells/cell_values.h"

namespace plait {

// Seconds or milliseconds, as its cells say.
constexpr std::string_view kUnstatedTime = "iter_time";
// Tokens or samples, of one device or of all, as its cells say.
constexpr std::string_view kUnstatedRate = "throughput";

// A column of measured runs (validation/run_row.h) and what configurations of Megatron-LM, Hugging
// Face and DeepSpeed call it, and what people write. Capitals, blanks and signs between words do
// not count. A name that begins with ? may mean something else: it counts where no other column
// says the same.
struct ColumnNames {
  std::string_view name;
  CellKind kind;  // whose units a name may end with
  std::vector<std::string_view> others;
};

const std::vector<ColumnNames>& column_names();

// Columns that are read under one name alone, or say where rows come from.
bool is_other_column(std::string_view name);

}  // namespace plait
