#include "runtime/rank_request.h"

#include <charconv>

#include "base/error.h"
#include "io/format/json_writer.h"

namespace plait::runtime {
namespace {

constexpr const char* kVersionKey = "plait_rank_request";
constexpr int kMostSteps = 100'000'000;
constexpr int kMostThreads = 4096;

template <typename Number>
Number whole(const JsonValue& json) {
  const std::string text = json.text();
  Number value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size())
    throw InputError(json.where(), "must be a whole number in quotes");
  return value;
}

}  // namespace

std::string rank_request_json(const RankRequest& request) {
  const TrainOptions& o = request.options;
  return lay_out_json(JsonObject()
                          .number(kVersionKey, 1)
                          .text("plan", request.plan)
                          .text("device", request.device)
                          .boolean("json", request.json)
                          .number("steps", o.steps)
                          .number("learning_rate", o.learning_rate)
                          .number("beta1", o.beta1)
                          .number("beta2", o.beta2)
                          .number("epsilon", o.epsilon)
                          .number("momentum", o.momentum)
                          .number("weight_decay", o.weight_decay)
                          .number("clip", o.clip)
                          .text("bucket", std::to_string(o.bucket))
                          .text("seed", std::to_string(o.seed))
                          .boolean("exact", o.exact)
                          .text("tokens", o.tokens)
                          .number("threads", o.threads)
                          .text("trace", o.trace)
                          .text("checkpoint", o.checkpoint)
                          .number("checkpoint_every", o.checkpoint_every)
                          .number("keep_checkpoints", o.keep_checkpoints)
                          .str());
}

bool is_rank_request(const JsonValue& json) {
  return json.is_object() && json.find(kVersionKey).has_value();
}

RankRequest rank_request_from(const JsonValue& json) {
  json.allow_only({kVersionKey,       "plan",    "device", "json",       "steps",
                   "learning_rate",   "beta1",   "beta2",  "epsilon",    "momentum",
                   "weight_decay",    "clip",    "bucket", "seed",       "exact",
                   "tokens",          "threads", "trace",  "checkpoint", "checkpoint_every",
                   "keep_checkpoints"});
  json.at(kVersionKey).integer(1, 1);
  RankRequest request;
  request.plan = json.at("plan").text();
  request.device = json.at("device").text();
  request.json = json.at("json").boolean();
  TrainOptions& o = request.options;
  o.steps = json.at("steps").integer(1, kMostSteps);
  o.learning_rate = json.at("learning_rate").at_least(0);
  o.beta1 = json.at("beta1").at_least(0);
  o.beta2 = json.at("beta2").at_least(0);
  o.epsilon = json.at("epsilon").at_least(0);
  o.momentum = json.at("momentum").at_least(0);
  o.weight_decay = json.at("weight_decay").at_least(0);
  o.clip = json.at("clip").at_least(0);
  o.bucket = whole<std::int64_t>(json.at("bucket"));
  o.seed = whole<std::uint64_t>(json.at("seed"));
  o.exact = json.at("exact").boolean();
  o.tokens = json.at("tokens").text();
  o.threads = json.at("threads").integer(0, kMostThreads);
  o.trace = json.at("trace").text();
  o.checkpoint = json.at("checkpoint").text();
  o.checkpoint_every = json.at("checkpoint_every").integer(0, kMostSteps);
  o.keep_checkpoints = json.at("keep_checkpoints").integer(0, kMostSteps);
  return request;
}

}  // namespace plait::runtime
