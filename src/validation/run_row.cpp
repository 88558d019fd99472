#include "validation/run_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <regex>

#include "base/error.h"
#include "validation/cells/cell_values.h"
#include "validation/cells/column_names.h"
#include "validation/cells/run_columns.h"
#include "validation/cells/split_cells.h"

namespace plait {
namespace {

constexpr double kMost = 1e9;
constexpr double kMostParameters = 1e15;
constexpr std::size_t kLongestText = 2000;

bool is_absent(std::string_view text) {
  return text.empty() || text == "nan" || text == "NaN" || text == "NA" || text == "None" ||
         text == "null" || text == "-" || text == "--" || text == "—" || text == "N/A" ||
         text == "n/a" || text == "?";
}

// Reads cells of one row and remembers the first that makes no sense.
class Cells {
 public:
  Cells(const CsvTable& table, const CsvTable::Row& row, RunRow& into)
      : table_(table), row_(row), into_(into) {}

  std::string text(std::string_view column) const {
    const std::string_view cell = table_.cell(row_, column);
    return is_absent(cell) ? std::string() : std::string(cell.substr(0, kLongestText));
  }

  std::optional<int> count(std::string_view column, CellKind kind = CellKind::count) {
    const auto value = quantity(column, kind);
    if (value && *value != std::floor(*value)) {
      complain(column, "a whole number");
      return std::nullopt;
    }
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  }

  // Positive: zero and an infinite time state nothing.
  std::optional<double> quantity(std::string_view column, CellKind kind, double most = kMost) {
    const std::string_view cell = table_.cell(row_, column);
    if (is_absent(cell) || cell == "inf") return std::nullopt;
    const auto value = read_cell(cell, kind);
    if (value && *value == 0) return std::nullopt;
    if (!value || *value < 0 || *value > most) {
      complain(column, fmt::format("a number above 0 and up to {:.0e}", most));
      return std::nullopt;
    }
    return value;
  }

  // A time, or the word that the run ran out of memory, which is then its status.
  std::optional<double> time(std::string_view column) {
    if (mentions(text(column), "oom") || mentions(text(column), "out of memory")) {
      into_.status = "out of memory";
      return std::nullopt;
    }
    return quantity(column, CellKind::seconds);
  }

  void refuse(const std::string& fault) {
    if (into_.fault.empty()) into_.fault = fault;
  }

 private:
  void complain(std::string_view column, const std::string& wanted) {
    if (into_.fault.empty())
      into_.fault = fmt::format("{} is '{}', not {}", column,
                                table_.cell(row_, column).substr(0, 40), wanted);
  }

  const CsvTable& table_;
  const CsvTable::Row& row_;
  RunRow& into_;
};

void read_model_cells(Cells& cells, RunRow& row) {
  row.model = cells.text("model");
  if (const auto billions = cells.quantity("params_b", CellKind::billion))
    row.parameters = *billions * 1e9;
  row.layers = cells.count("n_layers");
  row.hidden = cells.count("hidden");
  row.ffn = cells.count("ffn_hidden");
  row.heads = cells.count("n_heads");
  row.kv_heads = cells.count("n_kv_heads");
  row.vocabulary = cells.count("vocab");
  row.experts = cells.count("moe_experts");
  row.top_k = cells.count("moe_topk");
  row.expert_ffn = cells.count("moe_ffn");
}

void read_machine_cells(Cells& cells, RunRow& row) {
  row.gpu = cells.text("gpu");
  row.gpu_class = cells.text("gpu_class");
  row.gpu_memory_gb = cells.quantity("gpu_mem_gb", CellKind::gib);
  row.instance = cells.text("instance");
  row.gpus_per_node = cells.count("gpus_per_node");
  row.gpus = cells.count("num_gpus");
  row.nodes = cells.count("nodes");
  row.interconnect = cells.text("interconnect");
  row.heterogeneous = mentions(cells.text("heterogeneous"), "yes");
}

// "TP4 PP2 DP4", "tp=4, pp=2", "FSDP": what its own columns leave empty. Whether the text says any.
bool read_degrees(const std::string& text, Cells& cells, RunRow& row) {
  static const std::regex degree(R"(\b(tp|pp|dp|cp|ep|vpp)\s*[=:]?\s*(\d{1,6})\b)",
                                 std::regex::icase);
  static const std::regex sharding(R"(fsdp2?|hsdp|zero[-_ ]?[123]|ddp)", std::regex::icase);
  bool any = false;
  for (std::sregex_iterator it(text.begin(), text.end(), degree), end; it != end; ++it) {
    std::string name = (*it)[1];
    std::ranges::transform(name, name.begin(), [](char c) {
      return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    });
    std::optional<int>& field = name == "tp"   ? row.tensor
                                : name == "pp" ? row.pipeline
                                : name == "dp" ? row.data
                                : name == "cp" ? row.context
                                : name == "ep" ? row.expert
                                               : row.chunks;
    const int value = std::stoi((*it)[2]);
    if (field && *field != value)
      cells.refuse(fmt::format("parallelism says {} {}, its column {}", name, value, *field));
    if (value > 0) field = value;
    any = true;
  }
  std::smatch match;
  if (std::regex_search(text, match, sharding)) {
    if (row.data_sharding.empty()) row.data_sharding = text;
    any = true;
  }
  if (mentions(text, "compile")) row.plan_detail += " torch.compile";
  return any;
}

void read_parallelism(Cells& cells, RunRow& row) {
  const std::string text = cells.text("parallelism");
  if (!text.empty() && !read_degrees(text, cells, row))
    cells.refuse(
        fmt::format("parallelism is '{}', not like 'TP4 PP2 DP4' or 'FSDP'", text.substr(0, 40)));
  // A strategy may be a program as well: "deepspeed (zero3)".
  const std::string strategy = cells.text("strategy");
  if (strategy.empty()) return;
  read_degrees(strategy, cells, row);
  if (row.framework.empty()) row.framework = strategy;
}

void read_plan_cells(Cells& cells, RunRow& row) {
  row.mixed_degrees = cells.text("tp") == "mixed" || cells.text("dp") == "mixed";
  if (!row.mixed_degrees) {
    row.tensor = cells.count("tp");
    row.data = cells.count("dp");
  }
  row.pipeline = cells.count("pp");
  row.chunks = cells.count("vpp");
  row.context = cells.count("cp");
  row.expert = cells.count("ep");
  row.sequence_parallel = cells.text("seq_parallel");
  row.data_sharding = cells.text("dp_sharding");
  row.micro_batch = cells.count("mbs");
  row.global_batch = cells.count("gbs");
  row.batch = cells.count("batch");
  row.accumulation = cells.count("grad_accum");
  row.recompute = cells.text("recompute");
  row.schedule = cells.text("schedule");
  row.precision = cells.text("precision");
  row.offload = cells.text("offload");
  row.activation_offload = cells.text("activation_offload");
  row.attention = cells.text("attention");
  row.optimizer = cells.text("optimizer");
  row.dropout = cells.text("dropout");
  row.layer_split = cells.text("layer_split");
  row.plan_detail = cells.text("plan_detail");
  const std::string compile = cells.text("compile");
  if (mentions(compile, "true") || mentions(compile, "yes") || compile == "1")
    row.plan_detail += " torch.compile";
  read_parallelism(cells, row);
}

void read_result_cells(Cells& cells, RunRow& row) {
  row.status = cells.text("status");
  row.step_s = cells.time("iter_time_s");
  row.derived_step_s = cells.quantity("iter_time_derived_s", CellKind::seconds);
  if (const std::string time = cells.text("iter_time"); !time.empty()) {
    if (std::isdigit(static_cast<unsigned char>(time.back())) != 0)
      cells.refuse(
          fmt::format("the time of a step is '{}', without a unit: name the column "
                      "step_time_s or step_time_ms",
                      time.substr(0, 40)));
    row.step_s = cells.time("iter_time");
  }
  if (const auto rate = cells.quantity("steps_per_s", CellKind::rate)) row.step_s = 1 / *rate;
  row.tokens_per_s_per_gpu = cells.quantity("tokens_per_s_per_gpu", CellKind::rate);
  row.tokens_per_s = cells.quantity("tokens_per_s_total", CellKind::rate);
  row.samples_per_s = cells.quantity("samples_per_s", CellKind::rate);
  row.samples_per_s_per_gpu = cells.quantity("samples_per_s_per_gpu", CellKind::rate);
  const bool timed = row.step_s || row.derived_step_s || row.tokens_per_s_per_gpu ||
                     row.tokens_per_s || row.samples_per_s || row.samples_per_s_per_gpu;
  if (const std::string rate = cells.text(kUnstatedRate); !rate.empty() && !timed)
    cells.refuse(
        fmt::format("the throughput is '{}', whose unit is not understood: name the column "
                    "tokens_per_s, tokens_per_s_per_gpu or samples_per_s",
                    rate.substr(0, 40)));
  row.tflops_per_gpu = cells.quantity("tflops_per_gpu", CellKind::rate);
  row.mfu = cells.quantity("mfu_pct", CellKind::percent);
  row.hfu = cells.quantity("hfu_pct", CellKind::percent);
  row.flops_convention = cells.text("flops_convention");
  row.memory_gib = cells.quantity("peak_mem_gb", CellKind::gib);
  row.memory_kind = cells.text("mem_kind");
  row.others_step_s = cells.quantity("predicted_iter_time_s", CellKind::seconds);
  row.other = cells.text("predictor");
  row.grade = cells.text("quality");
  row.notes = cells.text("notes");
}

RunRow published_row(const CsvTable& table, const CsvTable::Row& line) {
  RunRow row;
  Cells cells(table, line, row);
  row.id = cells.text("row_id");
  if (row.id.empty()) row.id = std::to_string(line.line);
  row.source = table.has("source_id") ? cells.text("source_id") : "own runs";
  if (row.source.empty()) row.source = "unnamed";
  row.date = cells.text("date");
  row.framework = cells.text("framework");
  row.task = cells.text("task");
  row.sequence = cells.count("seq_len", CellKind::tokens);
  row.lora_rank = cells.count("lora_rank");
  read_model_cells(cells, row);
  read_machine_cells(cells, row);
  read_plan_cells(cells, row);
  read_result_cells(cells, row);
  if (!row.global_batch)
    if (const auto tokens = cells.quantity("gbs_tokens", CellKind::batch, kMostParameters);
        tokens && row.sequence)
      row.global_batch = static_cast<int>(std::min(kMost, std::round(*tokens / *row.sequence)));
  return row;
}

RunRow huggingface_row(const CsvTable& table, const CsvTable::Row& line) {
  RunRow row;
  Cells cells(table, line, row);
  row.id = fmt::format("{}", line.line);
  row.source = "hf_steps";
  row.framework = "eager PyTorch (Hugging Face)";
  read_model_cells(cells, row);
  read_machine_cells(cells, row);
  read_plan_cells(cells, row);
  row.sequence = cells.count("seq");
  row.parameters = cells.quantity("params", CellKind::count, kMostParameters);
  if (row.gpu.empty()) row.gpu = "H200";
  row.gpus = row.tensor = row.pipeline = row.data = 1;
  const std::string recompute = cells.text("recompute");
  row.recompute = recompute == "1" || recompute == "true" ? "full" : "none";
  if (row.micro_batch)
    row.global_batch = static_cast<int>(
        std::min(kMost, static_cast<double>(*row.micro_batch) * row.accumulation.value_or(1)));
  // "bf16" is all-bf16 here, "amp" fp32 weights with bf16 autocast.
  row.precision = row.precision == "bf16" ? "pure bf16" : row.precision;
  if (const auto time = cells.quantity("ms_median", CellKind::count)) row.step_s = *time / 1e3;
  if (const auto memory = cells.quantity("peak_alloc_mib", CellKind::count))
    row.memory_gib = *memory / 1024;
  row.memory_kind = "max allocated";
  row.status = "ok";
  row.grade = "A";
  return row;
}

// What the three experiments of AMP (NeurIPS'22) ran; its tables do not repeat it.
RunRow trial_row(const CsvTable& table, const CsvTable::Row& line) {
  RunRow row;
  Cells cells(table, line, row);
  const std::string experiment = cells.text("experiment");
  row.id = cells.text("trial_index");
  if (row.id.empty()) row.id = std::to_string(line.line);
  row.source = "amp_" + experiment;
  row.framework = "DeepSpeed 3D (modified)";
  row.date = "2022-11";
  const bool gan = experiment == "het_model";
  row.heterogeneous = experiment == "het_cluster";
  if (!gan && !row.heterogeneous && experiment != "homogeneous")
    row.fault = "experiment is '" + experiment.substr(0, 40) +
                "', not homogeneous, het_cluster or het_model";
  row.model = gan ? "TransGAN" : "GPT2-350M-class";
  row.layers = 24;
  row.hidden = 1024;
  row.vocabulary = 50257;
  row.sequence = 1024;
  row.gpu = row.heterogeneous ? "V100 (p3.8xlarge x3) + T4 (g4dn.12xlarge x1)"
            : gan             ? "V100 (p3.8xlarge x4)"
                              : "T4 (g4dn.12xlarge x4)";
  row.gpu_class = gan ? "V100" : "T4";
  row.interconnect = gan ? "10 Gb/s" : "50 Gb/s";
  row.gpus = 16;
  row.gpus_per_node = 4;
  row.tensor = cells.count("tp");
  row.data = cells.count("dp");
  row.pipeline = cells.count("pp");
  row.micro_batch = cells.count("micro_batch");
  row.global_batch = cells.count("global_batch");
  row.layer_split = cells.text("units_per_stage");
  std::ranges::replace(row.layer_split, '-', '|');
  row.step_s = cells.quantity("actual_s", CellKind::seconds);
  row.others_step_s = cells.quantity("predicted_s", CellKind::seconds);
  row.other = "AMP cost model";
  row.status = cells.text("status");
  row.grade = "B";
  return row;
}

}  // namespace

bool says_none(const std::string& text) {
  static const std::regex none(
      R"(^\W*(?:none|no|not|without|n|off|false|disabled)\b|^\s*0(?:\.0*)?\s*$)",
      std::regex::icase);
  return std::regex_search(text, none);
}

bool mentions(const std::string& text, const std::string& word) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

std::vector<RunRow> read_run_rows(const CsvTable& given) {
  const bool steps = given.has("ms_median") && given.has("model") && given.has("mbs");
  const bool trials = given.has("experiment") && given.has("units_per_stage");
  const CsvTable table = steps || trials ? given : with_split_cells(with_known_columns(given));
  const bool devices =
      table.has("num_gpus") || table.has("nodes") || table.has("gpu") || table.has("instance");
  const bool network = table.has("model") || (table.has("n_layers") && table.has("hidden"));
  const bool published = !trials && network && devices;
  if (!steps && !published && !trials)
    throw InputError(table.name,
                     "is not a table of runs: it needs the columns model and num_gpus "
                     "(measured runs), model, mbs and ms_median (Hugging Face steps), or "
                     "experiment and units_per_stage (AMP's trials)");
  const std::string program = published ? program_of_columns(given) : std::string();
  std::vector<RunRow> rows;
  for (const CsvTable::Row& line : table.rows) {
    rows.push_back(published ? published_row(table, line)
                   : trials  ? trial_row(table, line)
                             : huggingface_row(table, line));
    if (rows.back().framework.empty()) rows.back().framework = program;
  }
  return rows;
}

std::vector<std::string> unread_run_columns(const CsvTable& table) {
  const bool own = table.has("ms_median") || table.has("experiment");
  return own ? std::vector<std::string>() : unread_columns(table);
}

}  // namespace plait
