#include "io/plan/deepspeed_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "io/format/json_reader.h"
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

// DeepSpeed's keys (deepspeed/runtime/config.py and constants.py of version 0.19).
void allow_keys(const JsonValue& root) {
  root.allow_only({"train_batch_size",
                   "train_micro_batch_size_per_gpu",
                   "gradient_accumulation_steps",
                   "optimizer",
                   "scheduler",
                   "fp16",
                   "bf16",
                   "zero_optimization",
                   "activation_checkpointing",
                   "pipeline",
                   "gradient_clipping",
                   "steps_per_print",
                   "wall_clock_breakdown",
                   "memory_breakdown",
                   "prescale_gradients",
                   "gradient_predivide_factor",
                   "gradient_allreduce_op",
                   "sparse_gradients",
                   "communication_data_type",
                   "seq_parallel_communication_data_type",
                   "zero_allow_untested_optimizer",
                   "zero_force_ds_cpu_optimizer",
                   "disable_allgather",
                   "dump_state",
                   "disable_python_gc",
                   "vocabulary_size",
                   "checkpoint",
                   "data_types",
                   "dataloader_drop_last",
                   "flops_profiler",
                   "tensorboard",
                   "wandb",
                   "comet",
                   "csv_monitor",
                   "comms_logger",
                   "aio",
                   "log_level",
                   "torch_autocast",
                   "compile",
                   "data_efficiency",
                   "curriculum_learning",
                   "use_data_before_expert_parallelism",
                   "managed_gradient_accumulation",
                   "hybrid_engine",
                   "weight_quantization",
                   "autotuning",
                   "elasticity",
                   "tensor_parallel",
                   "sequence_parallel_size"});
  for (const char* key : {"elasticity", "tensor_parallel", "sequence_parallel_size", "autotuning"})
    if (const auto value = root.find(key))
      throw InputError(value->where(), "plait has no words for it; leave it out");
}

std::optional<int> size_of(const JsonValue& root, const char* key) {
  const auto value = root.find(key);
  if (!value) return std::nullopt;
  if (value->is_string() && value->text() == "auto")
    throw InputError(value->where(), "is 'auto', which another program fills in: give the number");
  return value->integer(1, kMostBatch);
}

bool is_enabled(const JsonValue& root, const char* key) {
  const auto section = root.find(key);
  if (!section) return false;
  const auto value = section->find("enabled");
  if (value && value->is_string() && value->text() == "auto")
    throw InputError(value->where(), "is 'auto', which another program fills in: true or false");
  return value && value->boolean();
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
  if (device == "nvme") out.warnings.emplace_back("a disk (nvme) is priced as host memory");
}

void read_zero(const JsonValue& root, DeepspeedConfig& out) {
  const auto zero = root.find("zero_optimization");
  if (!zero) return;
  if (!zero->is_object()) throw InputError(zero->where(), "must be an object: {\"stage\": 1}");
  if (const auto stage = zero->find("stage"))
    out.zero = static_cast<ZeroStage>(stage->integer(0, 3));
  if (out.zero != ZeroStage::off) read_offload(*zero, out);
  if (const auto parameters = zero->find("offload_param"))
    if (parameters->text_or("device", "none") != "none")
      throw InputError(parameters->where(), "parameters in host memory have no words in a plan");
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

void read_recompute(const JsonValue& root, DeepspeedConfig& out) {
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
void complete_batch(const std::string& name, DeepspeedConfig& c, int data) {
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

DeepspeedConfig read_deepspeed_config(const std::string& name, const std::string& text) {
  if (const std::size_t at = comment_in(text); at != std::string::npos)
    throw InputError(
        fmt::format("{}:{}", name, 1 + std::count(text.begin(), text.begin() + at, '\n')),
        "a comment is not JSON; take it out");
  const JsonValue root = parse_json(name, text);
  if (!root.is_object()) throw InputError(name, "must be an object, as DeepSpeed's files are");
  allow_keys(root);
  DeepspeedConfig out;
  out.batch = size_of(root, "train_batch_size");
  out.micro_batch = size_of(root, "train_micro_batch_size_per_gpu");
  out.accumulation = size_of(root, "gradient_accumulation_steps");
  const bool half = is_enabled(root, "fp16");
  const bool brain = is_enabled(root, "bf16");
  if (half && brain) throw InputError(name, "fp16 and bf16 are both enabled");
  if (half) out.precision = Precision::fp16;
  if (brain) out.precision = Precision::bf16;
  read_zero(root, out);
  read_optimizer(root, out);
  read_recompute(root, out);
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
  DeepspeedConfig complete = config;
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
