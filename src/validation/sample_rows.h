#pragma once

// Rows of tables of published runs, for tests.

#include <map>
#include <string>
#include <vector>

#include "io/format/csv.h"
#include "validation/published_runs.h"

namespace plait::samples {

using Cells = std::map<std::string, std::string>;

// A complete row: GPT of 24 layers on 16 A100, tp 2, pp 2, dp 4.
inline Cells gpt_row() {
  return {{"row_id", "7"},
          {"source_id", "somebody"},
          {"date", "2023"},
          {"framework", "Megatron-LM"},
          {"model", "GPT"},
          {"n_layers", "24"},
          {"hidden", "2048"},
          {"n_heads", "16"},
          {"vocab", "51200"},
          {"seq_len", "1024"},
          {"gpu", "A100-80GB"},
          {"num_gpus", "16"},
          {"gpus_per_node", "8"},
          {"tp", "2"},
          {"pp", "2"},
          {"dp", "4"},
          {"mbs", "2"},
          {"gbs", "64"},
          {"recompute", "full"},
          {"precision", "fp16"},
          {"iter_time_s", "1.5"},
          {"status", "ok"},
          {"quality", "A"}};
}

inline std::string table_of(const Cells& cells) {
  std::vector<std::string> header;
  std::vector<std::string> values;
  for (const auto& [column, value] : cells) {
    header.push_back(column);
    values.push_back(value);
  }
  return csv_line(header) + csv_line(values);
}

inline MeasuredRun read(const Cells& changes, bool literal = false) {
  Cells cells = gpt_row();
  for (const auto& [column, value] : changes) cells[column] = value;
  RunReading reading;
  reading.literal = literal;
  return read_published_runs("runs.csv", table_of(cells), reading).at(0);
}

}  // namespace plait::samples
