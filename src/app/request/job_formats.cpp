#include "app/request/job_formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "app/request/request_error.h"
#include "plan/names.h"

namespace plait {
namespace {

bool trains_in(const Target& target, Precision precision) {
  const std::vector<Precision>& known = target.precisions;
  return known.empty() || std::ranges::find(known, precision) != known.end();
}

}  // namespace

void choose_formats(const ProblemSource& source, std::optional<Precision> precision,
                    LoadedProblem& loaded) {
  Job& job = loaded.problem.job;
  if (source.precision) precision = source.precision;
  if (precision) job.precision = *precision;
  if (source.attention) job.attention = *source.attention;
  std::string old;  // a device type that has fp16 and not bf16
  for (const DeviceType& type : loaded.problem.cluster.device_types)
    if (type.supports(DType::fp16) && !type.supports(DType::bf16)) old = type.name;
  if (old.empty() || loaded.target.name == "any") return;
  const bool half = trains_in(loaded.target, Precision::fp16);
  const Job newer = job;
  std::vector<std::string_view> chosen;
  if (!precision && job.precision == Precision::bf16 && half) {
    job.precision = Precision::fp16;
    chosen.emplace_back("fp16");
  }
  if (!source.attention && loaded.target.flash_needs_bf16 &&
      job.attention == AttentionKernel::flash) {
    job.attention = AttentionKernel::plain;
    chosen.emplace_back("plain attention");
  }
  if (!chosen.empty()) loaded.newer_job = newer;
  if (!chosen.empty())
    loaded.warnings.push_back(fmt::format("{} lacks bf16 and flash attention: {} with it", old,
                                          fmt::join(chosen, " and ")));
}

std::vector<std::string> precision_warnings(const Cluster& cluster, const Job& job,
                                            const Target& target) {
  std::vector<std::string> warnings;
  const DType wanted = compute_dtype(job.precision);
  for (const DeviceType& type : cluster.device_types) {
    if (type.supports(wanted)) continue;
    const bool half =
        wanted == DType::bf16 && type.supports(DType::fp16) && trains_in(target, Precision::fp16);
    warnings.push_back(
        fmt::format("{} does not support {}: predicted at the rate of the nearest type that it "
                    "does{}",
                    type.name, name_of(wanted), half ? "; `precision` fp16 runs on it" : ""));
  }
  return warnings;
}

void refuse_formats(const LoadedProblem& loaded) {
  const Problem& problem = loaded.problem;
  const Target& target = loaded.target;
  std::optional<std::string> reason = why_not(target, problem.job);
  const Job& job = problem.job;
  const bool adapters = job.adapters && (!target.adapters || job.four_bit_weights);
  std::string_view field = "precision";
  std::string_view lacking;  // what would do
  if (adapters) field = job.four_bit_weights ? "qlora" : "lora";
  if (!reason) {
    for (const DeviceType& type : problem.cluster.device_types) {
      reason = why_not(target, problem.job, type);
      if (!reason) return;
    }
    const DeviceType& type = problem.cluster.device_types.front();
    const bool fp4 = job.precision == Precision::fp4 && type.supports(DType::fp8);
    const bool formats = fp4 || !type.supports(compute_dtype(job.precision));
    field = formats ? "precision" : "attention";
    if (fp4) lacking = "; `precision` fp8 runs on it";
    if (job.precision == Precision::bf16 && type.supports(DType::fp16) &&
        trains_in(target, Precision::fp16))
      lacking = "; `precision` fp16 runs on it";
    if (!formats) lacking = "; `attention` plain runs on it";
  }
  if (reason)
    throw RequestError(
        field, fmt::format("{}{} (`runs_on` any predicts it all the same)", *reason, lacking));
}

std::vector<std::string> program_remarks(const ProblemSource& source) {
  std::vector<std::string> remarks;
  std::string program = source.framework;
  std::ranges::transform(program, program.begin(), [](unsigned char c) { return std::tolower(c); });
  if (program == "unsloth")
    remarks.emplace_back(
        "Unsloth's own kernels are not predicted: the step is that of Hugging Face's trainer");
  return remarks;
}

}  // namespace plait
