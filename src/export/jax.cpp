// A Python module for JAX: the mesh, and how every parameter and the batch are cut over its axes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <variant>

#include "base/printable.h"
#include "export/exporter.h"
#include "export/megatron_model.h"
#include "export/paper_plans.h"
#include "plan/describe.h"
#include "plan/names.h"
#include "plan/target.h"

namespace plait {

extern const char* const kJaxModule;  // jax_module.cpp

namespace {

const char* dtype_name(Precision precision) {
  return precision == Precision::bf16 ? "bfloat16" : "float32";
}

const char* yes(bool value) { return value ? "True" : "False"; }

// Words of the table: JAX cuts a dimension into equal parts only.
int words_of(const Problem& problem, const Plan& plan) {
  const int tensor = plan.stages.front().spans.front().tensor;
  return (padded_vocabulary(problem, plan) + tensor - 1) / tensor * tensor;
}

// Sizes that decide the shapes of parameters, and what kinds of them there are.
std::string network(const TransformerConfig& c, int words) {
  return fmt::format(
      "NETWORK = dict(\n    layers={}, hidden={}, heads={}, kv_heads={}, head_dim={}, ffn={},\n"
      "    vocabulary={}, gated={}, tied={}, experts={}, expert_ffn={}, shared_ffn={},\n"
      "    dense_layers=[{}],  # of those with experts\n    sequence={},\n)\n",
      c.layers, c.hidden, c.heads, c.kv_heads, c.head_dim > 0 ? c.head_dim : c.hidden / c.heads,
      c.ffn, words, yes(c.gated), yes(c.tied), c.moe.experts, c.moe.ffn, c.moe.shared_ffn,
      fmt::join(c.moe.dense, ", "), c.sequence);
}

std::string module_text(const Problem& problem, const Plan& plan) {
  const Span& span = plan.stages.front().spans.front();
  std::string out = "# JAX trains " + printable(problem.model.name) + " by the plan\n#   " +
                    describe(plan) + "\n";
  out += network(in_full(std::get<TransformerConfig>(problem.model.architecture), 1),
                 words_of(problem, plan));
  out += fmt::format(
      "# Axes of the mesh in the order of ranks. The devices of \"data\" and \"expert\" together "
      "are "
      "the\n# replicas: {} of them.\n"
      "MESH = dict(data={}, expert={}, context={}, tensor={})\n"
      "ZERO = {}  # 0: replicas keep everything, 1: optimizer states are cut, 3: parameters too\n"
      "SEQUENCE_PARALLEL = {}\n"
      "GLOBAL_BATCH = {}\nMICRO_BATCHES = {}\n"
      "RECOMPUTE = \"{}\"  # none, selective or full\n"
      "OFFLOAD_OPTIMIZER = {}  # its states are in host memory\n"
      "DTYPE = \"{}\"\nMATMUL_PRECISION = \"{}\"\n",
      span.data, span.data / plan.expert, plan.expert, plan.context, span.tensor,
      static_cast<int>(plan.zero), yes(plan.sequence_parallel), problem.job.global_batch,
      plan.micro_batches, name_of(span.recompute), yes(plan.offload == 1),
      dtype_name(problem.job.precision),
      problem.job.precision == Precision::fp32 ? "highest" : "default");
  return out + kJaxModule;
}

}  // namespace

// One stage, and experts over replicas that do not share sequences.
void limit_jax(const Problem&, Target& target) {
  target.cuts = CutRule::none;
  target.precisions = {Precision::fp32, Precision::tf32, Precision::bf16};
  target.experts_over_replicas = true;  // axes of the mesh
  target.parts_from = std::nullopt;
}

std::string jax_network(const Problem& problem) {
  if (!std::holds_alternative<TransformerConfig>(problem.model.architecture))
    return std::holds_alternative<NotRecorded>(problem.model.architecture)
               ? "the plan file does not say what the network is: it is older than that; make the "
                 "plan again"
               : "the parameters of the network have no names that plait knows";
  const auto& config = std::get<TransformerConfig>(problem.model.architecture);
  if (problem.job.adapters) return "the file for JAX has no rules for adapters";
  if (config.mla.kv_rank > 0) return "the file for JAX has no rules for latent attention";
  if (config.decoder_layers > 0) return "the file for JAX has no rules for encoder-decoders";
  if (config.patches.patch > 0) return "the file for JAX has no rules for networks of images";
  if (config.shared_layers) return "the file for JAX has no rules for layers that share weights";
  return "";
}

ExportedRun jax_run(const Problem& problem, const Plan& plan) {
  ExportedRun out;
  out.files = {{"plait_sharding.py", module_text(problem, plan)}};
  out.script.about =
      fmt::format("JAX trains {} by the plan {}", printable(problem.model.name), describe(plan));
  out.script.settings =
      "# The user's program, which imports plait_sharding and builds the network; without it the\n"
      "# sharding is tried with a small network of the same kind.\n"
      "PROGRAM=${PROGRAM:-$HERE/plait_sharding.py}\n"
      "export PYTHONPATH=\"$HERE${PYTHONPATH:+:$PYTHONPATH}\"\n"
      "export NNODES NODE_RANK MASTER_ADDR MASTER_PORT\n";
  out.script.command = "python3 \"$PROGRAM\" \"$@\"";
  out.losses = {"the network: PROGRAM builds it, with parameters of the names in PARAMETERS",
                fmt::format("the optimizer: PROGRAM makes it, {}", name_of(problem.job.optimizer))};
  const int words = std::get<TransformerConfig>(problem.model.architecture).vocabulary;
  if (words_of(problem, plan) != words)
    out.losses.push_back(
        fmt::format("which of the {} rows of NETWORK's vocabulary are words: the first {}, PROGRAM "
                    "leaves the logits of the others out",
                    words_of(problem, plan), words));
  if (plan.sequence_parallel && plan.stages.front().spans.front().tensor > 1)
    out.losses.emplace_back(
        "where activations are cut by position: PROGRAM constrains them with activation_spec()");
  return out;
}

}  // namespace plait
