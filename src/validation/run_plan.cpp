#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <optional>
#include <regex>

#include "validation/run_parts.h"

namespace plait {
namespace {

Schedule schedule_of(const RunRow& row, const RunDegrees& degrees) {
  std::string name = row.schedule;
  std::ranges::transform(name, name.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  if (degrees.pipeline() == 1) return Schedule::one_f_one_b;
  if (name == "gpipe") return Schedule::gpipe;
  if (name == "zb-1p" || name == "zb-h1") return Schedule::zb_h1;
  if (name == "zb-2p") return Schedule::zb_2p;
  if (name == "zb-v") return Schedule::zb_v;
  if (name.empty() || name == "1f1b" || name.starts_with("interleaved"))
    return degrees.chunks > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
  throw RowRefused(fmt::format("the schedule '{}' is not known", row.schedule));
}

// 3 of "ZeRO-3", "zero3", "ZeRO stage 3", "Z3", "3"; 0 when there is none.
int zero_stage_in(const std::string& text) {
  static const std::regex stage(R"((?:zero|\bz|stage|^)[-_= ]{0,2}([1-3])\b)", std::regex::icase);
  std::smatch match;
  return std::regex_search(text, match, stage) ? std::stoi(match[1]) : 0;
}

ZeroStage zero_of(const RunRow& row, const Job& job, int pipeline) {
  // "Hugging Face + FSDP" says it beside the program.
  const bool beside = row.data_sharding.empty() && !runs_in_degrees(job.framework);
  const std::string& text = beside ? row.framework : row.data_sharding;
  static const std::regex fully(R"(FSDP=(\d{1,6}))");
  static const std::regex per_stage(R"(\(W,G,O\)=\((\d),(\d),(\d)\))");
  std::smatch match;
  if (std::regex_search(text, match, per_stage))
    return match[1] == "1"   ? ZeroStage::parameters
           : match[2] == "1" ? ZeroStage::gradients
           : match[3] == "1" ? ZeroStage::optimizer
                             : ZeroStage::off;
  if (std::regex_search(text, match, fully))
    return match[1] == "1" ? ZeroStage::off : ZeroStage::parameters;
  if (mentions(text, "NO_SHARD")) return ZeroStage::off;
  const int stage = zero_stage_in(text);
  if (mentions(text, "SHARD_GRAD_OP") || mentions(text, "HSDP") || stage == 2)
    return ZeroStage::gradients;
  // FSDP2 does not reshard between the micro-batches of a pipeline: weights are gathered once a
  // step and gradients added up whole, as under ZeRO-1.
  const bool whole = mentions(text, "FSDP") || mentions(text, "FULL_SHARD");
  if (job.framework.fully_sharded && pipeline > 1 && whole) return ZeroStage::optimizer;
  if (stage == 3 || whole) return ZeroStage::parameters;
  if (stage == 1 || mentions(text, "distributed optimizer") || mentions(text, "dist_opt"))
    return ZeroStage::optimizer;
  // FSDP is FULL_SHARD unless somebody says otherwise.
  if (beside && job.framework.fully_sharded)
    return pipeline > 1 ? ZeroStage::optimizer : ZeroStage::parameters;
  return text.empty() && is_megatron_core(job.framework) ? ZeroStage::optimizer : ZeroStage::off;
}

// Of the optimizer's state: "cpu", "optimizer", "yes".
double offload_of(const RunRow& row) {
  return row.offload.empty() || says_none(row.offload) ? 0 : 1;
}

bool sequence_parallel_of(const RunRow& row, const Job& job, int tensor) {
  if (mentions(row.sequence_parallel, "yes") || mentions(row.sequence_parallel, "true"))
    return true;
  const bool usual = is_megatron_core(job.framework) || job.framework.fully_sharded;
  return row.sequence_parallel.empty() && usual && tensor > 1;
}

// How much of a stage is computed twice.
struct Recomputing {
  Recompute kind = Recompute::none;
  std::vector<double> parts{};    // of each stage's layers, from the first; empty = all
  std::vector<Recompute> rest{};  // of a stage's other layers; empty = none
};

// "55/68|24/39" ops of ops, of the stages in turn. Aceso cuts a layer into 13 ops and repeats those
// first that free most for their time: scores, softmax, dropout and the weighted sum of attention.
// So up to four ops a layer are selective recompute; what is beyond that makes whole layers.
Recomputing recomputed_ops(const std::string& text) {
  constexpr double kOps = 13;
  constexpr double kAttentionOps = 4;
  static const std::regex fraction(R"((\d{1,6})/(\d{1,6}))");
  Recomputing out{Recompute::full};
  for (std::sregex_iterator it(text.begin(), text.end(), fraction), end; it != end; ++it) {
    const double repeated = std::stod((*it)[1]) / std::max(1.0, std::stod((*it)[2])) * kOps;
    out.parts.push_back(std::clamp((repeated - kAttentionOps) / (kOps - kAttentionOps), 0.0, 1.0));
    out.rest.push_back(repeated >= 0.5 ? Recompute::selective : Recompute::none);
  }
  return out;
}

// "2|1|0|0" layers of the stages in turn.
Recomputing recomputed_layers(const std::string& text, const std::vector<int>& layers) {
  Recomputing out{Recompute::full};
  for (const int count : numbers_with_bars(text))
    out.parts.push_back(out.parts.size() < layers.size()
                            ? count / std::max(1.0, static_cast<double>(layers[out.parts.size()]))
                            : 0);
  return out;
}

// The ways in which people say it: "none", "off", "gradient checkpointing", "AC=selective", "yes".
std::optional<Recompute> recompute_of(const std::string& text) {
  static const std::regex selective(R"(selective|\bSAC\b|core_attn)", std::regex::icase);
  static const std::regex none(R"(^\W*(?:none|no|not|without|0|n)\b|\b(?:off|false|disabled)\b)",
                               std::regex::icase);
  static const std::regex full(
      R"(full|checkpoint|recompute|uniform|\b(?:all|yes|on|true|enabled|AC|1|y)\b)",
      std::regex::icase);
  if (std::regex_search(text, none)) return Recompute::none;
  if (std::regex_search(text, selective)) return Recompute::selective;
  if (std::regex_search(text, full)) return Recompute::full;
  return std::nullopt;
}

// Checkpoints of single ops: "per-op SAC", "op".
bool names_ops(const std::string& text) {
  static const std::regex op(R"(\bops?\b|\bSAC\b|attention|attn)", std::regex::icase);
  return std::regex_search(text, op);
}

// Layers that are computed twice, as a part, from the utilisation with and without them: 74 and 55
// % of the peak are 3 (74 / 55 - 1) = 1.04 forward passes more, all layers; 47 and 38 % are .71.
std::optional<double> part_by_utilisation(const RunRow& row) {
  if (!row.mfu || !row.hfu) return std::nullopt;
  return std::clamp(3 * (*row.hfu / *row.mfu - 1), 0.0, 1.0);
}

Recomputing recomputing_of(const RunRow& row, const Job& job, const std::vector<int>& layers,
                           Assumptions& assumptions) {
  const std::string& text = row.recompute;
  if (!states_recompute(row)) {
    // Before selective recompute (May 2022) large models ran with full recompute, in programs that
    // were made for them.
    const bool early = runs_in_degrees(job.framework) && !is_megatron_core(job.framework) &&
                       !row.date.empty() && row.date < "2022-05";
    assumptions.push_back(early ? "full recompute" : "no recompute");
    return {early ? Recompute::full : Recompute::none};
  }
  if (mentions(text, "per stage") || mentions(text, "op-level")) {
    Recomputing out = mentions(text, "/") ? recomputed_ops(text) : recomputed_layers(text, layers);
    if (out.parts.size() != layers.size())
      throw RowRefused(
          fmt::format("recompute lists {} stages, pp is {}", out.parts.size(), layers.size()));
    return out;
  }
  static const std::regex every(R"(every (\d{1,3})(?:nd|rd|th) layer)");
  std::smatch match;
  if (std::regex_search(text, match, every)) {
    const double part = 1 / std::max(1.0, std::stod(match[1]));
    return {Recompute::full, std::vector<double>(layers.size(), part)};
  }
  const auto kind = recompute_of(text);
  // Programs that cut states alone: their "selective" may be whole layers.
  const auto part = part_by_utilisation(row);
  if (kind == Recompute::selective && part && job.framework.fully_sharded && !names_ops(text)) {
    assumptions.push_back(
        fmt::format("recompute of {:.0f} % of the layers, by MFU and HFU", 100 * *part));
    return {Recompute::full, std::vector<double>(layers.size(), *part)};
  }
  if (kind) return {*kind};
  assumptions.push_back(fmt::format("no recompute for '{}'", text));
  return {Recompute::none};
}

// Appends the spans of one chunk; `twice` counts down the layers that are still to be recomputed in
// the way of `kind`, the others are in the way of `rest`. Embedding and head are never computed
// twice.
void add_spans(Recompute kind, Recompute rest, UnitRange units, int model_units, Span span,
               int& twice, std::vector<Span>& spans) {
  for (int u = units.begin; u < units.end; ++u) {
    const bool layer = u > 0 && u < model_units - 1;
    const Recompute own = !layer ? Recompute::none : twice-- > 0 ? kind : rest;
    if (!spans.empty() && spans.back().units.end == u && spans.back().chunk == span.chunk &&
        spans.back().recompute == own) {
      ++spans.back().units.end;
      continue;
    }
    span.units = {u, u + 1};
    span.recompute = own;
    spans.push_back(span);
  }
}

}  // namespace

bool states_zero_stage(const RunRow& row) { return zero_stage_in(row.data_sharding) > 0; }

bool states_recompute(const RunRow& row) {
  return !row.recompute.empty() && !mentions(row.notes, "recompute not stated");
}

bool recomputes_all(const RunRow& row) {
  const bool in_parts = row.recompute.find_first_of("|/23456789") != std::string::npos;
  return states_recompute(row) && !in_parts && recompute_of(row.recompute) == Recompute::full;
}

Plan plan_of(const RunRow& row, const Job& job, const RunDegrees& degrees, const Model& model,
             Assumptions& assumptions) {
  Plan plan;
  plan.schedule = schedule_of(row, degrees);
  plan.micro_batches = degrees.micro_batches;
  plan.context = degrees.context;
  plan.expert = degrees.expert;
  plan.zero = zero_of(row, job, degrees.pipeline());
  plan.offload = offload_of(row);
  plan.sequence_parallel = sequence_parallel_of(row, job, degrees.tensor());
  const int units = model.unit_count();
  const std::vector<int> sizes = chunk_sizes(row, job, degrees, plan.schedule, model, assumptions);
  std::vector<int> begins(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), begins.begin() + 1);

  const int stages = degrees.pipeline();
  const int chunks = static_cast<int>(sizes.size()) / stages;
  std::vector<int> layers(stages, 0);
  for (int s = 0; s < stages; ++s)
    for (int c = 0; c < chunks; ++c)
      layers[s] += sizes[chunk_position(plan.schedule, stages, s, c)];
  const Recomputing recomputing = recomputing_of(row, job, layers, assumptions);
  int device = 0;
  for (int s = 0; s < stages; ++s) {
    const auto [tensor, data] = degrees.stages[s];
    const double part = recomputing.parts.empty() ? 1 : recomputing.parts[s];
    const Recompute rest = recomputing.rest.empty() ? Recompute::none : recomputing.rest[s];
    int twice = static_cast<int>(std::round(part * layers[s]));
    Stage stage;
    for (int c = 0; c < chunks; ++c) {
      const int at = chunk_position(plan.schedule, stages, s, c);
      add_spans(recomputing.kind, rest, {begins[at], begins[at + 1]}, units,
                {.tensor = tensor, .data = data, .chunk = c}, twice, stage.spans);
    }
    for (int d = 0; d < tensor * data * degrees.context; ++d)
      stage.devices.push_back(static_cast<DeviceId>(device++));
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

}  // namespace plait
