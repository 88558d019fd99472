#pragma once

#include "io/format/csv.h"

namespace plait {

// A table whose columns are known (run_columns.h), with cells that say several things taken apart:
//   num_gpus    "8x A100"                   what is in gpu, which is empty
//   throughput  "3100 tokens/s/GPU"         tokens_per_s_per_gpu
//   fp16, bf16  "True"                      precision
//   fsdp        "1", "True"                 dp_sharding
//   task        "ZeRO-3", "DDP"             strategy
//   any result  "OOM"                       status
CsvTable with_split_cells(CsvTable table);

}  // namespace plait
