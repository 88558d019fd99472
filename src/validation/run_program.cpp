#include <fmt/format.h>

#include "validation/run_parts.h"

namespace plait {
namespace {

bool mentions_any(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (mentions(text, word)) return true;
  return false;
}

// From then on Megatron-Core's containers run mixtures with CUDA graphs and a fused dispatch on
// Blackwell; the dates of the rows are those of the containers. Before, since Megatron Bridge, the
// recipes for GB200 and GB300 had attention and routers in CUDA graphs (cuda_graph_scope), those
// for other devices none.
constexpr const char* kGraphsSince = "2026-06";
constexpr const char* kRouterGraphsSince = "2025-09";

// Names of the catalogue.
constexpr const char* kMegatron = "megatron";
constexpr const char* kMegatronRouter = "megatron-router";
constexpr const char* kMegatronGraph = "megatron-graph";
constexpr const char* kMegatronLm = "megatron-lm";
constexpr const char* kMegatronDeepspeed = "megatron-deepspeed";
constexpr const char* kDeepspeed3d = "deepspeed-3d";

const char* pytorch(const RunRow& row) {
  return mentions(row.framework + row.plan_detail, "compile") ? "fsdp-compile" : "fsdp";
}

// The catalogue's name of the program that the row names.
const char* framework_of(const RunRow& row, Assumptions& assumptions) {
  const std::string& name = row.framework;
  if (mentions_any(name, {"jax", "maxtext", "paxml", "t5x"})) return "jax";
  if (mentions_any(name, {"eager", "hugging face"})) return "eager";
  if (mentions(name, "deepspeed 3d")) return kDeepspeed3d;
  if (mentions(name, "deepspeed"))
    return mentions(name, "megatron") ? kMegatronDeepspeed : "deepspeed";
  if (mentions_any(name, {"fsdp", "torchtitan"})) return pytorch(row);
  if (mentions_any(name, {"core", "nemo", "bridge", "primus", "meta"})) return kMegatron;
  if (!mentions_any(name, {"megatron", "internevo", "aceso", "mist"}))
    assumptions.emplace_back("a program like Megatron-LM");
  return kMegatronLm;
}

Framework in_catalogue(const Catalogue& catalogue, const char* name) {
  return find_framework(catalogue, name, "catalogue");
}

// Programs whose own attention is not fused, unless the row says so.
AttentionKernel attention_of(const RunRow& row, const std::string& framework) {
  if (mentions(row.plan_detail, "flash_attn=True")) return AttentionKernel::flash;
  if (mentions(row.plan_detail, "flash_attn=False")) return AttentionKernel::plain;
  const bool plain = framework == kMegatronDeepspeed || framework == kDeepspeed3d ||
                     (framework == kMegatronLm && !mentions(row.framework, "internevo"));
  return plain ? AttentionKernel::plain : AttentionKernel::flash;
}

}  // namespace

Precision precision_of(const RunRow& row, const Cluster& cluster, Assumptions& assumptions) {
  const std::string& text = row.precision;
  if (mentions_any(text, {"fp4"})) return Precision::fp4;
  if (mentions(text, "fp8")) return mentions(text, "row") ? Precision::fp8_row : Precision::fp8;
  if (mentions(text, "pure bf16")) return Precision::pure_bf16;
  if (mentions_any(text, {"bf16", "amp"})) return Precision::bf16;
  if (mentions(text, "fp16")) return Precision::fp16;
  if (mentions(text, "tf32")) return Precision::tf32;
  if (mentions(text, "fp32")) return Precision::fp32;
  const bool has_bf16 = cluster.device_types[0].supports(DType::bf16);
  assumptions.push_back(has_bf16 ? "bf16" : "fp16");
  return has_bf16 ? Precision::bf16 : Precision::fp16;
}

Job job_of(const RunRow& row, const Catalogue& catalogue, Assumptions& assumptions) {
  Job job;
  job.framework = in_catalogue(catalogue, framework_of(row, assumptions));
  job.attention = attention_of(row, job.framework.name);
  job.overlap = !mentions_any(row.notes + row.plan_detail, {"comm overlap off", "vanilla TP"});
  job.adapters = mentions(row.task, "lora");
  // Aceso, Mist, InternEvo and the recipes of NeMo and Megatron Bridge (grad_reduce_in_fp32 off)
  // keep gradients in 16 bits; DeepSpeed accumulates those of bf16 in fp32.
  if (mentions_any(row.framework, {"aceso", "mist", "internevo", "nemo", "bridge"}))
    job.gradient_bytes = 2;
  if (job.framework.name == kMegatronDeepspeed && mentions(row.precision, "bf16"))
    job.gradient_bytes = 4;
  // A fused cross-entropy keeps 16-bit logits and, out of place, their gradient: llm-foundry's own,
  // Transformer Engine's in Megatron Bridge.
  if (mentions_any(row.framework, {"llm-foundry", "bridge"})) job.logit_bytes = 4;
  if (row.unpadded) job.vocabulary_multiple = 1;
  return job;
}

void set_graphs(const RunRow& row, const TransformerConfig& config, const Cluster& cluster,
                const Catalogue& catalogue, Job& job) {
  const bool blackwell = mentions_any(cluster.device_types[0].name, {"B200", "B300"});
  if (job.framework.name != kMegatron || !blackwell || config.moe.experts == 0) return;
  if (row.date >= kGraphsSince)
    job.framework = in_catalogue(catalogue, kMegatronGraph);
  else if (row.date >= kRouterGraphsSince && mentions(cluster.device_types[0].name, "GB"))
    job.framework = in_catalogue(catalogue, kMegatronRouter);
}

bool is_megatron_core(const Framework& framework) {
  return framework.name == kMegatron || framework.name == kMegatronRouter ||
         framework.name == kMegatronGraph;
}

}  // namespace plait
