#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/format/csv.h"

namespace plait {

// Why a row of a table of runs cannot be predicted; read_published_runs() turns it into
// MeasuredRun::refusal.
class RowRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One row of a table of published runs, its cells read but not yet interpreted. What the table
// leaves empty is absent here; counts are from 1 to 10^9. Column names in comments where they are
// not the field's own.
struct RunRow {
  std::string id;      // row_id
  std::string source;  // source_id
  std::string date;    // "2024-07", "2023"
  std::string framework;
  std::string task;  // "pretrain", "lora", ..
  std::optional<int> lora_rank;
  std::string model;

  std::optional<double> parameters;  // params_b, times 10^9
  std::optional<int> layers;         // n_layers
  std::optional<int> hidden;
  std::optional<int> ffn;         // ffn_hidden
  std::optional<int> heads;       // n_heads
  std::optional<int> kv_heads;    // n_kv_heads
  std::optional<int> vocabulary;  // vocab
  std::optional<int> sequence;    // seq_len
  std::optional<int> experts;     // moe_experts
  std::optional<int> top_k;       // moe_topk
  std::optional<int> expert_ffn;  // moe_ffn: width of one expert

  std::string gpu;
  std::string gpu_class;
  std::optional<double> gpu_memory_gb;  // gpu_mem_gb
  std::optional<int> gpus;              // num_gpus
  std::optional<int> gpus_per_node;
  std::optional<int> nodes;
  std::string instance;  // rented machines, by name
  std::string interconnect;
  bool heterogeneous = false;

  std::optional<int> tensor;    // tp
  std::optional<int> pipeline;  // pp
  std::optional<int> chunks;    // vpp
  std::optional<int> data;      // dp
  std::optional<int> context;   // cp
  std::optional<int> expert;    // ep
  bool mixed_degrees = false;   // tp or dp is "mixed": plan_detail lists the stages
  std::string sequence_parallel;
  std::string data_sharding;        // dp_sharding
  std::optional<int> micro_batch;   // mbs
  std::optional<int> global_batch;  // gbs
  std::optional<int> batch;         // of one device or of all
  std::optional<int> accumulation;  // grad_accum
  std::string recompute;
  std::string schedule;
  std::string precision;
  std::string dropout;             // "0.1", "none"
  std::string offload;             // of optimizer state: "cpu", "none"
  std::string activation_offload;  // "yes", "no"
  std::string attention;           // "plain", "flash-attn 2"
  std::string optimizer;           // "adamw"
  std::string layer_split;
  std::string plan_detail;

  std::optional<double> step_s;          // iter_time_s
  std::optional<double> derived_step_s;  // iter_time_derived_s
  std::optional<double> tokens_per_s_per_gpu;
  std::optional<double> tokens_per_s;  // tokens_per_s_total
  std::optional<double> samples_per_s;
  std::optional<double> samples_per_s_per_gpu;
  std::optional<double> tflops_per_gpu;
  std::string flops_convention;
  std::optional<double> mfu;            // mfu_pct: of the peak, what is computed twice not counted
  std::optional<double> hfu;            // hfu_pct: counted
  std::optional<double> memory_gib;     // peak_mem_gb
  std::string memory_kind;              // mem_kind
  std::optional<double> others_step_s;  // predicted_iter_time_s
  std::string other;                    // predictor
  std::string status;
  std::string grade;  // quality
  std::string notes;

  // Set by data corrections only (validation/run_corrections.h).
  bool no_head = false;   // the time contains neither logits nor loss
  bool unpadded = false;  // the vocabulary is not padded
  bool composed = false;  // of measured parts: nobody has run it as a whole

  // A cell that makes no sense, "" when none: "tp is 'mixed', not a count".
  std::string fault;
};

// Understands three tables, told apart by their header:
//   measured runs (model, num_gpus, gpu, ..): any subset of the columns, in any order, under these
//   names or others (cells/run_columns.h); without source_id they are of one source, "own runs";
//   AMP's trials (experiment, tp, dp, pp, micro_batch, units_per_stage, actual_s, ..): experiment
//   is homogeneous (GPT-2 on 4 g4dn.12xlarge), het_cluster (on 3 p3.8xlarge and a g4dn.12xlarge) or
//   het_model (TransGAN on 4 p3.8xlarge);
//   Hugging Face steps (model, mbs, precision, recompute, ms_median, peak_alloc_mib, ..): one
//   device, H200 unless a column gpu says otherwise, eager PyTorch with SDPA attention.
// InputError when it is neither.
std::vector<RunRow> read_run_rows(const CsvTable& table);

// Columns of measured runs that nobody reads, by the table's names.
std::vector<std::string> unread_run_columns(const CsvTable& table);

// "none", "No", "off", "without ..", "0": whether the text says that there is none.
bool says_none(const std::string& text);

// Whether `text` contains `word`, upper and lower case alike.
bool mentions(const std::string& text, const std::string& word);

}  // namespace plait
