#include "io/model/megatron_launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/format/shell_flags.h"
#include "plan/names.h"

namespace plait {
namespace {

struct Degree {
  const char* flag;
  const char* name;
  std::optional<int> Pins::*pin;
};
constexpr Degree kDegrees[] = {
    {"tensor-model-parallel-size", "tp", &Pins::tensor},
    {"pipeline-model-parallel-size", "pp", &Pins::pipeline},
    {"context-parallel-size", "cp", &Pins::context},
    {"expert-model-parallel-size", "ep", &Pins::expert},
};

void read_degrees(const ShellFlags& flags, MegatronLaunch& out) {
  for (const auto& [flag, name, pin] : kDegrees) {
    out.pins.*pin = flags.size(flag, 1);
    if (flags.has(flag)) out.taken.push_back(fmt::format("{} {}", name, *(out.pins.*pin)));
  }
  if (flags.has("micro-batch-size")) {
    out.pins.micro_batch = flags.size("micro-batch-size", 1);
    out.taken.push_back(fmt::format("micro-batch {}", *out.pins.micro_batch));
  }
  if (flags.has("global-batch-size")) {
    out.global_batch = flags.size("global-batch-size", 1);
    out.taken.push_back(fmt::format("global batch {}", *out.global_batch));
  }
}

// Layers of the first and the last stage; those between share the rest evenly.
void read_uneven_ends(const ShellFlags& flags, MegatronLaunch& out) {
  const char* first = "decoder-first-pipeline-num-layers";
  const char* last = "decoder-last-pipeline-num-layers";
  const int stages = out.pins.pipeline.value_or(1);
  if ((!flags.has(first) && !flags.has(last)) || stages < 2) return;
  const int layers = flags.size("num-layers", flags.size("encoder-num-layers", 1));
  const int ends = (flags.has(first) ? 1 : 0) + (flags.has(last) ? 1 : 0);
  const int rest = layers - flags.size(first, 0, 0) - flags.size(last, 0, 0);
  if (stages > ends && rest % (stages - ends) != 0)
    flags.fail(flags.has(first) ? first : last,
               fmt::format("{} layers do not come out even on {} stages", rest, stages - ends));
  const int even = stages > ends ? rest / (stages - ends) : 0;
  if (even < (stages > ends ? 1 : 0) || (stages == ends && rest != 0))
    flags.fail(flags.has(first) ? first : last,
               fmt::format("{} layers are left for the other stages", rest));
  out.pins.stages.assign(stages, even);
  if (flags.has(first)) out.pins.stages.front() = flags.size(first, 1);
  if (flags.has(last)) out.pins.stages.back() = flags.size(last, 1);
  out.taken.push_back(fmt::format("layers {}", fmt::join(out.pins.stages, ",")));
}

// Stages of a layout; where it has several for each rank, chunks.
void read_layout(const ShellFlags& flags, MegatronLaunch& out) {
  const char* flag = "pipeline-model-parallel-layout";
  out.layout = parse_layout(flags.where(flag), flags.text(flag, ""));
  const int ranks = out.pins.pipeline.value_or(1);
  const int stages = static_cast<int>(out.layout.size());
  if (stages % ranks != 0)
    flags.fail(flag, fmt::format("has {} stages for {} pipeline ranks", stages, ranks));
  int layers = 0;
  for (const LayoutStage& stage : out.layout) layers += stage.layers;
  const int wanted = flags.size("num-layers", layers);
  if (layers != wanted)
    flags.fail(flag, fmt::format("has {} layers, --num-layers says {}", layers, wanted));
  out.taken.push_back(fmt::format("layout {}", layout_text(out.layout)));
  out.layers_per_chunk.reset();
  out.pins.chunks.reset();
  out.pins.schedule = stages > ranks ? Schedule::interleaved : Schedule::one_f_one_b;
  if (stages > ranks) {
    out.pins.chunks = stages / ranks;
    out.unpinned.emplace_back(
        "chunks of --pipeline-model-parallel-layout that differ cannot be pinned: layers are cut "
        "as "
        "is best");
    return;
  }
  for (const LayoutStage& stage : out.layout)
    out.pins.stages.push_back(stage.layers + (stage.embedding ? 1 : 0) + (stage.loss ? 1 : 0));
}

void read_pipeline(const ShellFlags& flags, MegatronLaunch& out) {
  if (flags.has("num-layers-per-virtual-pipeline-stage")) {
    out.layers_per_chunk = flags.size("num-layers-per-virtual-pipeline-stage", 1);
    out.taken.push_back(fmt::format("{} layers a chunk", *out.layers_per_chunk));
  } else if (flags.size("num-virtual-stages-per-pipeline-rank", 1) > 1) {
    out.pins.chunks = flags.size("num-virtual-stages-per-pipeline-rank", 1);
    out.taken.push_back(fmt::format("{} chunks a stage", *out.pins.chunks));
  } else if (out.pins.pipeline.value_or(1) > 1) {
    out.pins.schedule = Schedule::one_f_one_b;
  }
  out.embedding_layers = flags.has("account-for-embedding-in-pipeline-split") ? 1 : 0;
  out.loss_layers = flags.has("account-for-loss-in-pipeline-split") ? 1 : 0;
  if (flags.has("pipeline-model-parallel-layout")) {
    read_layout(flags, out);
    return;
  }
  read_uneven_ends(flags, out);
}

// How far the states of replicas are cut: by the distributed optimizer, or by one of the two FSDPs.
void read_sharding(const ShellFlags& flags, MegatronLaunch& out) {
  std::optional<ZeroStage>& zero = out.pins.zero;
  zero = ZeroStage::off;
  if (flags.has("use-distributed-optimizer")) {
    zero = ZeroStage::optimizer;
    out.taken.emplace_back("distributed optimizer");
  }
  if (flags.has("deepspeed") && flags.has("zero-stage")) {
    constexpr ZeroStage kStages[] = {ZeroStage::off, ZeroStage::optimizer, ZeroStage::gradients,
                                     ZeroStage::parameters};
    const int stage = flags.size("zero-stage", 0, 0);
    if (stage > 3) flags.fail("zero-stage", "must be 0, 1, 2 or 3");
    zero = kStages[stage];
    out.taken.push_back(fmt::format("ZeRO {}", stage));
  }
  out.optimizer_instances = flags.size("num-distributed-optimizer-instances", 1);
  if (flags.has("use-torch-fsdp2")) {
    const bool whole = flags.has("torch-fsdp2-no-reshard-after-forward");
    zero = whole ? ZeroStage::gradients : ZeroStage::parameters;
    out.taken.emplace_back("FSDP2");
  }
  if (!flags.has("use-megatron-fsdp")) return;
  const std::string kind = flags.choice("data-parallel-sharding-strategy",
                                        {"no_shard", "optim", "optim_grads", "optim_grads_params"});
  zero = kind == "no_shard"      ? ZeroStage::off
         : kind == "optim"       ? ZeroStage::optimizer
         : kind == "optim_grads" ? ZeroStage::gradients
                                 : ZeroStage::parameters;
  out.taken.push_back(fmt::format("Megatron-FSDP {}", kind));
}

// What --recompute-granularity selective recomputes: attention unless it says otherwise.
void read_selective(const ShellFlags& flags, MegatronLaunch& out) {
  out.pins.recompute = Recompute::selective;
  const std::vector<std::string> modules = flags.list("recompute-modules");
  if (modules.empty()) return;
  std::vector<std::string> others = modules;
  if (std::erase(others, "core_attn") == 0) out.pins.recompute = Recompute::none;
  if (others.empty()) return;
  out.warnings.push_back(fmt::format("the recompute of {} is not priced", fmt::join(others, ", ")));
}

// What changes time or memory and a plan has no words for.
void warn_of_more(const ShellFlags& flags, MegatronLaunch& out) {
  const auto warn = [&](bool said, const std::string& what) {
    if (said) out.warnings.push_back(what + " is not priced");
  };
  const int tensor = out.pins.tensor.value_or(1);
  const int expert_tensor = flags.size("expert-tensor-parallel-size", tensor);
  warn(expert_tensor != tensor, fmt::format("a tensor degree of {} for experts", expert_tensor));
  for (const char* states :
       {"main-grads-dtype", "main-params-dtype", "exp-avg-dtype", "exp-avg-sq-dtype"})
    warn(flags.text(states, "fp32") != "fp32",
         fmt::format("--{} {}", states, flags.text(states, "")));
  warn(flags.has("fp8-param-gather"), "that weights are kept in 8 bits (--fp8-param-gather)");
  warn(flags.has("rampup-batch-size"), "the batch that grows (--rampup-batch-size)");
  warn(flags.has("overlap-moe-expert-parallel-comm"), "expert parallelism that overlaps");
  warn(flags.size("cpu-offloading-num-layers", 0, 0) > 0,
       "activations in host memory (--cpu-offloading-num-layers)");
  const bool says_zero = flags.has("zero-stage");
  warn(says_zero && !flags.has("deepspeed"), "--zero-stage without --deepspeed");
  warn(!says_zero && flags.has("deepspeed-config"),
       "what DeepSpeed's file says (--deepspeed_config) without --zero-stage");
  warn(flags.size("moe-expert-parallel-size", 1) > 1,
       "the expert parallelism of Megatron-DeepSpeed (--moe-expert-parallel-size)");
}

// Switches that are off where they are not given.
void read_switches(const ShellFlags& flags, MegatronLaunch& out) {
  Pins& pins = out.pins;
  const auto take = [&](bool on, const char* name) {
    if (on) out.taken.emplace_back(name);
    return on;
  };
  read_sharding(flags, out);
  out.overlaps_gradients = flags.has("overlap-grad-reduce") || flags.has("use-torch-fsdp2") ||
                           flags.has("use-megatron-fsdp");
  out.overlaps_tensors = flags.has("tp-comm-overlap");
  const bool cuts_sequence = take(flags.has("sequence-parallel"), "sequence parallel");
  pins.sequence_parallel = cuts_sequence && pins.tensor.value_or(1) > 1;
  const std::string granularity = flags.text("recompute-granularity", "");
  pins.recompute = Recompute::none;
  if (granularity == "selective" || flags.has("recompute-activations")) read_selective(flags, out);
  // Older versions had these, and the method alone.
  const bool older = granularity.empty() &&
                     (flags.has("checkpoint-activations") ||
                      flags.has("activations-checkpoint-method") || flags.has("recompute-method"));
  if (granularity == "full" || older) pins.recompute = Recompute::full;
  // Of every virtual stage; other methods recompute all layers, so many at a time.
  if (granularity == "full" && flags.text("recompute-method", "uniform") == "block") {
    pins.recompute_layers = flags.size("recompute-num-layers", 1);
    out.taken.push_back(fmt::format("full recompute of {} layers a stage", *pins.recompute_layers));
  } else if (pins.recompute != Recompute::none) {
    out.taken.push_back(fmt::format("{} recompute", name_of(*pins.recompute)));
  }
  if (flags.has("optimizer-cpu-offload")) {
    pins.offload = flags.number("optimizer-offload-fraction", 1);
    if (*pins.offload > 1) flags.fail("optimizer-offload-fraction", "must be at most 1");
    out.taken.push_back(fmt::format("offload {}", *pins.offload));
  }
}

void read_precision(const ShellFlags& flags, MegatronLaunch& out) {
  if (flags.has("fp16")) out.precision = Precision::fp16;
  if (flags.has("bf16")) out.precision = Precision::bf16;
  if (flags.has("fp8-format") || flags.has("fp8-hybrid")) {
    const std::string recipe = flags.text("fp8-recipe", "delayed");
    const bool by_row = recipe == "blockwise" || recipe == "mxfp8";
    out.precision = by_row ? Precision::fp8_row : Precision::fp8;
  }
  if (flags.has("fp4-format")) out.precision = Precision::fp4;
  if (out.precision) out.taken.emplace_back(name_of(*out.precision));
}

// Gradients of fp16 are added up in fp16, those of bf16 in fp32, unless a flag says otherwise.
void read_bytes(const ShellFlags& flags, MegatronLaunch& out) {
  const bool half = out.precision == Precision::fp16;
  const bool other = half ? flags.has("accumulate-allreduce-grads-in-fp32")
                          : out.precision && flags.has("grad-reduce-in-bf16");
  if (half != other) out.gradient_bytes = 2;
  // Transformer Engine's loss keeps logits and their gradient in 16 bits.
  if (flags.has("cross-entropy-loss-fusion") &&
      flags.text("cross-entropy-fusion-impl", "native") == "te")
    out.logit_bytes = 4;
}

void read_kernels(const ShellFlags& flags, MegatronLaunch& out) {
  const std::string backend = flags.text("attention-backend", "");
  if (backend == "flash" || backend == "fused" || flags.has("use-flash-attn"))
    out.attention = AttentionKernel::flash;
  if (backend == "unfused" || backend == "local") out.attention = AttentionKernel::plain;
  const std::string optimizer = flags.text("optimizer", "adam");
  out.optimizer = Optimizer::adam;
  if (optimizer == "sgd")
    out.optimizer = flags.number("sgd-momentum", 0.9) > 0 ? Optimizer::momentum : Optimizer::sgd;
  else if (optimizer != "adam")
    out.warnings.push_back(fmt::format("--optimizer {} is priced as Adam", optimizer));
}

// Numbers that torchrun is given, where the script says them as numbers.
void read_processes(const ShellFlags& flags, const std::string& script, MegatronLaunch& out) {
  if (script.find("srun") != script.npos && !flags.has("nnodes")) return;  // once on every node
  const auto count = [&](const char* flag) {
    const std::string text = flags.text(flag, "");
    const bool digits = !text.empty() && text.size() < 7 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    return digits ? std::stoi(text) : 0;
  };
  const int processes = count("nproc-per-node");
  const int nodes = flags.has("nnodes") ? count("nnodes") : 1;
  if (processes > 0 && nodes > 0) out.processes = processes * nodes;
}

}  // namespace

void refuse_two_values(const std::string& name, const std::string& text) {
  const ShellFlags flags(name, text);
  for (const auto& [flag, value] : flags.earlier_values())
    flags.fail(flag, fmt::format("is given twice: '{}' and '{}'", value.substr(0, 40),
                                 flags.text(flag, "").substr(0, 40)));
}

std::optional<MegatronLaunch> read_megatron_launch(const std::string& name,
                                                   const std::string& text) {
  const ShellFlags flags(name, text);
  const bool says_layout =
      flags.has("micro-batch-size") ||
      std::ranges::any_of(kDegrees, [&](const Degree& degree) { return flags.has(degree.flag); });
  MegatronLaunch out;
  read_precision(flags, out);
  if (!says_layout) {
    if (!out.precision) return std::nullopt;
    return out;
  }
  if (flags.has("deepspeed")) {
    out.framework = "megatron-deepspeed";
    out.taken.emplace_back("DeepSpeed");
  }
  read_degrees(flags, out);
  read_pipeline(flags, out);
  read_switches(flags, out);
  read_kernels(flags, out);
  read_bytes(flags, out);
  warn_of_more(flags, out);
  read_processes(flags, text, out);
  return out;
}

}  // namespace plait
