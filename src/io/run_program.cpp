#include <fmt/format.h>

#include "io/run_parts.h"

namespace plait {
namespace {

bool mentions_any(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (mentions(text, word)) return true;
  return false;
}

}  // namespace

RunProgram program_of(const RunRow& row, Assumptions& assumptions) {
  const std::string& name = row.framework;
  RunProgram program;
  if (mentions_any(name, {"jax", "maxtext", "paxml", "t5x"})) {
    program.framework = Framework::jax;
  } else if (mentions_any(name, {"eager", "hugging face"})) {
    program.framework = Framework::eager;
  } else if (mentions(name, "deepspeed")) {
    program.framework = Framework::deepspeed;
    program.attention = AttentionKernel::plain;
  } else if (mentions_any(name, {"fsdp", "torchtitan", "internevo"})) {
    program.framework = Framework::fsdp;
  } else {
    program.megatron_core = mentions_any(name, {"core", "nemo", "bridge", "primus", "meta"});
    if (!program.megatron_core) program.attention = AttentionKernel::plain;
    if (!program.megatron_core && !mentions_any(name, {"megatron", "aceso", "mist"}))
      assumptions.push_back("a Megatron-like program");
  }
  if (mentions(row.plan_detail, "flash_attn=True")) program.attention = AttentionKernel::flash;
  if (mentions(row.plan_detail, "flash_attn=False")) program.attention = AttentionKernel::plain;
  return program;
}

Precision precision_of(const RunRow& row, const Cluster& cluster, Assumptions& assumptions) {
  const std::string& text = row.precision;
  if (mentions(text, "nvfp4")) {
    assumptions.push_back("fp8 in place of fp4");
    return Precision::fp8;
  }
  if (mentions(text, "fp8")) return Precision::fp8;
  if (mentions(text, "pure bf16")) return Precision::pure_bf16;
  if (mentions_any(text, {"bf16", "amp"})) return Precision::bf16;
  if (mentions(text, "fp16")) return Precision::fp16;
  if (mentions(text, "tf32")) return Precision::tf32;
  if (mentions(text, "fp32")) return Precision::fp32;
  const bool has_bf16 = cluster.device_types[0].supports(DType::bf16);
  assumptions.push_back(has_bf16 ? "bf16" : "fp16");
  return has_bf16 ? Precision::bf16 : Precision::fp16;
}

}  // namespace plait
