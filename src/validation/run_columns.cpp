#include "validation/run_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "base/error.h"

namespace plait {
namespace {

struct ColumnNames {
  std::string_view name;
  std::vector<std::string_view> others;
};

// What configurations of Megatron-LM, Hugging Face and DeepSpeed call it, and what people write.
const std::vector<ColumnNames>& column_names() {
  static const std::vector<ColumnNames> kNames{
      {"framework", {"program", "trainer"}},
      {"model", {"model_name"}},
      {"params_b", {"parameters_b", "billion_parameters"}},
      {"n_layers", {"layers", "num_layers", "num_hidden_layers"}},
      {"hidden", {"hidden_size"}},
      {"ffn_hidden", {"ffn", "ffn_hidden_size", "intermediate_size"}},
      {"n_heads", {"heads", "num_heads", "num_attention_heads"}},
      {"n_kv_heads", {"kv_heads", "num_kv_heads", "num_key_value_heads", "num_query_groups"}},
      {"vocab", {"vocabulary", "vocab_size"}},
      {"seq_len",
       {"seq", "sequence", "seq_length", "sequence_length", "max_seq_len", "context_length"}},
      {"gpu", {"device", "device_type", "gpu_type", "gpu_name", "accelerator"}},
      {"num_gpus", {"gpus", "n_gpus", "world_size", "devices", "num_devices", "gpu_count"}},
      {"gpus_per_node", {"devices_per_node", "gpus_a_node", "nproc_per_node"}},
      {"tp", {"tensor", "tensor_parallel", "tensor_parallel_size", "tensor_model_parallel_size"}},
      {"pp",
       {"pipeline", "pipeline_parallel", "pipeline_parallel_size", "pipeline_model_parallel_size"}},
      {"vpp", {"virtual_pipeline", "virtual_pipeline_model_parallel_size"}},
      {"dp", {"data", "data_parallel", "data_parallel_size"}},
      {"cp", {"context", "context_parallel", "context_parallel_size"}},
      {"ep", {"expert", "expert_parallel", "expert_parallel_size", "expert_model_parallel_size"}},
      {"seq_parallel", {"sequence_parallel"}},
      {"dp_sharding", {"sharding", "data_sharding", "zero", "zero_stage", "sharding_strategy"}},
      {"mbs",
       {"micro_batch", "micro_batch_size", "batch_per_gpu", "per_device_batch_size",
        "per_device_train_batch_size", "train_micro_batch_size_per_gpu"}},
      {"gbs", {"global_batch", "global_batch_size", "batch_size", "train_batch_size"}},
      {"grad_accum", {"accumulation", "gradient_accumulation", "gradient_accumulation_steps"}},
      {"recompute",
       {"activation_checkpointing", "gradient_checkpointing", "recomputation",
        "activation_recompute"}},
      {"precision", {"dtype"}},
      {"iter_time_s",
       {"step_s", "step_time_s", "iteration_time_s", "seconds_per_step", "seconds_per_iteration"}},
      {"tokens_per_s_per_gpu",
       {"tokens_per_second_per_gpu", "tokens_per_sec_per_gpu", "tokens/s/gpu", "tok/s/gpu"}},
      {"tokens_per_s_total",
       {"tokens_per_s", "tokens_per_second", "tokens_per_sec", "tokens/s", "tok/s"}},
      {"samples_per_s", {"samples_per_second", "samples/s"}},
      {"tflops_per_gpu", {"tflops", "tflop/s/gpu", "tflops/gpu"}},
      {"peak_mem_gb",
       {"peak_memory_gib", "peak_memory_gb", "max_memory_gib", "max_memory_gb", "memory_gib",
        "memory_gb"}},
  };
  return kNames;
}

// "GPU type", "gpu-type" and "gpu_type" are one name.
std::string plain_column(std::string_view name) {
  std::string out;
  for (const char c : name)
    out +=
        c == ' ' || c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The name in run_row.h of a column; its own when nothing else is known.
std::string_view known_name(const std::string& plain, std::string_view own) {
  for (const ColumnNames& column : column_names())
    if (plain == column.name || std::ranges::find(column.others, plain) != column.others.end())
      return column.name;
  return own;
}

}  // namespace

CsvTable with_known_columns(CsvTable table) {
  std::map<std::string, std::string, std::less<>> said_by;  // columns of the file, by their names
  for (const std::string& column : table.header) said_by.emplace(column, column);
  for (std::string& column : table.header) {
    const std::string name(known_name(plain_column(column), column));
    if (name == column) continue;
    const auto [other, is_new] = said_by.emplace(name, column);
    if (is_new)
      column = name;
    else if (other->second != name)
      throw InputError(table.name, fmt::format("columns '{}' and '{}' both say {}", other->second,
                                               column, name));
  }
  return table;
}

}  // namespace plait
