#include "validation/published_runs.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "cost/engine.h"
#include "cost/layer/model_layers.h"
#include "io/format/embedded.h"
#include "io/profile/import_profile.h"
#include "model/gan.h"
#include "plan/check.h"
#include "plan/names.h"
#include "validation/cells/table_text.h"
#include "validation/run_corrections.h"
#include "validation/run_parts.h"

namespace plait {
namespace {

// Problems made so far: runs of one problem share it.
using Problems = std::map<std::string, std::shared_ptr<const Problem>>;

std::string job_name(const RunRow& row) {
  const auto number = [](const std::optional<int>& value) { return value.value_or(0); };
  return fmt::format("{} {} l{} h{} s{} {} x{} b{} {} {}", row.source, row.model,
                     number(row.layers), number(row.hidden), number(row.sequence), row.gpu,
                     number(row.gpus), number(row.global_batch), row.precision, row.task);
}

// Everything that the problem is made from.
std::string problem_key(const TransformerConfig& c, const RunRow& row, const Job& job) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} | {} {} {} {} {} {} | {} {} {} {}",
                     c.name, c.layers, c.hidden, c.heads, c.kv_heads, c.head_dim, c.ffn,
                     c.vocabulary, c.sequence, c.dropout, static_cast<int>(c.head), c.moe.experts,
                     c.moe.top_k, c.moe.ffn, row.gpu, row.gpu_class, row.gpu_memory_gb.value_or(0),
                     row.gpus.value_or(0), row.gpus_per_node.value_or(0), row.interconnect,
                     job.global_batch, static_cast<int>(job.precision),
                     static_cast<int>(job.attention), job.framework.name) +
         fmt::format(" {} {} {} {} {} {}", c.decoder_sequence, job.overlap, job.adapters,
                     job.gradient_bytes, job.logit_bytes, job.vocabulary_multiple) +
         fmt::format(" {} {} {} {} {}", job.adapter_rank, job.four_bit_weights,
                     static_cast<int>(job.optimizer), row.instance, row.nodes.value_or(0)) +
         fmt::format(" {} {} {} {} {}", job.flash_kernel ? static_cast<int>(*job.flash_kernel) : -1,
                     job.zero_group, job.pure_states, job.reduce_bytes, job.graph_capture);
}

// Flops of forward and backward of one sample. Megatron's formula, which NeMo prints too, counts
// all of attention's square; others count the causal half.
// `repeated`: the layers' forward pass counts once more.
Flops model_flops(const Model& model, const std::string& framework, bool repeated = false) {
  const bool half =
      model.causal && !mentions(framework, "megatron") && !mentions(framework, "nemo");
  Flops flops;
  for (const int unit : model.units) {
    const LayerKind& kind = model.kinds[unit];
    const double passes = repeated && !is_table(kind) ? 4 : 3;
    for (const Op& op : kind.ops)
      flops += passes * (half && op.kind == OpKind::attention ? 0.5 : 1) * op.forward;
  }
  return flops;
}

// Seconds of a step: as measured, else from the rate that the table prints.
std::optional<Seconds> step_of(const RunRow& row, const Problem& problem) {
  const double samples = problem.job.global_batch;
  const double tokens = samples * problem.model.sequence_length;
  const double devices = problem.cluster.device_count();
  if (row.step_s) return Seconds(*row.step_s);
  if (row.derived_step_s) return Seconds(*row.derived_step_s);
  if (row.tokens_per_s_per_gpu) return Seconds(tokens / (*row.tokens_per_s_per_gpu * devices));
  if (row.tokens_per_s) return Seconds(tokens / *row.tokens_per_s);
  if (row.samples_per_s) return Seconds(samples / *row.samples_per_s);
  if (row.samples_per_s_per_gpu) return Seconds(samples / (*row.samples_per_s_per_gpu * devices));
  if (!row.tflops_per_gpu && !row.mfu && !row.hfu) return std::nullopt;
  const double flops = samples * model_flops(problem.model, row.framework).value;
  const double repeated = samples * model_flops(problem.model, row.framework, true).value;
  // Where nothing is computed twice, one count is the other.
  const bool once = states_recompute(row) && says_none(row.recompute);
  if (row.tflops_per_gpu && (once || row.flops_convention.starts_with("model")))
    return Seconds(flops / (*row.tflops_per_gpu * 1e12 * devices));
  // What the hardware did, where every layer is computed twice.
  const bool twice = recomputes_all(row);
  if (row.tflops_per_gpu && twice && row.flops_convention.starts_with("hardware"))
    return Seconds(repeated / (*row.tflops_per_gpu * 1e12 * devices));
  const auto share = row.mfu ? row.mfu : once || twice ? row.hfu : std::nullopt;
  if (share) {
    // "45" and "0.45" are 45 % of what 16-bit products may reach.
    const double part = *share > 1 ? *share / 100 : *share;
    const DeviceType& device = problem.cluster.device_types[0];
    const FlopsPerSecond peak =
        device.peak_of(device.supports(DType::bf16) ? DType::bf16 : DType::fp16);
    return Seconds((row.mfu || once ? flops : repeated) / (part * peak.value * devices));
  }
  return std::nullopt;
}

void refuse_what_is_not_modelled(const RunRow& row) {
  if (!row.fault.empty()) throw RowRefused(row.fault);
  const bool timed = row.step_s || row.derived_step_s || row.tokens_per_s_per_gpu ||
                     row.tokens_per_s || row.samples_per_s || row.samples_per_s_per_gpu ||
                     row.tflops_per_gpu || row.mfu || row.hfu;
  if (row.memory_gib && !timed && !row.sequence && !row.global_batch)
    throw RowRefused("neither seq_len nor gbs is stated, on which its memory depends");
  if (row.grade == "C") throw RowRefused("graded C: " + row.notes.substr(0, 120));
}

// Puts the measurements in, if they are of this model and of one of its device types.
void take_profile(const std::string& path, Problem& problem) {
  if (path.empty()) return;
  try {
    problem.profile = load_profile(path, problem.model, problem.cluster).profile;
  } catch (const InputError&) {
    return;  // of another model: read_published_runs() has made sure that the files are readable
  }
}

// FSDP's programs and Hugging Face's models, by themselves or under DeepSpeed.
bool checkpoints_layers(const Framework& framework) {
  return framework.fully_sharded || framework.traits.kernels == KernelStyle::eager;
}

// Where the row leaves recompute open and a plan without it does not fit, but one with it does.
// Only of programs that recompute whole layers and have no other means: the runs of Megatron's that
// do not say took as long as without recompute, and had selective recompute, offload or the like.
void take_what_fits(RunRow row, const RunDegrees& degrees, const Problem& problem,
                    MeasuredRun& run) {
  const CostEngine engine(problem);
  if (run.failed || engine.simulate(run.plan).fits) return;
  row.notes.clear();
  row.recompute = "full";
  Assumptions unused;
  const Plan plan = plan_of(row, problem.job, degrees, problem.model, unused);
  if (!check_plan(problem, plan).empty() || !engine.simulate(plan).fits) return;
  run.plan = plan;
  run.assumptions.emplace_back("full recompute, without which it does not fit in memory");
}

// Where the row does not say how large its micro-batches are, and the whole share of a replica does
// not fit: the largest half, quarter, .. that does.
void take_smaller_batches(RunRow row, const Problem& problem, MeasuredRun& run) {
  const bool open = !row.micro_batch && !row.accumulation && row.global_batch;
  if (!open || run.failed || run.plan.stages.size() > 1 || runs_in_degrees(problem.job.framework))
    return;
  const CostEngine engine(problem);
  if (engine.simulate(run.plan).fits) return;
  const auto& spans = run.plan.stages[0].spans;
  const bool repeats = std::ranges::any_of(
      spans, [](const Span& span) { return span.recompute == Recompute::full; });
  const bool may_repeat = !states_recompute(row) && checkpoints_layers(problem.job.framework);
  const double replicas = spans[0].data;
  for (const bool full : {repeats, true}) {
    if (full != repeats && !may_repeat) return;
    if (full && !states_recompute(row)) {
      row.notes.clear();
      row.recompute = "full";
    }
    for (double share = *row.global_batch / replicas / 2; share >= 1; share /= 2) {
      row.micro_batch = static_cast<int>(share);
      Assumptions unused;
      const RunDegrees degrees = degrees_of(row, problem.job, unused);
      if (degrees.micro_batches * degrees.micro_batch != problem.job.global_batch) continue;
      const Plan plan = plan_of(row, problem.job, degrees, problem.model, unused);
      if (!check_plan(problem, plan).empty() || !engine.simulate(plan).fits) continue;
      run.plan = plan;
      run.assumptions.push_back(
          fmt::format("micro-batches of {}{}, as larger ones do not fit in memory",
                      *row.micro_batch, full != repeats ? " and full recompute" : ""));
      return;
    }
  }
}

// What no part of a problem or a plan says.
void refuse_unknown_means(const RunRow& row) {
  if (!row.activation_offload.empty() && !says_none(row.activation_offload))
    throw RowRefused("activations are offloaded, which is not predicted");
  if (mentions(row.offload, "nvme") || mentions(row.offload, "param"))
    throw RowRefused(
        fmt::format("'{}' is offloaded, which is not predicted", row.offload.substr(0, 40)));
}

void interpret(const RunRow& row, const RunReading& reading, Problems& problems, MeasuredRun& run) {
  refuse_what_is_not_modelled(row);
  refuse_unknown_means(row);
  Assumptions& assumptions = run.assumptions;
  Problem problem;
  problem.job = job_of(row, reading.catalogue, assumptions);
  const RunDegrees degrees = degrees_of(row, problem.job, assumptions);
  const bool gan = is_transgan(row);
  const TransformerConfig config =
      gan ? TransformerConfig{.name = row.model} : transformer_of(row, problem.job, assumptions);
  problem.cluster = cluster_of(row, reading.catalogue, assumptions);
  set_graphs(row, config, problem.cluster, reading.catalogue, problem.job);
  run.device = problem.cluster.device_types[0].name;
  problem.job.precision = precision_of(row, problem.cluster, assumptions);
  problem.job.global_batch = degrees.micro_batches * degrees.micro_batch;
  const std::string key = problem_key(config, row, problem.job);
  std::shared_ptr<const Problem>& shared = problems[key];
  if (!shared) {
    problem.model = gan ? build_transgan({}) : build_transformer(config);
    take_profile(reading.profile, problem);
    shared = std::make_shared<const Problem>(std::move(problem));
  }
  if (run.memory && mentions(row.recompute, "op-level")) {
    run.memory = std::nullopt;
    assumptions.emplace_back("memory is not compared: which ops are recomputed is not stated");
  }
  run.plan = plan_of(row, shared->job, degrees, shared->model, assumptions);
  if (!states_recompute(row) && checkpoints_layers(shared->job.framework))
    take_what_fits(row, degrees, *shared, run);
  take_smaller_batches(row, *shared, run);
  run.says_what_is_kept = states_recompute(row) && !row.composed;
  const std::vector<Violation> violations = check_plan(*shared, run.plan);
  if (!violations.empty()) throw RowRefused(violations[0].where + " " + violations[0].what);
  run.step = run.failed ? std::nullopt : step_of(row, *shared);
  run.problem = shared;
  if (!run.step && !run.memory && !run.failed) {
    run.problem = nullptr;
    throw RowRefused(row.tflops_per_gpu
                         ? "whether its TFLOP/s count what is computed twice is not stated: "
                           "flops_convention is model or hardware"
                         : "neither a time nor a memory is stated");
  }
}

// "fp16/bf16" is either. DeepSpeed adds up the gradients of bf16 in fp32, so that a run may fit in
// fp16 alone.
void take_format_that_fits(RunRow row, const RunReading& reading, Problems& problems,
                           MeasuredRun& run) {
  if (run.failed || !mentions(row.precision, "bf16") || !mentions(row.precision, "fp16")) return;
  if (CostEngine(*run.problem).simulate(run.plan).fits) return;
  row.precision = "fp16";
  MeasuredRun other = run;
  other.assumptions.clear();
  interpret(row, reading, problems, other);
  if (!CostEngine(*other.problem).simulate(other.plan).fits) return;
  run = std::move(other);
  run.assumptions.emplace_back("fp16, as it does not fit in memory in bf16");
}

MeasuredRun measured_run(RunRow row, const RunReading& reading, Problems& problems) {
  if (!reading.literal)
    for (const RunCorrection& correction : run_corrections())
      if (correction.source == row.source) correction.apply(row);
  MeasuredRun run{.id = row.id, .source = row.source, .grade = row.grade, .device = row.gpu};
  run.job = job_name(row);
  if (row.others_step_s) run.others_step = Seconds(*row.others_step_s);
  run.other = row.other;
  run.failed = !row.status.empty() && !row.status.starts_with("ok");
  if (row.memory_gib && !run.failed) run.memory = Bytes(*row.memory_gib * 0x1p30);
  const bool whole_device = mentions(row.memory_kind, "smi") ||
                            mentions(row.memory_kind, "max_mem") ||
                            mentions(row.memory_kind, "GPU memory");
  if (whole_device) run.memory_meaning = MemoryMeaning::device;
  // TorchTitan's log has the reservation.
  if (mentions(row.memory_kind, "reserved") ||
      (mentions(row.framework, "torchtitan") && !mentions(row.memory_kind, "allocated")))
    run.memory_meaning = MemoryMeaning::reserved;
  try {
    count_devices(row, reading.catalogue, run.assumptions);
    interpret(row, reading, problems, run);
    take_format_that_fits(row, reading, problems, run);
  } catch (const RowRefused& refused) {
    run.refusal = refused.what();
  }
  return run;
}

}  // namespace

std::vector<MeasuredRun> read_published_runs(const std::string& name, std::string_view text,
                                             const RunReading& reading) {
  if (!reading.profile.empty()) check_profile_path(reading.profile);
  Problems problems;
  std::vector<MeasuredRun> runs;
  for (RunRow& row : read_run_rows(parse_table(name, text)))
    runs.push_back(measured_run(std::move(row), reading, problems));
  return runs;
}

std::vector<std::string> unread_columns(const std::string& name, std::string_view text) {
  return unread_run_columns(parse_table(name, text));
}

std::vector<MeasuredRun> shipped_runs(const RunReading& reading) {
  return read_published_runs("published_runs.csv", embedded_file("published_runs.csv"), reading);
}

}  // namespace plait
