#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>

#include "plan/names.h"
#include "validation/run_parts.h"

namespace plait {
namespace {

// Published before that date; "2022" is before "2022-06".
bool before(const RunRow& row, const char* date) { return !row.date.empty() && row.date < date; }

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

// FlashAttention 2 appeared in July 2023: tables of before and of that year had kernels of the
// first generation, Triton's among them.
constexpr const char* kSecondFlashSince = "2024";

// FlashAttention appeared in May 2022, PyTorch's scaled_dot_product_attention in 2.0, March 2023.
constexpr const char* kFlashSince = "2022-06";
constexpr const char* kPytorchFlashSince = "2023-03";

// XLA fuses no attention by itself: until jax.nn called cuDNN's, programs had it from Transformer
// Engine alone.
constexpr const char* kJaxFlashSince = "2024-07";
constexpr const char* kJaxOverlapsSince = "2024";
constexpr const char* kJax = "jax";

// Megatron-LM's own layers became Megatron-Core in 2023; what was published later runs these. Until
// then NeMo, too, had the layers of Megatron-LM.
constexpr const char* kCoreSince = "2024";
constexpr const char* kCoreBegins = "2023";

// Names of the catalogue.
constexpr const char* kMegatron = "megatron";
constexpr const char* kMegatronRouter = "megatron-router";
constexpr const char* kMegatronGraph = "megatron-graph";
constexpr const char* kMegatronLm = "megatron-lm";
constexpr const char* kMegatronDeepspeed = "megatron-deepspeed";
constexpr const char* kDeepspeed3d = "deepspeed-3d";
constexpr const char* kAceso = "aceso";
constexpr const char* kEager = "eager";
constexpr const char* kFlashGpt = "flash-gpt";
constexpr const char* kCompiled = "fms-fsdp";  // torch.compile around modules of PyTorch

// Letters and digits of each word, in lower case: "Lit-GPT + FSDP" is lit, gpt, fsdp.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      words.back() += static_cast<char>(std::tolower(byte));
    else if (!words.back().empty())
      words.emplace_back();
  }
  return words;
}

// Whether some neighbouring words are `name`, written together or apart, and not what something is
// like ("Megatron-like").
bool has_name(const std::vector<std::string>& words, const std::string& name) {
  std::string wanted;
  for (const std::string& word : words_of(name)) wanted += word;
  for (std::size_t first = 0; first < words.size(); ++first) {
    std::string joined;
    for (std::size_t i = first; i < words.size() && joined.size() < wanted.size(); ++i)
      if ((joined += words[i]) == wanted) return i + 1 == words.size() || words[i + 1] != "like";
  }
  return false;
}

// The framework of the catalogue whose name or alias the text has; the longest, so that
// "NeMo AutoModel (PyTorch FSDP2)" is not NeMo. "" = none.
std::string named_program(const std::string& text, const Catalogue& catalogue) {
  const std::vector<std::string> words = words_of(text);
  std::string best;
  std::size_t longest = 0;
  const auto consider = [&](const std::string& name, const FrameworkEntry& entry) {
    if (name.size() <= longest || !has_name(words, name)) return;
    longest = name.size();
    best = entry.framework.name;
  };
  for (const FrameworkEntry& entry : catalogue.frameworks) {
    consider(entry.framework.name, entry);
    for (const std::string& alias : entry.aliases) consider(alias, entry);
  }
  return best;
}

bool is_compiled(const RunRow& row) { return mentions(row.framework + row.plan_detail, "compile"); }

// The repository of FlashAttention trains GPTs of its own, whose layers are fused; others that use
// its kernels say whose layers these are.
bool is_flash_gpt(const RunRow& row) {
  return mentions_any(row.framework, {"flash-attention", "flashattention", "flash attention"}) &&
         !mentions_any(row.framework, {"hugging", "transformers", "hf"});
}

std::string pytorch(const RunRow& row, const std::string& name) {
  const bool compiled = is_compiled(row);
  if (mentions(row.framework, "fms")) return "fms-fsdp";
  if (name != "fsdp" || mentions(row.framework + row.data_sharding, "FSDP2"))
    return compiled ? "fsdp-compile" : "fsdp2";
  return compiled ? "fms-fsdp" : "fsdp";
}

bool multiplies_in(DType format, const RunRow& row, const Catalogue& catalogue) {
  const DeviceEntry* device = device_called(row.gpu, catalogue);
  return device != nullptr && device->type.supports(format);
}

// A program that nobody has told us of runs as those do that cut the model in the same way.
std::string like_others(const RunRow& row, const Catalogue& catalogue, Assumptions& assumptions) {
  const bool cut = row.tensor.value_or(1) > 1 || row.pipeline.value_or(1) > 1 || row.mixed_degrees;
  if (!cut && mentions_any(row.data_sharding, {"FSDP", "FULL_SHARD", "SHARD_GRAD_OP"})) {
    assumptions.emplace_back("a program like PyTorch's FSDP");
    return pytorch(row, "fsdp");
  }
  if (!cut && mentions(row.data_sharding, "ZeRO")) {
    assumptions.emplace_back("a program like DeepSpeed");
    return "deepspeed";
  }
  if (!cut && is_compiled(row)) {
    assumptions.emplace_back("a program like PyTorch, compiled");
    return kCompiled;
  }
  // Adapters are trained by Hugging Face's programs and their like.
  if (!cut && (!row.framework.empty() || mentions(row.task, "lora"))) {
    assumptions.emplace_back("a program like PyTorch, kernel by kernel");
    return "eager";
  }
  // A row without a date is of today, unless it ran on what today's programs are not made for.
  const bool now =
      row.date.empty() ? multiplies_in(DType::bf16, row, catalogue) : row.date >= kCoreSince;
  assumptions.emplace_back(now ? "a program like Megatron-Core" : "a program like Megatron-LM");
  return now ? kMegatron : kMegatronLm;
}

// The catalogue's name of the program that the row names.
std::string framework_of(const RunRow& row, const Catalogue& catalogue, Assumptions& assumptions) {
  std::string name = named_program(row.framework, catalogue);
  if (name.empty()) {
    if (is_mist(row)) return kMegatronLm;
    return like_others(row, catalogue, assumptions);
  }
  if (name.starts_with("fsdp")) return pytorch(row, name);
  if (name == kEager && is_compiled(row)) return kCompiled;
  if (name == kEager && is_flash_gpt(row)) return kFlashGpt;
  const bool core = mentions_any(row.framework, {"core", "nemo", "bridge", "primus"});
  if (name == kMegatronLm && core) name = kMegatron;
  if (name != kMegatron || !before(row, kCoreBegins)) return name;
  assumptions.emplace_back("the layers of Megatron-LM, as before 2023");
  return kMegatronLm;
}

Framework in_catalogue(const Catalogue& catalogue, const std::string& name) {
  return find_framework(catalogue, name, "catalogue");
}

// Programs whose own attention is not fused, and times in which none was, unless the row says so.
AttentionKernel attention_of(const RunRow& row, const Framework& framework,
                             const Catalogue& catalogue) {
  if (mentions(row.plan_detail, "flash_attn=True")) return AttentionKernel::flash;
  if (mentions(row.plan_detail, "flash_attn=False")) return AttentionKernel::plain;
  if (mentions_any(row.attention, {"plain", "eager", "math", "unfused", "no flash"}))
    return AttentionKernel::plain;
  if (!row.attention.empty()) return AttentionKernel::flash;
  const std::string& name = framework.name;
  const bool own =
      name == kMegatronDeepspeed || name == kDeepspeed3d || name == kMegatronLm || name == kAceso;
  // Devices with products of 8 bits came after FlashAttention.
  const bool late = row.date.empty() && multiplies_in(DType::fp8, row, catalogue);
  if (own) return late ? AttentionKernel::flash : AttentionKernel::plain;
  if (mentions_any(row.framework + row.plan_detail, {"flash", "xformers", "triton", "cudnn"}))
    return AttentionKernel::flash;
  const bool pytorch = framework.traits.kernels == KernelStyle::eager;
  if (name == kJax && has_name(words_of(row.framework + " " + row.precision), "TE"))
    return AttentionKernel::flash;
  const char* since = name == kJax ? kJaxFlashSince : pytorch ? kPytorchFlashSince : kFlashSince;
  return before(row, since) ? AttentionKernel::plain : AttentionKernel::flash;
}

// The generation of flash kernels that the row's words or its date say, where the program's own are
// not those of the architecture.
std::optional<FlashKernel> flash_kernel_of(const RunRow& row, const Framework& framework) {
  const std::string words = row.framework + row.plan_detail + row.attention;
  static const std::regex newest(R"(flash[-_ ]?att\w*[-_ v]*3|FA-?3|cudnn)", std::regex::icase);
  static const std::regex second(R"(flash[-_ ]?att\w*[-_ v]*2|FA-?2)", std::regex::icase);
  if (std::regex_search(words, newest)) return FlashKernel::native;
  if (mentions(words, "triton")) return FlashKernel::first;
  if (std::regex_search(row.attention, second)) return FlashKernel::second;
  const bool early = !row.date.empty() && row.date < kSecondFlashSince;
  if (early && framework.traits.flash_kernel == FlashKernel::second) return FlashKernel::first;
  return std::nullopt;
}

// "AdamW", "8-bit Adam", "SGD".
Optimizer optimizer_of(const RunRow& row) {
  if (row.optimizer.empty()) return Optimizer::adam;
  const std::string& text = row.optimizer;
  const bool adam = mentions(text, "adam");
  if (adam && mentions_any(text, {"8bit", "8-bit", "adam8"})) return Optimizer::adam8bit;
  if (adam && !mentions_any(text, {"mini", "offload"})) return Optimizer::adam;
  if (mentions(text, "sgd") && mentions(text, "momentum")) return Optimizer::momentum;
  if (const auto known = optimizer_named(text)) return *known;
  throw RowRefused(fmt::format("the optimizer '{}' is not known", text.substr(0, 40)));
}

// "ZeRO-1 group=8", "HSDP": the devices over which states are cut; 0 = all.
int zero_group_of(const RunRow& row) {
  static const std::regex group(R"(group=(\d{1,6}))");
  std::smatch match;
  if (std::regex_search(row.data_sharding, match, group)) return std::stoi(match[1]);
  const bool hybrid = mentions_any(row.data_sharding, {"HSDP", "hybrid"});
  return hybrid ? row.gpus_per_node.value_or(0) : 0;
}

}  // namespace

bool is_mist(const RunRow& row) { return mentions(row.framework, "mist"); }

Precision precision_of(const RunRow& row, const Cluster& cluster, Assumptions& assumptions) {
  const std::string& text = row.precision;
  if (mentions_any(text, {"fp4"})) return Precision::fp4;
  if (mentions_any(text, {"fp8", "float8"}))
    return mentions(text, "row") ? Precision::fp8_row : Precision::fp8;
  // Lightning's "bf16-true".
  if (mentions_any(text, {"pure bf16", "bf16-true"})) return Precision::pure_bf16;
  if (mentions_any(text, {"bf16", "bfloat16", "amp"})) return Precision::bf16;
  if (mentions_any(text, {"fp16", "float16", "16-mixed", "half"})) return Precision::fp16;
  if (mentions(text, "tf32")) {
    const bool all = std::ranges::all_of(cluster.device_types, [](const DeviceType& device) {
      return device.supports(DType::tf32);
    });
    if (all) return Precision::tf32;
    assumptions.emplace_back("fp32, where there is no tf32");
    return Precision::fp32;
  }
  if (mentions_any(text, {"fp32", "float32", "32-true"})) return Precision::fp32;
  const bool has_bf16 = cluster.device_types[0].supports(DType::bf16);
  assumptions.push_back(has_bf16 ? "bf16" : "fp16");
  return has_bf16 ? Precision::bf16 : Precision::fp16;
}

Job job_of(const RunRow& row, const Catalogue& catalogue, Assumptions& assumptions) {
  Job job;
  job.framework = in_catalogue(catalogue, framework_of(row, catalogue, assumptions));
  job.attention = attention_of(row, job.framework, catalogue);
  job.flash_kernel = flash_kernel_of(row, job.framework);
  job.zero_group = zero_group_of(row);
  job.pure_states = mentions_any(row.notes + row.precision, {"all-bf16", "pure bf16"});
  job.overlap = !mentions_any(row.notes + row.plan_detail, {"comm overlap off", "vanilla TP"});
  // XLA's scheduler that hides latency came in 2023, and for long had to be switched on.
  if (job.framework.name == kJax && before(row, kJaxOverlapsSince)) job.overlap = false;
  job.optimizer = optimizer_of(row);
  job.adapters = mentions(row.task, "lora");
  if (job.adapters) job.adapter_rank = row.lora_rank.value_or(0);
  job.four_bit_weights = mentions(row.task, "qlora");
  // Aceso, Mist, InternEvo and the recipes of NeMo and Megatron Bridge (grad_reduce_in_fp32 off)
  // keep gradients in 16 bits; DeepSpeed accumulates those of bf16 in fp32.
  if (mentions_any(row.framework, {"aceso", "mist", "internevo", "nemo", "bridge"}))
    job.gradient_bytes = 2;
  // Megatron-LM adds up the gradients of fp16 in fp16, unless a flag says otherwise.
  if (job.framework.name == kMegatronLm && mentions(row.precision, "fp16") &&
      !mentions(row.precision, "bf16"))
    job.gradient_bytes = 2;
  if (job.framework.name == kMegatronDeepspeed && mentions(row.precision, "bf16"))
    job.gradient_bytes = 4;
  // A fused cross-entropy keeps 16-bit logits and, out of place, their gradient: llm-foundry's own,
  // Transformer Engine's in Megatron Bridge.
  // Mist's loss is computed in 16 bits, too.
  if (mentions_any(row.framework, {"llm-foundry", "bridge", "mist"})) job.logit_bytes = 4;
  // torchtune's in eight parts (CEWithChunkedOutputLoss): logits and their gradients in 16 bits,
  // one part of each in fp32.
  if (mentions(row.framework, "torchtune")) job.logit_bytes = 5;
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

bool runs_in_degrees(const Framework& framework) {
  return framework.target.starts_with("megatron") || framework.target == "aceso";
}

bool is_megatron_core(const Framework& framework) {
  return framework.name == kMegatron || framework.name == kMegatronRouter ||
         framework.name == kMegatronGraph;
}

}  // namespace plait
