#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <regex>

#include "io/run_parts.h"

namespace plait {
namespace {

constexpr int kMostChunks = 1000;   // of a stage
constexpr double kMostTasks = 2e6;  // of a simulated step, forward and backward counted once

// "7|8|9|8" anywhere in the text, at least two numbers; empty when there is none.
std::vector<int> numbers_with_bars(const std::string& text) {
  static const std::regex list(R"(\d{1,6}(?:\|\d{1,6})+)");
  std::smatch match;
  std::vector<int> numbers;
  if (!std::regex_search(text, match, list)) return numbers;
  const std::string found = match.str();
  static const std::regex number(R"(\d+)");
  for (std::sregex_iterator it(found.begin(), found.end(), number), end; it != end; ++it)
    numbers.push_back(std::stoi(it->str()));
  return numbers;
}

// tp * pp from "model_parallel_size(tp*pp)=512": tensor inside a node, the rest pipeline.
void split_model_parallel(const RunRow& row, RunDegrees& degrees, Assumptions& assumptions) {
  static const std::regex size(R"(model_parallel_size\(tp\*pp\)=(\d{1,6}))");
  std::smatch match;
  if (!std::regex_search(row.plan_detail, match, size))
    throw RowRefused("tp and pp are not stated");
  const int whole = std::stoi(match[1]);
  degrees.tensor = std::min(whole, row.gpus_per_node.value_or(8));
  if (degrees.tensor == 0 || whole % degrees.tensor != 0)
    throw RowRefused("tp and pp are not stated");
  degrees.pipeline = whole / degrees.tensor;
  assumptions.push_back(fmt::format("tp {} and pp {}", degrees.tensor, degrees.pipeline));
}

void set_data_degree(const RunRow& row, RunDegrees& degrees, Assumptions& assumptions) {
  const double others = static_cast<double>(degrees.tensor) * degrees.pipeline * degrees.context;
  const double fitting = row.gpus.value_or(0) / others;
  if (fitting < 1 || fitting != std::floor(fitting))
    throw RowRefused(fmt::format("tp {} x pp {} x cp {} does not divide the {} devices",
                                 degrees.tensor, degrees.pipeline, degrees.context,
                                 row.gpus.value_or(0)));
  degrees.data = static_cast<int>(fitting);
  if (row.data && *row.data != degrees.data)
    assumptions.push_back(fmt::format("dp {}, not {}: it must multiply out to {} devices",
                                      degrees.data, *row.data, *row.gpus));
}

void set_batch(const RunRow& row, const RunProgram& program, RunDegrees& degrees,
               Assumptions& assumptions) {
  const double data = degrees.data;
  std::optional<double> batch;
  if (row.global_batch) batch = *row.global_batch;
  if (row.micro_batch) {
    degrees.micro_batch = *row.micro_batch;
  } else {
    static const std::regex local(R"(local batch (\d{1,6}))");
    std::smatch match;
    // Without a pipeline, frameworks other than Megatron take the batch in one go.
    const bool whole = degrees.pipeline == 1 && program.framework != Framework::megatron &&
                       program.framework != Framework::deepspeed;
    if (std::regex_search(row.plan_detail, match, local)) {
      const int samples = std::stoi(match[1]);
      if (!batch) batch = samples * data;
      degrees.micro_batch = degrees.pipeline > 1 ? 1 : samples;
    } else if (batch && row.accumulation) {
      degrees.micro_batch = std::max(1, static_cast<int>(*batch / (data * *row.accumulation)));
    } else if (batch && whole) {
      degrees.micro_batch = std::max(1, static_cast<int>(*batch / data));
    }
    assumptions.push_back(fmt::format("micro-batches of {}", degrees.micro_batch));
  }
  const double each = data * degrees.micro_batch;
  if (!batch) {
    if (degrees.pipeline > 1 && !row.accumulation) {
      // torchtitan's local batch is what a pipeline cuts into micro-batches.
      degrees.micro_batches = degrees.micro_batch;
      degrees.micro_batch = 1;
    } else {
      degrees.micro_batches = row.accumulation.value_or(1);
    }
    assumptions.push_back(fmt::format("a global batch of {}", each * row.accumulation.value_or(1)));
    return;
  }
  const double micro_batches = std::max(1.0, std::round(*batch / each));
  degrees.micro_batches = static_cast<int>(micro_batches);
  if (micro_batches * each != *batch)
    assumptions.push_back(fmt::format("a global batch of {}, not {}: dp {} x mbs {} must divide it",
                                      micro_batches * each, *batch, degrees.data,
                                      degrees.micro_batch));
}

Schedule schedule_of(const RunRow& row, RunDegrees degrees) {
  std::string name = row.schedule;
  std::ranges::transform(name, name.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  if (degrees.pipeline == 1) return Schedule::one_f_one_b;
  if (name == "gpipe") return Schedule::gpipe;
  if (name == "zb-1p" || name == "zb-h1") return Schedule::zb_h1;
  if (name == "zb-2p") return Schedule::zb_2p;
  if (name == "zb-v") return Schedule::zb_v;
  if (name.empty() || name == "1f1b" || name.starts_with("interleaved"))
    return degrees.chunks > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
  throw RowRefused(fmt::format("the schedule '{}' is not known", row.schedule));
}

ZeroStage zero_of(const RunRow& row, const RunProgram& program) {
  const std::string& text = row.data_sharding;
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
  if (mentions(text, "SHARD_GRAD_OP") || mentions(text, "HSDP") || mentions(text, "ZeRO-2"))
    return ZeroStage::gradients;
  if (mentions(text, "ZeRO-3") || mentions(text, "FSDP")) return ZeroStage::parameters;
  if (mentions(text, "ZeRO-1")) return ZeroStage::optimizer;
  return text.empty() && program.megatron_core ? ZeroStage::optimizer : ZeroStage::off;
}

bool sequence_parallel_of(const RunRow& row, const RunProgram& program, int tensor) {
  if (mentions(row.sequence_parallel, "yes") || mentions(row.sequence_parallel, "true"))
    return true;
  const bool usual = program.megatron_core || program.framework == Framework::fsdp;
  return row.sequence_parallel.empty() && usual && tensor > 1;
}

// Units of each chunk, in execution order: the embedding, the layers and the head.
std::vector<int> even_chunks(int units, int chunks) {
  const int layers = units - 2;
  if (layers < chunks)
    throw RowRefused(fmt::format("{} layers cannot be cut into {} chunks", layers, chunks));
  std::vector<int> sizes(chunks, layers / chunks);
  const int rest = layers % chunks;
  if (rest != 0 && units % chunks == 0) {
    // The embedding and the loss count as layers.
    std::ranges::fill(sizes, units / chunks);
    return sizes;
  }
  const int skipped = rest < chunks - 1 && chunks > 1 ? 1 : 0;
  for (int i = 0; i < rest; ++i) ++sizes[chunks - 1 - skipped - i];
  ++sizes.front();
  ++sizes.back();
  return sizes;
}

// A stated split counts layers, or layers and what stands before and after them: the embedding and
// the head, or AMP's 30 pseudo-layers for 24 layers, of which 2 stand before and 4 after.
std::vector<int> stated_chunks(const std::vector<int>& split, int units) {
  const int layers = units - 2;
  const int sum = std::accumulate(split.begin(), split.end(), 0);
  const int before = sum == layers ? 0 : sum == layers + 2 ? 1 : sum == layers + 6 ? 2 : -1;
  if (before < 0)
    throw RowRefused(
        fmt::format("layer_split adds up to {}, the model has {} layers", sum, layers));
  std::vector<int> sizes;
  int at = -before;
  for (const int count : split) {
    const int begin = std::clamp(at, 0, layers);
    at += count;
    sizes.push_back(std::clamp(at, 0, layers) - begin);
  }
  ++sizes.front();
  ++sizes.back();
  if (std::ranges::find(sizes, 0) != sizes.end())
    throw RowRefused("layer_split leaves a stage without layers");
  return sizes;
}

std::vector<int> chunk_sizes(const RunRow& row, const RunDegrees& degrees, Schedule schedule,
                             int units) {
  const int per_stage = schedule == Schedule::interleaved ? degrees.chunks
                        : schedule == Schedule::zb_v      ? 2
                                                          : 1;
  const std::vector<int> split = numbers_with_bars(row.layer_split);
  if (per_stage == 1 && !split.empty() && !mentions(row.layer_split, "ops")) {
    if (static_cast<int>(split.size()) != degrees.pipeline)
      throw RowRefused(
          fmt::format("layer_split has {} parts, pp is {}", split.size(), degrees.pipeline));
    return stated_chunks(split, units);
  }
  const int chunks = degrees.pipeline * per_stage;
  if (mentions(row.layer_split, "first and last stage have one layer fewer") &&
      units % degrees.pipeline == 0) {
    const int stage = units / degrees.pipeline;
    std::vector<int> sizes(chunks, stage / per_stage);
    for (int s = 0; s < degrees.pipeline; ++s)
      for (int c = 0; c < stage % per_stage; ++c)
        ++sizes[chunk_position(schedule, degrees.pipeline, s, c)];
    return sizes;
  }
  return even_chunks(units, chunks);
}

// How much of the layers of a stage is computed twice.
struct Recomputing {
  Recompute kind = Recompute::none;
  bool alternate = false;               // every second layer only
  std::vector<int> layers_per_stage{};  // that many first layers of each stage; empty = all
};

Recomputing recomputing_of(const RunRow& row, const RunProgram& program, Assumptions& assumptions) {
  const std::string& text = row.recompute;
  if (text.empty()) {
    // Before selective recompute (May 2022) large models ran with full recompute.
    const bool early = !program.megatron_core && !row.date.empty() && row.date < "2022-05" &&
                       program.framework != Framework::eager;
    assumptions.push_back(early ? "full recompute" : "no recompute");
    return {early ? Recompute::full : Recompute::none};
  }
  if (mentions(text, "per stage"))
    return {.kind = Recompute::full, .layers_per_stage = numbers_with_bars(text)};
  if (mentions(text, "selective")) {
    // PyTorch's selective checkpointing repeats every second layer (or product).
    if (program.framework == Framework::fsdp) return {Recompute::full, true};
    return {Recompute::selective};
  }
  if (mentions(text, "full")) return {Recompute::full};
  if (mentions(text, "none")) return {Recompute::none};
  assumptions.push_back(fmt::format("no recompute for '{}'", text));
  return {Recompute::none};
}

// Appends the spans of a chunk: layers as asked, embedding and head never computed twice.
void add_spans(const Recomputing& recomputing, UnitRange units, int model_units, Span proto,
               int& layers_left, std::vector<Span>& spans) {
  for (int u = units.begin; u < units.end; ++u) {
    const bool layer = u > 0 && u < model_units - 1;
    Recompute kind = layer ? recomputing.kind : Recompute::none;
    if (layer && recomputing.alternate && u % 2 == 0) kind = Recompute::none;
    if (layer && !recomputing.layers_per_stage.empty() && layers_left-- <= 0)
      kind = Recompute::none;
    if (!spans.empty() && spans.back().units.end == u && spans.back().chunk == proto.chunk &&
        spans.back().recompute == kind) {
      ++spans.back().units.end;
      continue;
    }
    proto.units = {u, u + 1};
    proto.recompute = kind;
    spans.push_back(proto);
  }
}

}  // namespace

RunDegrees degrees_of(const RunRow& row, const RunProgram& program, Assumptions& assumptions) {
  RunDegrees degrees;
  degrees.context = row.context.value_or(1);
  degrees.chunks = row.chunks.value_or(1);
  degrees.expert = row.expert.value_or(1);
  if (!row.tensor && !row.pipeline && row.gpus.value_or(0) > 1) {
    split_model_parallel(row, degrees, assumptions);
  } else {
    degrees.tensor = row.tensor.value_or(1);
    degrees.pipeline = row.pipeline.value_or(1);
  }
  if (degrees.chunks > kMostChunks) throw RowRefused(fmt::format("vpp is {}", degrees.chunks));
  set_data_degree(row, degrees, assumptions);
  set_batch(row, program, degrees, assumptions);
  if (static_cast<double>(degrees.micro_batches) * degrees.pipeline * degrees.chunks > kMostTasks)
    throw RowRefused(fmt::format("{} micro-batches in {} stages are too many to simulate",
                                 degrees.micro_batches, degrees.pipeline));
  return degrees;
}

Plan plan_of(const RunRow& row, const RunProgram& program, const RunDegrees& degrees,
             const Model& model, Assumptions& assumptions) {
  Plan plan;
  plan.schedule = schedule_of(row, degrees);
  plan.micro_batches = degrees.micro_batches;
  plan.context = degrees.context;
  plan.expert = degrees.expert;
  plan.zero = zero_of(row, program);
  plan.sequence_parallel = sequence_parallel_of(row, program, degrees.tensor);
  const std::vector<int> sizes = chunk_sizes(row, degrees, plan.schedule, model.unit_count());
  const Recomputing recomputing = recomputing_of(row, program, assumptions);
  const auto per_stage = recomputing.layers_per_stage.size();
  if (per_stage > 0 && static_cast<int>(per_stage) != degrees.pipeline)
    throw RowRefused("recompute has another number of stages than pp");
  std::vector<int> begins(sizes.size() + 1, 0);
  std::partial_sum(sizes.begin(), sizes.end(), begins.begin() + 1);

  const int width = degrees.tensor * degrees.data * degrees.context;
  const int chunks = static_cast<int>(sizes.size()) / degrees.pipeline;
  for (int s = 0; s < degrees.pipeline; ++s) {
    Stage stage;
    int layers_left = per_stage > 0 ? recomputing.layers_per_stage[s] : 0;
    for (int c = 0; c < chunks; ++c) {
      const int at = chunk_position(plan.schedule, degrees.pipeline, s, c);
      add_spans(recomputing, {begins[at], begins[at + 1]}, model.unit_count(),
                {.tensor = degrees.tensor, .data = degrees.data, .chunk = c}, layers_left,
                stage.spans);
    }
    for (int d = 0; d < width; ++d) stage.devices.push_back(static_cast<DeviceId>(s * width + d));
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

}  // namespace plait
