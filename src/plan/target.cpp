#include "plan/target.h"

#include <algorithm>
#include <array>

#include "model/op_cuts.h"

namespace plait {
namespace {

using enum Schedule;
using enum ZeroStage;

// Megatron-LM with Megatron-Core: stages by --pipeline-model-parallel-layout, one degree of each
// kind for the whole model (rank order tp-cp-ep-dp-pp), the distributed optimizer is ZeRO-1, the
// schedules are 1F1B and interleaved 1F1B. --recompute-method block recomputes the first
// --recompute-num-layers layers of every virtual stage. Its sources
// (megatron/training/arguments.py, transformer_config.py) demand that query groups are a multiple
// of the tensor degree, that a context degree cuts sequences into twice as many parts (and has
// fused attention: dot_product_attention.py leaves it to Transformer Engine, whose own unfused
// attention does not know it), and sequence parallelism for experts beside tensor parallelism. The
// rule on query groups is that of Megatron-Core up to 0.15: 0.16 also takes a degree that is a
// multiple of the groups, and then gathers queries, keys and values over the tensor group in every
// layer (SelfAttention's get_query_key_value_tensors); that is not offered, since older ones refuse
// it and the gather is not priced.
Target megatron() {
  return {.name = "megatron",
          .program = "Megatron-LM",
          .one_layout = true,
          .context_in_halves = true,
          .context_needs_flash = true,
          .experts_need_sequence_parallel = true,
          .key_value_heads = KeyValueHeads::divided,
          .split_choices = SplitChoices::none,
          .cuts = CutRule::between_layers,
          .schedules = {one_f_one_b, interleaved},
          .zero = {off, optimizer},
          .zero_in_pipeline = {off, optimizer},
          .recompute_by_stage = false,
          .recompute_layers = RecomputeLayers::first,
          .offload_from = optimizer,
          .unequal_shares = false,
          .idle_in_node = false,
          .ranks_in_order = true,
          .needs_number_format = true,
          .flash_needs_bf16 = true,
          .four_bit_weights = false};
}

// Megatron's layers in DeepSpeed's engine: 1F1B alone, stages of equally many layers
// (partition_method type:transformer), gradients and parameters are cut without a pipeline only.
Target megatron_deepspeed() {
  Target target = megatron();
  target.name = "megatron-deepspeed";
  target.program = "Megatron-DeepSpeed";
  target.context = false;
  target.cuts = CutRule::even_layers;
  target.schedules = {one_f_one_b};
  target.zero = {off, optimizer, gradients, parameters};
  target.precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};
  target.recompute_layers = RecomputeLayers::same;
  return target;
}

// DeepSpeed around a PyTorch model: ZeRO, or PipelineModule with ZeRO-1 at most.
Target deepspeed() {
  Target target = megatron_deepspeed();
  target.name = "deepspeed";
  target.program = "DeepSpeed";
  target.tensor = false;
  target.sequence_parallel = false;
  target.recomputes = {Recompute::none, Recompute::full};
  target.parts_from = parameters;  // "ratio" of offload_optimizer
  target.four_bit_weights = true;  // of bitsandbytes, whose layers stand in the model
  return target;
}

// PyTorch's DistributedDataParallel (ZeRO-0) and FSDP2, which cuts parameters; with
// reshard_after_forward=False they stay whole after the forward pass, as under ZeRO-2. Accelerate
// recomputes all layers or none.
Target fsdp() {
  Target target = megatron_deepspeed();
  target.name = "fsdp";
  target.program = "PyTorch FSDP2";
  target.tensor = target.expert = target.sequence_parallel = target.offload = false;
  target.cuts = CutRule::none;
  target.zero = {off, gradients, parameters};
  target.four_bit_weights = true;  // of bitsandbytes or torchao
  return target;
}

// FSDP2, DTensor's tensor parallelism (always with sequence parallelism), context and expert
// parallelism, and the schedules of torch.distributed.pipelining. Parameters are cut over the
// devices of a context group, too, whatever else is said (its mesh dimension "fsdp").
Target torchtitan() {
  Target target = fsdp();
  target.name = "torchtitan";
  target.program = "TorchTitan";
  target.tensor = target.expert = target.sequence_parallel = target.context = true;
  target.cuts = CutRule::between_layers;
  target.schedules = {gpipe, one_f_one_b, interleaved, zb_v};
  target.recompute_layers = RecomputeLayers::same;
  target.four_bit_weights = false;
  target.zero_in_pipeline = {off, gradients, parameters};
  target.context_cuts_states = true;
  target.precisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp8,
                       Precision::fp8_row};
  return target;
}

// JAX with meshes as in MaxText: arrays are cut along named axes, and a pipeline is a loop over
// equal stages whose backward pass follows by differentiation: GPipe, or circular. An array's
// dimension is a multiple of the devices that cut it; every large one has one of the hidden width.
Target jax() {
  Target target = torchtitan();
  target.name = "jax";
  target.program = "JAX";
  target.cuts = CutRule::equal_layers;
  target.schedules = {gpipe, interleaved};
  target.zero = target.zero_in_pipeline = {off, optimizer, parameters};
  target.offload = true;
  target.offload_from = off;
  target.context_cuts_states = false;
  target.even_states = true;
  return target;
}

// Aceso's runtime: degrees by stage and op, stages of powers of two, 1F1B, recompute op by op.
Target aceso() {
  return {.name = "aceso",
          .program = "Aceso's runtime",
          .context = false,
          .expert = false,
          .sequence_parallel = false,
          .key_value_heads = KeyValueHeads::divided,
          .split_choices = SplitChoices::queries_and_convolutions,
          .cuts = CutRule::between_ops,
          .schedules = {one_f_one_b},
          .zero = {off},
          .zero_in_pipeline = {off},
          .recomputes = {Recompute::none, Recompute::full},
          .offload = false,
          .unequal_shares = false,
          .idle_in_node = false,
          .ranks_in_order = true,
          .stages_of_powers = true,
          .precisions = {Precision::fp32, Precision::tf32, Precision::fp16},
          .needs_number_format = true,
          .flash_needs_bf16 = true,
          .adapters = false,
          .four_bit_weights = false};
}

// plait train. What depends on the operations of a network is in runtime/lower.
Target plait_runtime() {
  return {.name = "plait",
          .program = "plait train",
          .context = false,
          .expert = false,
          .schedules = {gpipe, one_f_one_b, interleaved},
          .zero = {off, optimizer},
          .zero_in_pipeline = {off, optimizer},
          .offload = false,
          .precisions = {Precision::fp32, Precision::tf32, Precision::bf16},
          .adapters = false,
          .four_bit_weights = false};
}

}  // namespace

std::span<const Target> targets() {
  static const std::array kTargets{megatron(), megatron_deepspeed(), deepspeed(),
                                   fsdp(),     torchtitan(),         jax(),
                                   aceso(),    plait_runtime(),      Target{}};
  return kTargets;
}

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> names;
  for (const Target& target : targets()) names.push_back(target.name);
  return names;
}

int ways_to_cut(const Target& target, const LayerKind& unit) {
  if (target.split_choices == SplitChoices::none || unit.ops.size() != 1) return 1;
  const Op& op = unit.ops.front();
  // Ops of Aceso's names have no shape that says it.
  const bool queries_or_convolution =
      op.kind == OpKind::convolution ||
      std::ranges::any_of(std::array{"qkv", "conv", "downsample"}, [&](const char* word) {
        return op.name.find(word) != std::string::npos;
      });
  const bool may = target.split_choices == SplitChoices::any || queries_or_convolution;
  return may ? ways_to_cut(unit) : 1;
}

const Target* target_named(std::string_view name) {
  const auto at = std::ranges::find(targets(), name, &Target::name);
  return at == targets().end() ? nullptr : &*at;
}

}  // namespace plait
