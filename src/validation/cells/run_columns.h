#pragma once

#include <string>
#include <vector>

#include "io/format/csv.h"

namespace plait {

// The table with its columns under the names of run_row.h: "global_batch_size" is gbs, "GPU type"
// gpu, "time per step (ms)" iter_time_s, whose cells then have the unit. A column that is there
// under its own name stays; InputError when two say the same.
CsvTable with_known_columns(CsvTable table);

// Columns of such a table that nobody reads, and that do not say where its rows come from.
std::vector<std::string> unread_columns(const CsvTable& table);

}  // namespace plait
