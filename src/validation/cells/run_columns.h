#pragma once

#include <string>
#include <vector>

#include "io/format/csv.h"

namespace plait {

// The table with its columns under the names of run_row.h: "global_batch_size" is gbs, "GPU type"
// gpu, "time per step (ms)" iter_time_s, whose cells then have the unit. A column that is there
// under its own name stays; InputError when two say the same. A name that may mean something else
// counts where no other column says it ("Speed", "config.model.n_layer").
CsvTable with_known_columns(CsvTable table);

// The column that such words name, "" when none: "tokens/s/GPU" is tokens_per_s_per_gpu.
std::string column_meant(const std::string& words);

// The program whose arguments a table's columns are named after, "" when none is:
// "per_device_train_batch_size" is Hugging Face's.
std::string program_of_columns(const CsvTable& table);

// Columns of such a table that nobody reads, and that do not say where its rows come from.
std::vector<std::string> unread_columns(const CsvTable& table);

}  // namespace plait
