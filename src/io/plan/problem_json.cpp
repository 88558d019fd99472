#include "io/plan/problem_json.h"

#include "base/error.h"
#include "io/format/json_keys.h"
#include "io/format/json_writer.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kMaxInt = 1'000'000'000;

}  // namespace

std::string dump_job(const Job& job) {
  const auto& [global_batch, precision, optimizer, attention, framework, overlap, adapters,
               gradient_bytes, logit_bytes, vocabulary_multiple, reserve] = job;
  return JsonObject()
      .number("global_batch", global_batch)
      .text("precision", name_of(precision))
      .text("optimizer", name_of(optimizer))
      .text("attention", name_of(attention))
      .text("framework", name_of(framework))
      .boolean("overlap", overlap)
      .boolean("adapters", adapters)
      .number("gradient_bytes", gradient_bytes)
      .number("logit_bytes", logit_bytes)
      .number("vocabulary_multiple", vocabulary_multiple)
      .number("reserve", reserve)
      .str();
}

Job restore_job(const JsonValue& json) {
  json.allow_only({"global_batch", "global_batch_size", "precision", "optimizer", "attention",
                   "framework", "overlap", "adapters", "gradient_bytes", "logit_bytes",
                   "vocabulary_multiple", "reserve"});
  Job job;
  job.global_batch = at_one_of(json, {"global_batch", "global_batch_size"}).integer(1, kMaxInt);
  if (const auto value = json.find("precision"))
    job.precision = static_cast<Precision>(value->choice(precision_names()));
  if (const auto value = json.find("optimizer"))
    job.optimizer = static_cast<Optimizer>(value->choice(optimizer_names()));
  if (const auto value = json.find("attention"))
    job.attention = static_cast<AttentionKernel>(value->choice(attention_names()));
  if (const auto value = json.find("framework"))
    job.framework = static_cast<Framework>(value->choice(framework_names()));
  job.overlap = json.boolean_or("overlap", true);
  job.adapters = json.boolean_or("adapters", false);
  job.gradient_bytes = json.integer_or("gradient_bytes", 0, 8, 0);
  job.logit_bytes = json.integer_or("logit_bytes", 0, 64, 0);
  job.vocabulary_multiple = json.integer_or("vocabulary_multiple", 0, kMaxInt, 0);
  if (const auto value = json.find("reserve")) {
    job.reserve = value->at_least(0);
    if (job.reserve >= 1) throw InputError(value->where(), "must be below 1");
  }
  return job;
}

}  // namespace plait
