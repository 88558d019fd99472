#include "io/plan/problem_json.h"

#include "base/error.h"
#include "io/cluster/catalogue.h"
#include "io/format/json_keys.h"
#include "io/format/json_writer.h"
#include "plan/names.h"

namespace plait {
namespace {

// The name alone of a framework that is built in as it is, else all of it.
std::string dump_framework(const Framework& framework) {
  const Framework* known = lookup_framework(builtin_catalogue(), framework.name);
  const bool same = !framework.name.empty() && known != nullptr && *known == framework;
  return same ? json_text(framework.name) : framework_json(framework);
}

Framework restore_framework(const JsonValue& json) {
  if (json.is_string()) return find_framework(builtin_catalogue(), json.text(), json.where());
  return read_framework_entry(json,
                              [](const JsonValue& name) -> const Framework& {
                                return find_framework(builtin_catalogue(), name.text(),
                                                      name.where());
                              })
      .framework;
}

}  // namespace

std::string dump_job(const Job& job) {
  const auto& [global_batch, precision, optimizer, attention, flash_kernel, framework, overlap,
               graph_capture, zero_group, adapters, adapter_rank, four_bit_weights, pure_states,
               gradient_bytes, reduce_bytes, logit_bytes, vocabulary_multiple, reserve, reserved,
               memory_limit] = job;
  JsonObject object;
  object.number("global_batch", global_batch)
      .text("precision", name_of(precision))
      .text("optimizer", name_of(optimizer))
      .text("attention", name_of(attention))
      .json("framework", dump_framework(framework))
      .boolean("overlap", overlap)
      .boolean("adapters", adapters)
      .number("adapter_rank", adapter_rank)
      .number("gradient_bytes", gradient_bytes)
      .number("logit_bytes", logit_bytes)
      .number("vocabulary_multiple", vocabulary_multiple)
      .number("reserve", reserve);
  if (flash_kernel) object.text("flash_kernel", name_of(*flash_kernel));
  if (graph_capture) object.boolean("graph_capture", graph_capture);
  if (four_bit_weights) object.boolean("four_bit_weights", true);
  if (pure_states) object.boolean("pure_states", pure_states);
  if (reduce_bytes > 0) object.number("reduce_bytes", reduce_bytes);
  if (zero_group > 0) object.number("zero_group", zero_group);
  if (reserved > Bytes(0)) object.number("reserved_B", reserved.value);
  if (memory_limit > Bytes(0)) object.number("memory_limit_B", memory_limit.value);
  return object.str();
}

Job restore_job(const JsonValue& json) {
  json.allow_only({"global_batch",   "global_batch_size", "precision",
                   "optimizer",      "attention",         "flash_kernel",
                   "framework",      "overlap",           "graph_capture",
                   "zero_group",     "four_bit_weights",  "pure_states",
                   "reduce_bytes",   "adapters",          "adapter_rank",
                   "gradient_bytes", "logit_bytes",       "vocabulary_multiple",
                   "reserve",        "reserved_B",        "memory_limit_B"});
  Job job;
  job.global_batch = at_one_of(json, {"global_batch", "global_batch_size"}).integer(1, kMaxInt);
  if (const auto value = json.find("precision"))
    job.precision = static_cast<Precision>(value->choice(precision_names()));
  if (const auto value = json.find("optimizer"))
    job.optimizer = static_cast<Optimizer>(value->choice(optimizer_names()));
  if (const auto value = json.find("attention"))
    job.attention = static_cast<AttentionKernel>(value->choice(attention_names()));
  if (const auto value = json.find("framework"))
    job.framework = restore_framework(*value);
  else
    job.framework = find_framework(builtin_catalogue(), "", json.where());
  if (const auto value = json.find("flash_kernel"))
    job.flash_kernel = static_cast<FlashKernel>(value->choice(flash_kernel_names()));
  job.overlap = json.boolean_or("overlap", true);
  job.graph_capture = json.boolean_or("graph_capture", false);
  job.pure_states = json.boolean_or("pure_states", false);
  job.reduce_bytes = json.integer_or("reduce_bytes", 0, 8, 0);
  job.zero_group = json.integer_or("zero_group", 0, kMaxInt, 0);
  job.adapters = json.boolean_or("adapters", false);
  job.adapter_rank = json.integer_or("adapter_rank", 0, kMaxInt, 0);
  job.four_bit_weights = json.boolean_or("four_bit_weights", false);
  job.gradient_bytes = json.integer_or("gradient_bytes", 0, 8, 0);
  job.logit_bytes = json.integer_or("logit_bytes", 0, 64, 0);
  job.vocabulary_multiple = json.integer_or("vocabulary_multiple", 0, kMaxInt, 0);
  if (const auto value = json.find("reserve")) {
    job.reserve = value->at_least(0);
    if (job.reserve >= 1) throw InputError(value->where(), "must be below 1");
  }
  if (const auto value = json.find("reserved_B")) job.reserved = Bytes(value->at_least(0));
  if (const auto value = json.find("memory_limit_B")) job.memory_limit = Bytes(value->positive());
  return job;
}

}  // namespace plait
