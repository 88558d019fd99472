#pragma once

#include "io/format/csv.h"

namespace plait {

// The table with its columns under the names of run_row.h: "global_batch_size" is gbs, "GPU type"
// gpu. A column that is there under its own name stays; InputError when two say the same.
CsvTable with_known_columns(CsvTable table);

}  // namespace plait
