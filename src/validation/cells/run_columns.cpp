#include "validation/cells/run_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "validation/cells/cell_values.h"

namespace plait {
namespace {

// Seconds or milliseconds, as its cells say.
constexpr std::string_view kUnstatedTime = "iter_time";

struct ColumnNames {
  std::string_view name;
  CellKind kind;  // whose units a name may end with
  std::vector<std::string_view> others;
};

// What configurations of Megatron-LM, Hugging Face and DeepSpeed call it, and what people write.
// Capitals, blanks and signs between words do not count.
const std::vector<ColumnNames>& column_names() {
  using enum CellKind;
  static const std::vector<ColumnNames> kNames{
      {"framework", count, {"program", "trainer", "software", "library"}},
      {"model", count, {"model_name", "network"}},
      {"params_b",
       billion,
       {"parameters_b", "billion_parameters", "params", "parameters", "num_params",
        "number_of_parameters", "model_size"}},
      {"n_layers",
       count,
       {"layers", "num_layers", "num_hidden_layers", "number_of_layers", "n_layer"}},
      {"hidden", count, {"hidden_size", "hidden_dim", "d_model", "model_dim", "n_embd"}},
      {"ffn_hidden",
       count,
       {"ffn", "ffn_hidden_size", "intermediate_size", "ffn_dim", "d_ff", "mlp_hidden"}},
      {"n_heads",
       count,
       {"heads", "num_heads", "num_attention_heads", "attention_heads", "number_of_attention_heads",
        "n_head"}},
      {"n_kv_heads",
       count,
       {"kv_heads", "num_kv_heads", "num_key_value_heads", "num_query_groups", "query_groups"}},
      {"vocab", count, {"vocabulary", "vocab_size", "vocabulary_size"}},
      {"seq_len",
       tokens,
       {"seq", "sequence", "seq_length", "sequence_length", "max_seq_len", "max_seq_length",
        "context_length", "ctx_len", "seqlen_t"}},
      {"moe_experts", count, {"experts", "num_experts", "n_experts"}},
      {"moe_topk", count, {"top_k", "moe_router_topk", "experts_per_token", "active_experts"}},
      {"moe_ffn",
       count,
       {"moe_ffn_hidden_size", "moe_intermediate_size", "expert_ffn", "expert_ffn_hidden_size"}},
      {"gpu",
       count,
       {"device", "device_type", "gpu_type", "gpu_name", "gpu_model", "accelerator", "hardware",
        "system", "accelerator_type"}},
      {"instance", count, {"instance_type", "machine_type", "vm_type"}},
      {"nodes",
       count,
       {"num_nodes", "n_nodes", "nnodes", "number_of_nodes", "machines", "instances"}},
      {"num_gpus",
       count,
       {"gpus", "n_gpus", "world_size", "devices", "num_devices", "gpu_count", "number_of_gpus",
        "total_gpus", "num_accelerators"}},
      {"gpus_per_node",
       count,
       {"devices_per_node", "gpus_a_node", "nproc_per_node", "num_gpus_per_node"}},
      {"parallelism", count, {"parallel_strategy", "parallelization", "parallel_layout"}},
      {"tp",
       count,
       {"tensor", "tensor_parallel", "tensor_parallel_size", "tensor_model_parallel_size",
        "tensor_parallelism", "tp_size", "tp_degree"}},
      {"pp",
       count,
       {"pipeline", "pipeline_parallel", "pipeline_parallel_size", "pipeline_model_parallel_size",
        "pipeline_parallelism", "pp_size", "pp_degree"}},
      {"vpp", count, {"virtual_pipeline", "virtual_pipeline_model_parallel_size", "vp"}},
      {"dp",
       count,
       {"data", "data_parallel", "data_parallel_size", "data_parallelism", "dp_size", "dp_degree"}},
      {"cp", count, {"context", "context_parallel", "context_parallel_size", "cp_size"}},
      {"ep",
       count,
       {"expert", "expert_parallel", "expert_parallel_size", "expert_model_parallel_size",
        "ep_size"}},
      {"seq_parallel", count, {"sequence_parallel", "sp"}},
      {"dp_sharding",
       count,
       {"sharding", "data_sharding", "zero", "zero_stage", "sharding_strategy"}},
      {"mbs",
       count,
       {"micro_batch", "micro_batch_size", "batch_per_gpu", "per_device_batch_size",
        "per_device_train_batch_size", "train_micro_batch_size_per_gpu", "batch_size_per_device",
        "batch_size_per_gpu", "local_batch_size"}},
      {"gbs", count, {"global_batch", "global_batch_size", "batch_size", "train_batch_size"}},
      {"gbs_tokens",
       count,
       {"global_batch_tokens", "global_batch_size_tokens", "global_batch_size_t",
        "batch_size_tokens", "tokens_per_batch", "tokens_per_step"}},
      {"grad_accum",
       count,
       {"accumulation", "gradient_accumulation", "gradient_accumulation_steps", "grad_accum_steps",
        "num_micro_batches"}},
      {"recompute",
       count,
       {"activation_checkpointing", "gradient_checkpointing", "recomputation",
        "activation_recompute", "activation_recomputation", "checkpointing", "remat", "ac"}},
      {"offload", count, {"cpu_offload", "offloading", "optimizer_offload"}},
      {"activation_offload", count, {"activation_cpu_offload", "activation_offloading"}},
      {"attention", count, {"attention_kernel", "attention_backend", "attn_implementation"}},
      {"optimizer", count, {"optim"}},
      {"task", count, {"method", "training_type"}},
      {"lora_rank", count, {"lora_r"}},
      {"compile", count, {"torch_compile"}},
      {"dropout", count, {"hidden_dropout"}},
      {"precision", count, {"dtype", "number_format", "mixed_precision"}},
      {"iter_time_s",
       count,  // the names say the unit
       {"s_per_it", "s_per_iter", "s_per_step", "sec_per_it", "sec_per_iter", "sec_per_step",
        "seconds_per_step", "seconds_per_iteration", "step_s"}},
      {kUnstatedTime,
       seconds,
       {"step_time", "iteration_time", "time_per_step", "time_per_iteration", "time_per_iter",
        "elapsed_time_per_iteration"}},
      {"steps_per_s",
       rate,
       {"it_per_s", "iter_per_s", "iterations_per_second", "steps_per_second"}},
      {"tokens_per_s_per_gpu",
       rate,
       {"tok_per_s_per_gpu", "tps_per_gpu", "tokens_per_gpu_per_s", "throughput_t_per_s_per_gpu",
        "throughput_tokens_per_s_per_gpu", "tokens_per_s_per_device", "tgs"}},
      {"tokens_per_s_total",
       rate,
       {"tokens_per_s", "tok_per_s", "throughput_t_per_s", "throughput_tokens_per_s"}},
      {"samples_per_s",
       rate,
       {"sequences_per_s", "seq_per_s", "throughput_s_per_s", "throughput_samples_per_s",
        "throughput_sequences_per_s"}},
      {"tflops_per_gpu",
       rate,
       {"tflops", "tflop_per_s_per_gpu", "tflops_per_s_per_gpu", "model_tflop_per_s_per_gpu",
        "model_tflops_per_gpu", "achieved_teraflop_per_s_per_gpu", "achieved_tflops_per_gpu"}},
      {"mfu_pct", percent, {"mfu", "model_flops_utilization"}},
      {"hfu_pct", percent, {"hfu", "hardware_flops_utilization"}},
      {"peak_mem_gb",
       gib,
       {"peak_memory", "max_memory", "memory", "peak_mem", "vram", "peak_vram", "gpu_memory",
        "peak_gpu_memory", "max_memory_allocated", "memory_per_gpu"}},
  };
  return kNames;
}

// Read under one name alone.
constexpr std::array kOthersRead{"row_id",
                                 "source_id",
                                 "date",
                                 "gpu_class",
                                 "gpu_mem_gb",
                                 "interconnect",
                                 "heterogeneous",
                                 "schedule",
                                 "layer_split",
                                 "plan_detail",
                                 "flops_convention",
                                 "mem_kind",
                                 "predicted_iter_time_s",
                                 "predictor",
                                 "status",
                                 "quality",
                                 "notes",
                                 "iter_time_derived_s"};
// Where rows come from.
constexpr std::array kOrigin{"source", "locator", "dims_source", "derived_from", "etp"};

// Words in lower case with _ between them: "Tokens / sec / GPU" is tokens_per_s_per_gpu, "#-GPUs"
// num_gpus.
std::string plain_column(std::string_view name) {
  std::string out;
  const auto word = [&](std::string_view text) {
    if (!out.empty() && out.back() != '_') out += '_';
    out += text;
    out += '_';
  };
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (c == '/')
      word("per");
    else if (c == '#')
      word("num");
    else if (!out.empty() && out.back() != '_')
      out += '_';
  while (out.ends_with('_')) out.pop_back();
  for (const auto& [said, meant] :
       {std::pair<std::string_view, std::string_view>{"_per_second", "_per_s"},
        {"_per_sec", "_per_s"}})
    for (std::size_t at = out.find(said); at != out.npos; at = out.find(said, at + meant.size()))
      if (at + said.size() == out.size() || out[at + said.size()] == '_')
        out.replace(at, said.size(), meant);
  return out;
}

std::string squashed(std::string_view text) {
  std::string out(text);
  std::erase(out, '_');
  return out;
}

const ColumnNames* column_called(std::string_view plain) {
  const std::string wanted = squashed(plain);
  const auto same = [&](std::string_view name) {
    return squashed(name) == wanted || squashed(plain_column(name)) == wanted;
  };
  for (const ColumnNames& column : column_names())
    if (same(column.name) || std::ranges::any_of(column.others, same)) return &column;
  return nullptr;
}

struct Known {
  std::string_view name;  // in run_row.h
  std::string unit;       // of its cells; "" = that of the name
};

std::optional<Known> known_column(const std::string& own) {
  const std::string plain = plain_column(own);
  if (const ColumnNames* column = column_called(plain)) return Known{column->name, ""};
  // "peak_memory_mib", "number of parameters (billion)".
  const std::size_t at = plain.rfind('_');
  if (at == plain.npos) return std::nullopt;
  const std::string unit = plain.substr(at + 1);
  const ColumnNames* column = column_called(std::string_view(plain).substr(0, at));
  if (column == nullptr || !is_unit(unit, column->kind)) return std::nullopt;
  return Known{column->name == kUnstatedTime ? "iter_time_s" : column->name, unit};
}

// "9800" in a column of milliseconds is "9800 ms".
void put_unit(CsvTable& table, std::size_t column, const std::string& unit) {
  for (CsvTable::Row& row : table.rows) {
    std::string& cell = row.cells[column];
    while (!cell.empty() && std::isspace(static_cast<unsigned char>(cell.back())) != 0)
      cell.pop_back();
    if (!cell.empty() && std::isdigit(static_cast<unsigned char>(cell.back())) != 0)
      cell += " " + unit;
  }
}

}  // namespace

CsvTable with_known_columns(CsvTable table) {
  std::map<std::string, std::string, std::less<>> said_by;  // columns of the file, by their names
  for (const std::string& column : table.header) said_by.emplace(column, column);
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    std::string& column = table.header[i];
    const auto known = known_column(column);
    if (!known || known->name == column) continue;
    const std::string name(known->name);
    const auto [other, is_new] = said_by.emplace(name, column);
    if (!is_new && other->second == name) continue;
    if (!is_new)
      throw InputError(table.name, fmt::format("columns '{}' and '{}' both say {}", other->second,
                                               column, name));
    if (!known->unit.empty()) put_unit(table, i, known->unit);
    column = name;
  }
  return table;
}

std::vector<std::string> unread_columns(const CsvTable& table) {
  std::vector<std::string> out;
  const CsvTable known = with_known_columns(table);
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    const std::string& name = known.header[i];
    const bool read =
        std::ranges::any_of(column_names(), [&](const ColumnNames& c) { return c.name == name; }) ||
        std::ranges::find(kOthersRead, name) != kOthersRead.end() ||
        std::ranges::find(kOrigin, name) != kOrigin.end();
    if (!read && !name.empty()) out.push_back(table.header[i]);
  }
  return out;
}

}  // namespace plait
