#include "cost/framework/framework.h"

#include "cost/framework/trait_changes.h"

namespace plait {
namespace {

bool is_single(Precision precision) {
  return precision == Precision::fp32 || precision == Precision::tf32;
}

// Megatron-Core and NeMo with Transformer Engine: 14 H100 and 30 Blackwell configurations of dense
// models, 44 of mixtures (Megatron Bridge performance summary, DGX Cloud benchmarks, NeMo 24.07).
FrameworkTraits megatron() {
  FrameworkTraits t;
  t.host_block = Seconds(0.5e-3);
  t.host_experts = Seconds(8.4e-3);
  t.traffic = 0.58;
  t.expert_traffic = 36.6;
  t.native_attention = t.fused_softmax = t.pads_vocabulary = t.cuts_sends = true;
  t.tensor_exposed = t.data_exposed = 0;
  t.expert_exposed = 0.39;
  t.logit_bytes = 10;
  t.keeps_quantised = t.weighs_early = true;
  return t;
}

// The same with attention and routers in CUDA graphs, so that the host has less to launch: 37 rows
// of mixtures on GB200 and GB300, whose recipes do so.
FrameworkTraits megatron_router() {
  FrameworkTraits t = megatron();
  t.host_experts = Seconds(4e-3);
  return t;
}

// The same from container 26.06 on: 18 Blackwell rows of mixtures.
FrameworkTraits megatron_graph() {
  FrameworkTraits t = megatron();
  t.host_block = Seconds(0.3e-3);
  t.host_experts = Seconds(1e-3);
  t.expert_traffic = 1.44;
  return t;
}

// Narayanan et al. (SC'21), Korthikanti et al. (2022), Qi et al. (zero bubble, ICLR'24).
FrameworkTraits megatron_lm() {
  FrameworkTraits t;
  t.loss_bytes = 20.6;
  t.fused_softmax = t.pads_vocabulary = t.cuts_sends = true;
  t.logit_bytes = 10;
  return t;
}

// vTrain's profile of Megatron-DeepSpeed on A100, BLOOM's prequel runs. The send limit is exact in
// vTrain's rows: 12.5 GiB/s.
FrameworkTraits megatron_deepspeed() {
  FrameworkTraits t = megatron_lm();
  t.host_block = Seconds(2.822e-3);
  t.host_tensor = 0.1024;
  t.host_split = Seconds(20.3e-6);
  t.host_unfused = Seconds(1.52e-3);
  t.host_head = Seconds(1.093e-3);
  t.host_embedding = Seconds(0.564e-3);
  t.host_corner = 4.02;
  t.tensor_backward = 0.19;
  t.tensor_skew = Seconds(0.927e-3);
  t.send_limit = BytesPerSecond(12.5 * 0x1p30);
  return t;
}

// llm-foundry's MPT runs on A100 and H100.
FrameworkTraits fsdp() {
  FrameworkTraits t;
  t.host_block = Seconds(1.2e-3);
  t.traffic = 1.164;
  t.loss_bytes = 25.7;
  t.data_exposed = 0;
  t.alternate = true;
  return t;
}

// TorchTitan and fms-fsdp; tensor_exposed is asynchronous tensor parallelism.
FrameworkTraits fsdp_compile() {
  FrameworkTraits t;
  t.traffic = 0.8;
  t.tensor_exposed = 0;
  t.data_exposed = 0;
  t.alternate = true;
  return t;
}

// By analogy with fsdp_compile: XLA fuses and schedules in the same way.
FrameworkTraits jax() {
  FrameworkTraits t = fsdp_compile();
  t.native_attention = t.fused_softmax = true;
  t.alternate = false;
  return t;
}

// Hugging Face transformers 5.17 on one H200: GPT-2 steps, kernels and layers of ten families timed
// one by one. cost/op/eager.cpp has what the kernels cost.
FrameworkTraits eager(Precision precision) {
  const bool autocast = precision != Precision::pure_bf16 && !is_single(precision);
  FrameworkTraits t;
  t.host_block = Seconds(0.67e-3);
  t.host_kernel = Seconds(24e-6);
  t.host_corner = 20;
  t.host_checkpoint = Seconds(1.8e-3);
  t.host_head = Seconds(4.2e-3);
  t.loss_bytes = 38;
  t.cast_bytes = autocast ? 6 : 0;
  t.unfused = t.native_attention = true;
  t.data_exposed = 0;
  t.workspace = Bytes(65 * 0x1p20);
  t.keeps_gradients = false;
  return t;
}

// By analogy: the kernels of eager PyTorch on 16-bit weights.
FrameworkTraits deepspeed() {
  FrameworkTraits t = eager(Precision::pure_bf16);
  t.data_exposed = 1;
  t.workspace = Bytes(0x1p30);
  t.keeps_gradients = true;
  return t;
}

// Aceso's runtime, a Megatron-LM 2.4 that synchronises after every message (Liu et al.,
// EuroSys'24).
FrameworkTraits aceso() {
  FrameworkTraits t = megatron_lm();
  t.send_blocks = true;
  t.packs_gradients = true;
  t.workspace = Bytes(0);
  return t;
}

// DeepSpeed 0.3's pipeline engine around Megatron-LM 1.1.5 (its example of 3D parallelism), which
// AMP's trials ran. As its source has it: sends are broadcasts in groups of two that both sides
// wait for, the mask goes along, nothing of tensor parallelism is overlapped, the softmax is not
// fused unless a flag says so, gradients are reduced in fp32, the loss copies its logits. Host
// times are those of its successor; the wait of a hand-over is fitted on 47 trials with AMP's own
// profile.
FrameworkTraits deepspeed_3d() {
  FrameworkTraits t = megatron_deepspeed();
  t.fused_softmax = false;
  // To fp32 (3), the scale (4), the mask (3), a softmax in fp32 (2 more than in 16 bits) and back
  // to 16 bits (3); backward the same, with one more tensor to read in the softmax (2) and one less
  // to write (-1).
  t.softmax_forward = 15;
  t.softmax_backward = 16;
  t.tensor_backward = 1;
  t.tensor_skew = Seconds(0);
  t.send_limit = BytesPerSecond(0);
  t.send_blocks = t.sends_mask = true;
  t.send_wait = Seconds(6e-3);
  t.logit_bytes = 14;  // 16-bit logits, fp32 ones, their copy and its exponentials
  t.workspace =
      Bytes(0x1p29);  // with the reserve it is the 1.4 GiB that a T4 lost to context and buffers
  return t;
}

// plait's own runtime: libtorch's kernels launched from C++. `traffic` is fitted on two runs, GPT-2
// XL and Llama 3.2 1B on one H200. Sums of gradients begin layer by layer in the last backward
// pass, as in eager(), whose exposed part is taken for it.
FrameworkTraits plait_runtime() {
  FrameworkTraits t;
  t.host_block = Seconds(0.35e-3);
  t.host_tensor = 0;
  t.host_unfused = Seconds(0);
  t.host_head = t.host_embedding = Seconds(0.1e-3);
  t.traffic = 2.15;
  // Of the 36 bytes that eager() moves, which take as long as 40.8 do, a softmax whose gradient is
  // made in one pass saves 16: to fp32 (6), softmax (8), its gradient in 16 bits (6).
  t.loss_bytes = 22.7;
  // Each micro-batch adds its gradients, 2 bytes, to sums of 4; the first writes them.
  t.cast_bytes = 4;
  t.native_attention = true;
  t.tensor_backward = 1;
  t.data_exposed = 0;
  t.workspace = Bytes(0x1p27);
  return t;
}

FrameworkTraits traits_with_overlap(const Job& job) {
  switch (job.framework) {
    case Framework::megatron:
      return megatron();
    case Framework::megatron_router:
      return megatron_router();
    case Framework::megatron_graph:
      return megatron_graph();
    case Framework::megatron_lm:
      return megatron_lm();
    case Framework::megatron_deepspeed:
      return megatron_deepspeed();
    case Framework::deepspeed:
      return deepspeed();
    case Framework::fsdp:
      return fsdp();
    case Framework::fsdp_compile:
      return fsdp_compile();
    case Framework::jax:
      return jax();
    case Framework::eager:
      return eager(job.precision);
    case Framework::aceso:
      return aceso();
    case Framework::deepspeed_3d:
      return deepspeed_3d();
    case Framework::plait:
      return plait_runtime();
  }
  return megatron();
}

double optimizer_slots(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
      return 2;
    case Optimizer::momentum:
      return 1;
    case Optimizer::sgd:
      return 0;
  }
  return 0;
}

// Bytes of an accumulated gradient when weights are computed with in 16 bits.
double mixed_gradient(Framework framework) {
  switch (framework) {
    case Framework::megatron:
    case Framework::megatron_router:
    case Framework::megatron_graph:
    case Framework::megatron_lm:
    case Framework::fsdp:
    case Framework::fsdp_compile:
    case Framework::eager:
    case Framework::plait:
      return 4;
    case Framework::megatron_deepspeed:
    case Framework::deepspeed:
    case Framework::jax:
    case Framework::aceso:
    case Framework::deepspeed_3d:
      return 2;
  }
  return 4;
}

StateBytes mixed_state(const Job& job, bool sharded_weights) {
  const double slots = optimizer_slots(job.optimizer);
  const bool is_fsdp = job.framework == Framework::fsdp || job.framework == Framework::fsdp_compile;
  const bool is_deepspeed =
      job.framework == Framework::deepspeed || job.framework == Framework::megatron_deepspeed;
  StateBytes state{.weight = 2,
                   .gradient = mixed_gradient(job.framework),
                   .optimizer = 4 + 4 * slots,
                   .sharded_gradient = is_deepspeed ? 4.0 : 0.0};
  state.sent_gradient = is_fsdp ? 2 : state.gradient;
  if (job.framework == Framework::deepspeed_3d) {
    state.sent_gradient = 4;
    state.optimizer += 4;  // the gradients in fp32, made for the step and kept by the allocator
  }
  // fp32 weights are their own master copy; what is computed with is cast and not kept.
  if (job.framework == Framework::eager || (is_fsdp && sharded_weights)) {
    state.weight = 4;
    state.optimizer = 4 * slots;
  }
  if (job.framework == Framework::eager) state.gathered = 4;
  return state;
}

}  // namespace

StateBytes state_bytes(const Job& job, bool sharded_weights) {
  const double slots = optimizer_slots(job.optimizer);
  StateBytes state;
  if (is_single(job.precision)) {
    state = {.weight = 4, .gradient = 4, .optimizer = 4 * slots, .gathered = 4, .sent_gradient = 4};
  } else if (job.precision == Precision::pure_bf16) {
    state = {.weight = 2, .gradient = 2, .optimizer = 2 * slots};
  } else {
    state = mixed_state(job, sharded_weights);
  }
  if (job.gradient_bytes > 0) state.gradient = state.sent_gradient = job.gradient_bytes;
  if (job.adapters) state.gradient = state.optimizer = state.sharded_gradient = 0;
  return state;
}

double optimizer_traffic(const Job& job) {
  const double slots = optimizer_slots(job.optimizer);
  // In 16 bits the step is bound by its conversions: 18 bytes take as long as the 14 it moves.
  if (job.precision == Precision::pure_bf16) return 10 + 4 * slots;
  // plait train reads gradients of 4 bytes, once more for their norm, and writes them clipped.
  return 12 + 8 * slots + (job.framework == Framework::plait ? 10 : 0);
}

DType compute_dtype(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return DType::fp32;
    case Precision::tf32:
      return DType::tf32;
    case Precision::fp16:
      return DType::fp16;
    case Precision::bf16:
    case Precision::pure_bf16:
      return DType::bf16;
    case Precision::fp8:
    case Precision::fp8_row:
    case Precision::fp4:
      return DType::fp8;
  }
  return DType::bf16;
}

DType attention_dtype(Precision precision) {
  const DType dtype = compute_dtype(precision);
  return dtype == DType::fp8 ? DType::bf16 : dtype;
}

double activation_bytes(Precision precision) { return is_single(precision) ? 4 : 2; }

FrameworkTraits traits_of(const Job& job) {
  FrameworkTraits traits = traits_with_overlap(job);
  apply_trait_changes(job.framework, traits);
  if (job.logit_bytes > 0) traits.logit_bytes = job.logit_bytes;
  if (!job.overlap) traits.tensor_exposed = traits.tensor_backward = traits.data_exposed = 1;
  return traits;
}

}  // namespace plait
