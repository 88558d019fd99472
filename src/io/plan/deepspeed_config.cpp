#include "io/plan/deepspeed_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "io/plan/deepspeed_keys.h"
#include "model/layers.h"
#include "plan/check.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kMostBatch = 1'000'000'000;

// Where a comment begins; npos = nowhere. JSON has none, though DeepSpeed's own reader takes them.
std::size_t comment_in(const std::string& text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted &&
               (text[i] == '#' || text.compare(i, 2, "//") == 0 || text.compare(i, 2, "/*") == 0)) {
      return i;
    }
  }
  return std::string::npos;
}

bool is_auto(const JsonValue& value) { return value.is_string() && value.text() == "auto"; }

// A value of the file, of what was told, and whether it is still to be filled in.
struct Size {
  std::optional<int> value;
  bool missing = false;
};

Size size_of(const JsonValue& root, const char* key, std::string_view field,
             const std::optional<int>& told) {
  const auto value = root.find(key);
  if (!value) return {told, false};
  if (is_auto(*value)) return {told, !told};
  const int own = value->integer(1, kMostBatch);
  if (told && *told != own)
    throw InputError(value->where(), fmt::format("is {}, and `{}` is {}: they must be the same",
                                                 own, field, *told));
  return {own, false};
}

// Reads the three sizes. What is missing, in words: with one of them "auto", two must be known.
std::string read_sizes(const JsonValue& root, const DeepspeedBatch& told, DeepspeedBatch& out) {
  struct Named {
    const char* key;
    std::string_view field;
    std::optional<int> DeepspeedBatch::*size;
  };
  constexpr Named kSizes[] = {
      {"train_micro_batch_size_per_gpu", "micro_batch", &DeepspeedBatch::micro_batch},
      {"gradient_accumulation_steps", "micro_batches", &DeepspeedBatch::accumulation},
      {"train_batch_size", "global_batch", &DeepspeedBatch::batch}};
  int known = 0;
  bool automatic = false;
  std::vector<std::string> open;
  for (const auto& [key, field, member] : kSizes) {
    const Size size = size_of(root, key, field, told.*member);
    out.*member = size.value;
    known += size.value ? 1 : 0;
    automatic = automatic || size.missing;
    if (!size.value) open.push_back(fmt::format("`{}`", field));
  }
  if (!automatic || known >= 2) return "";
  if (known == 1) return fmt::format("{} or {}", open[0], open[1]);
  return fmt::format("two of {}, {} and {}", open[0], open[1], open[2]);
}

// A section's "enabled"; nothing = it is "auto".
std::optional<bool> is_enabled(const JsonValue& root, const char* key) {
  const auto section = root.find(key);
  if (!section) return false;
  const auto value = section->find("enabled");
  if (!value) return false;
  if (is_auto(*value)) return std::nullopt;
  return value->boolean();
}

// Reads the number format, or says that it is missing.
std::string read_precision(const std::string& name, const JsonValue& root,
                           const std::optional<Precision>& told, Precision& out) {
  const std::optional<bool> half = is_enabled(root, "fp16");
  const std::optional<bool> brain =
      is_enabled(root, root.find("bf16") ? "bf16" : "bfloat16");  // of older versions
  if (half && brain && *half && *brain) throw InputError(name, "fp16 and bf16 are both enabled");
  if (half.value_or(false)) out = Precision::fp16;
  if (brain.value_or(false)) out = Precision::bf16;
  const bool decided = half.value_or(false) || brain.value_or(false) || (half && brain);
  if (!told) return decided ? "" : "`precision`";
  const bool full = *told == Precision::fp32 || *told == Precision::tf32;
  const bool goes =
      decided ? *told == out || (full && out == Precision::fp32)
              : full || (*told == Precision::fp16 && !half) || (*told == Precision::bf16 && !brain);
  if (!goes)
    throw InputError(name, fmt::format("`precision` is {}, which its sections fp16 and bf16 do not "
                                       "allow",
                                       name_of(*told)));
  out = *told;
  return "";
}

void read_offload(const JsonValue& zero, DeepspeedConfig& out) {
  const auto offload = zero.find("offload_optimizer");
  if (zero.boolean_or("cpu_offload", false)) out.offload = 1;
  if (!offload) return;
  offload->allow_only({"device", "nvme_path", "buffer_count", "pin_memory", "pipeline_read",
                       "pipeline_write", "fast_init", "ratio", "super_offload",
                       "cpuadam_cores_perc"});
  const std::string device = offload->text_or("device", "none");
  if (device == "none") return;
  out.offload = offload->number_or("ratio", 1);
  if (!(out.offload >= 0 && out.offload <= 1))
    throw InputError(offload->at("ratio").where(), "must be from 0 to 1");
  if (out.offload < 1 && out.zero != ZeroStage::parameters) {
    out.offload = 1;
    out.warnings.emplace_back(
        "DeepSpeed heeds the ratio of offload_optimizer under ZeRO 3 only: all states are in host "
        "memory");
  }
  if (device == "nvme") out.warnings.emplace_back("a disk (nvme) is priced as host memory");
}

void read_zero(const JsonValue& root, DeepspeedConfig& out) {
  const auto zero = root.find("zero_optimization");
  if (!zero) return;
  if (!zero->is_object()) throw InputError(zero->where(), "must be an object: {\"stage\": 1}");
  allow_deepspeed_zero_keys(*zero);
  if (const auto stage = zero->find("stage"))
    out.zero = static_cast<ZeroStage>(stage->integer(0, 3));
  if (out.zero != ZeroStage::off) read_offload(*zero, out);
  if (out.zero == ZeroStage::parameters)
    out.zero_group = std::max(0, zero->integer_or("mics_shard_size", -1, kMostBatch, 0));
  for (const char* key : {"zero_quantized_weights", "zero_quantized_gradients"})
    if (zero->boolean_or(key, false)) out.warnings.push_back(fmt::format("{} is not priced", key));
  if (zero->integer_or("zero_hpz_partition_size", 0, kMostBatch, 1) > 1)
    out.warnings.emplace_back(
        "the second copy of parameters (zero_hpz_partition_size) is not priced");
  if (const auto parameters = zero->find("offload_param"))
    if (parameters->text_or("device", "none") != "none")
      throw InputError(parameters->where(), kParametersInHostMemory);
}

void read_sum_type(const JsonValue& root, DeepspeedConfig& out) {
  const auto type = root.find("communication_data_type");
  if (!type) return;
  const std::string name = type->text();
  if (name != "fp32" && name != "fp16" && name != "bf16")
    throw InputError(type->where(), "must be fp16, bf16 or fp32");
  out.reduce_bytes = name == "fp32" ? 4 : 2;
}

void read_optimizer(const JsonValue& root, DeepspeedConfig& out) {
  const auto optimizer = root.find("optimizer");
  if (!optimizer) return;
  std::string type = optimizer->text_or("type", "AdamW");
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
  if (type == "sgd") {
    const auto parameters = optimizer->find("params");
    const double momentum = parameters ? parameters->number_or("momentum", 0) : 0;
    out.optimizer = momentum > 0 ? Optimizer::momentum : Optimizer::sgd;
  } else if (type != "adam" && type != "adamw") {
    out.warnings.push_back(fmt::format("the optimizer '{}' is priced as Adam",
                                       optimizer->text_or("type", "").substr(0, 40)));
  }
}

void read_recompute(const JsonValue& root, const std::optional<Recompute>& told,
                    DeepspeedConfig& out) {
  if (told == Recompute::selective)
    throw InputError("`recompute`", "must be none or full with DeepSpeed");
  out.recomputes = told == Recompute::full;
  if (const auto section = root.find("activation_checkpointing")) {
    section->allow_only({"partition_activations", "cpu_checkpointing",
                         "contiguous_memory_optimization", "number_checkpoints",
                         "synchronize_checkpoint_boundary", "profile"});
    out.recomputes = true;
    for (const char* key : {"partition_activations", "cpu_checkpointing"})
      if (section->boolean_or(key, false))
        out.warnings.push_back(fmt::format("{} is not priced", key));
  }
  const auto pipeline = root.find("pipeline");
  if (!pipeline) return;
  pipeline->allow_only({"stages", "partition", "seed_layers", "activation_checkpoint_interval",
                        "pipe_partitioned", "grad_partitioned"});
  if (const auto stages = pipeline->find("stages")) {
    if (stages->is_string())
      throw InputError(stages->where(), "is not a number: say how many stages there are");
    out.stages = stages->integer(1, kMostBatch);
  }
  if (pipeline->integer_or("activation_checkpoint_interval", 0, kMostBatch, 0) > 0)
    out.recomputes = true;
}

// Completes the three sizes as DeepSpeed does.
void complete_batch(const std::string& name, DeepspeedBatch& c, int data) {
  if (c.batch && c.micro_batch && !c.accumulation)
    c.accumulation = static_cast<int>(*c.batch / (1LL * *c.micro_batch * data));
  else if (c.batch && !c.micro_batch && c.accumulation)
    c.micro_batch = static_cast<int>(*c.batch / (1LL * *c.accumulation * data));
  else if (!c.batch && c.micro_batch)
    c.batch = static_cast<int>(
        std::min<long long>(kMostBatch, 1LL * *c.micro_batch * c.accumulation.value_or(1) * data));
  else if (c.batch && !c.micro_batch)
    c.micro_batch = *c.batch / data;
  if (!c.accumulation) c.accumulation = 1;
  if (!c.batch || !c.micro_batch)
    throw InputError(name, "train_batch_size or train_micro_batch_size_per_gpu is missing");
  if (*c.batch != 1LL * *c.micro_batch * *c.accumulation * data)
    throw InputError(
        name, fmt::format("batch sizes contradict: train_batch_size {} is not "
                          "train_micro_batch_size_per_gpu {} x gradient_accumulation_steps {} x {} "
                          "replicas",
                          *c.batch, *c.micro_batch, *c.accumulation, data));
}

std::vector<LayoutStage> even_stages(int layers, int stages) {
  std::vector<LayoutStage> out;
  for (int s = 0; s < stages; ++s)
    out.push_back({.layers = layers / stages + (s < layers % stages ? 1 : 0)});
  out.front().embedding = out.back().loss = true;
  return out;
}

}  // namespace

DeepspeedConfig read_deepspeed_config(const std::string& name, const std::string& text,
                                      const DeepspeedFilled& filled) {
  if (const std::size_t at = comment_in(text); at != std::string::npos)
    throw InputError(
        fmt::format("{}:{}", name, 1 + std::count(text.begin(), text.begin() + at, '\n')),
        "a comment is not JSON; take it out");
  const JsonValue root = parse_json(name, text);
  if (!root.is_object()) throw InputError(name, "must be an object, as DeepSpeed's files are");
  allow_deepspeed_keys(root);
  DeepspeedConfig out;
  std::vector<std::string> missing;
  for (const std::string& one : {read_sizes(root, filled.sizes, out.sizes),
                                 read_precision(name, root, filled.precision, out.precision)})
    if (!one.empty()) missing.push_back(one);
  if (!missing.empty())
    throw InputError(name, fmt::format("has 'auto', which the program that starts DeepSpeed fills "
                                       "in: give {}",
                                       fmt::join(missing, ", and ")));
  read_zero(root, out);
  read_optimizer(root, out);
  read_sum_type(root, out);
  read_recompute(root, filled.recompute, out);
  if (out.recomputes && filled.recompute == Recompute::none)
    throw InputError(name, "says that activations are recomputed, and `recompute` is none");
  return out;
}

ConfiguredPlan deepspeed_plan(const std::string& name, const DeepspeedConfig& config,
                              const Problem& problem) {
  const int world = problem.cluster.device_count();
  const int layers = whole_layer_count(problem.model);
  if (world % config.stages != 0)
    throw InputError(name, fmt::format("{} stages do not divide the {} devices of the cluster",
                                       config.stages, world));
  if (config.stages > layers)
    throw InputError(name, fmt::format("{} stages are more than the {} layers of {}", config.stages,
                                       layers, problem.model.name));
  DeepspeedBatch complete = config.sizes;
  const int data = world / config.stages;
  complete_batch(name, complete, data);
  LaunchedLayout layout{
      .data = data, .stages = config.stages, .chunks = {}, .recomputed_layers = {}};
  layout.chunks = even_stages(layers, config.stages);
  layout.recompute = config.recomputes ? Recompute::full : Recompute::none;
  ConfiguredPlan out;
  out.global_batch = *complete.batch;
  out.plan.micro_batches = *complete.accumulation;
  out.plan.zero = config.zero;
  out.plan.offload = config.offload;
  out.plan.stages = stages_of(layout, problem.model);
  Problem trained = problem;
  trained.job.global_batch = out.global_batch;
  const std::vector<Violation> violations = check_plan(trained, out.plan);
  if (!violations.empty())
    throw InputError(name, violations.front().where + " " + violations.front().what);
  return out;
}

}  // namespace plait
