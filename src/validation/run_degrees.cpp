#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>

#include "validation/run_parts.h"

namespace plait {
namespace {

constexpr int kMostDevices = 200'000;
constexpr int kMostChunks = 1000;   // of a stage
constexpr double kMostTasks = 2e6;  // of a simulated step

// tp * pp from "model_parallel_size(tp*pp)=512": tensor inside a node, the rest pipeline.
std::pair<int, int> split_model_parallel(const RunRow& row, Assumptions& assumptions) {
  static const std::regex size(R"(model_parallel_size\(tp\*pp\)=(\d{1,6}))");
  std::smatch match;
  if (!std::regex_search(row.plan_detail, match, size))
    throw RowRefused("tp and pp are not stated");
  const int whole = std::stoi(match[1]);
  const int tensor = std::min(whole, row.gpus_per_node.value_or(8));
  if (tensor == 0 || whole % tensor != 0) throw RowRefused("tp and pp are not stated");
  assumptions.push_back(fmt::format("tp {} and pp {}", tensor, whole / tensor));
  return {tensor, whole / tensor};
}

// Programs that share a model by its states alone unless they are told otherwise, which tables then
// state: FSDP, ZeRO and plain data parallelism.
bool cuts_states_only(const RunRow& row, const Job& job) {
  if (runs_in_degrees(job.framework)) return false;
  if (job.framework.fully_sharded || job.framework.autocast) return true;
  const std::string words = row.data_sharding + " " + row.framework;
  return states_zero_stage(row) || mentions(words, "FSDP") || mentions(words, "ZeRO") ||
         mentions(words, "DDP") || mentions(words, "FULL_SHARD");
}

// Stages that differ: "gpus/stage 4|2|2; tp set 1,2": the largest tensor degree of the set that
// divides the stage's devices.
std::vector<StageDegrees> listed_stages(const RunRow& row, Assumptions& assumptions) {
  const std::vector<int> devices = numbers_with_bars(row.plan_detail, "gpus/stage");
  if (devices.empty()) throw RowRefused("tp or dp is mixed and the stages are not listed");
  static const std::regex set(R"(tp set ((?:\d{1,6},?)+))");
  std::smatch match;
  std::vector<int> tensors{1};
  if (std::regex_search(row.plan_detail, match, set)) {
    const std::string list = match[1];
    static const std::regex number(R"(\d+)");
    for (std::sregex_iterator it(list.begin(), list.end(), number), end; it != end; ++it)
      tensors.push_back(std::stoi(it->str()));
  }
  std::vector<StageDegrees> stages;
  int sum = 0;
  for (const int count : devices) {
    int tensor = 1;
    for (const int t : tensors)
      if (t > tensor && count % t == 0) tensor = t;
    stages.push_back({tensor, count / tensor});
    sum += count;
  }
  if (sum != row.gpus.value_or(0))
    throw RowRefused(
        fmt::format("the stages have {} devices, num_gpus is {}", sum, row.gpus.value_or(0)));
  assumptions.emplace_back("one degree for all ops of a stage");
  return stages;
}

// tp and pp of a row that states neither, where one reading alone is possible: its replicas take
// all devices, or its program cuts states and nothing else.
std::pair<int, int> unstated_degrees(const RunRow& row, const Job& job, int context,
                                     Assumptions& assumptions) {
  const bool replicas = row.data && static_cast<double>(*row.data) * context == *row.gpus;
  const bool only_states = !row.data && cuts_states_only(row, job);
  if (!replicas && !only_states) return split_model_parallel(row, assumptions);
  if (only_states) assumptions.emplace_back("tp 1 and pp 1");
  return {1, 1};
}

std::vector<StageDegrees> equal_stages(const RunRow& row, const Job& job, int context,
                                       Assumptions& assumptions) {
  int tensor = row.tensor.value_or(1);
  int pipeline = row.pipeline.value_or(1);
  if (!row.tensor && !row.pipeline && *row.gpus > 1)
    std::tie(tensor, pipeline) = unstated_degrees(row, job, context, assumptions);
  const double others = static_cast<double>(tensor) * pipeline * context;
  const double data = *row.gpus / others;
  if (data < 1 || data != std::floor(data))
    throw RowRefused(fmt::format("tp {} x pp {} x cp {} does not divide the {} devices", tensor,
                                 pipeline, context, *row.gpus));
  if (row.data && *row.data != data)
    assumptions.push_back(fmt::format("dp {}, not {}: it must multiply out to {} devices", data,
                                      *row.data, *row.gpus));
  return std::vector<StageDegrees>(pipeline, {tensor, static_cast<int>(data)});
}

// Samples of a micro-batch on one replica.
int micro_batch_of(const RunRow& row, const Job& job, int pipeline, double data,
                   Assumptions& assumptions) {
  if (row.micro_batch) return *row.micro_batch;
  const double batch = row.global_batch.value_or(0);
  // Without a pipeline, frameworks other than Megatron take the batch in one go.
  const bool whole = pipeline == 1 && !runs_in_degrees(job.framework);
  double size = 1;
  if (batch > 0 && row.accumulation) size = batch / (data * *row.accumulation);
  if (batch > 0 && !row.accumulation && whole) size = batch / data;
  assumptions.push_back(fmt::format("micro-batches of {}", std::max(1.0, std::floor(size))));
  return static_cast<int>(std::max(1.0, std::floor(size)));
}

// TorchTitan's local batch: what one replica takes, and what a pipeline cuts into micro-batches.
std::optional<int> local_batch(const RunRow& row, const Job& job, int pipeline) {
  static const std::regex local(R"(local batch (\d{1,6}))");
  std::smatch match;
  if (std::regex_search(row.plan_detail, match, local)) return std::stoi(match[1]);
  if (job.framework.fully_sharded && pipeline > 1 && !row.accumulation) return row.micro_batch;
  return std::nullopt;
}

// A batch that is not said to be of one device or of all: of one beside gradient accumulation, as
// programs have it, and where it is not a multiple of the replicas.
RunRow with_batch(RunRow row, double data, Assumptions& assumptions) {
  if (!row.batch || (row.global_batch && row.micro_batch)) return row;
  const double whole = data * row.micro_batch.value_or(1);
  const bool each = row.global_batch || (row.accumulation && !row.micro_batch) ||
                    std::fmod(*row.batch, whole) != 0;
  if (each && row.micro_batch) return row;
  (each ? row.micro_batch : row.global_batch) = row.batch;
  if (each && !row.global_batch)
    row.global_batch =
        static_cast<int>(std::min(1e9, data * *row.batch * row.accumulation.value_or(1)));
  if (data > 1)
    assumptions.push_back(fmt::format("a batch of {} {}", *row.batch,
                                      each ? "on each replica" : "on all replicas together"));
  return row;
}

void set_batch(const RunRow& said, const Job& job, RunDegrees& degrees, Assumptions& assumptions) {
  const int pipeline = degrees.pipeline();
  const RunRow row = with_batch(said, degrees.stages.front().data, assumptions);
  if (row.mixed_degrees) {
    // The column counts a micro-batch of the whole pipeline here.
    degrees.micro_batch = row.micro_batch.value_or(1);
    degrees.micro_batches =
        std::max(1, row.global_batch.value_or(degrees.micro_batch) / degrees.micro_batch);
    return;
  }
  const double data = degrees.stages.front().data;
  const auto local = row.global_batch ? std::nullopt : local_batch(row, job, pipeline);
  const double each =
      local ? pipeline > 1 ? 1 : *local : micro_batch_of(row, job, pipeline, data, assumptions);
  double count = 1;
  if (row.global_batch) {
    count = std::max(1.0, std::round(*row.global_batch / (data * each)));
    if (count * data * each != *row.global_batch)
      assumptions.push_back(
          fmt::format("a global batch of {}, not {}: dp {} x mbs {} must divide "
                      "it",
                      count * data * each, *row.global_batch, data, each));
  } else if (local) {
    count = *local / each;
  } else if (row.accumulation) {
    count = *row.accumulation;
  } else if (pipeline > 1 || is_megatron_core(job.framework)) {
    throw RowRefused("gbs is not stated");
  }
  if (!row.global_batch)
    assumptions.push_back(fmt::format("a global batch of {}", count * data * each));
  if (count * data * each > 1e9) throw RowRefused("the global batch is above 10^9");
  degrees.micro_batch = static_cast<int>(data * each);
  degrees.micro_batches = static_cast<int>(count);
}

// Megatron-Core may spread experts over the tensor group as well; plait spreads them over data and
// context only.
void set_experts(const RunRow& row, RunDegrees& degrees, Assumptions& assumptions) {
  const int wanted = row.expert.value_or(1);
  const int most = degrees.stages.front().data * degrees.context;
  degrees.expert = wanted;
  if (wanted <= most || wanted % most != 0) return;
  degrees.expert = most;
  assumptions.push_back(
      fmt::format("ep {}, not {}: experts are not spread over the tensor group", most, wanted));
}

}  // namespace

RunDegrees degrees_of(const RunRow& row, const Job& job, Assumptions& assumptions) {
  if (!row.gpus) throw RowRefused("num_gpus is not stated");
  if (*row.gpus > kMostDevices) throw RowRefused(fmt::format("num_gpus is {}", *row.gpus));
  RunDegrees degrees;
  degrees.context = row.context.value_or(1);
  degrees.chunks = row.chunks.value_or(1);
  if (degrees.chunks > kMostChunks) throw RowRefused(fmt::format("vpp is {}", degrees.chunks));
  degrees.stages = row.mixed_degrees ? listed_stages(row, assumptions)
                                     : equal_stages(row, job, degrees.context, assumptions);
  set_batch(row, job, degrees, assumptions);
  set_experts(row, degrees, assumptions);
  if (static_cast<double>(degrees.micro_batches) * degrees.pipeline() * degrees.chunks > kMostTasks)
    throw RowRefused(fmt::format("{} micro-batches in {} stages are too many to simulate",
                                 degrees.micro_batches, degrees.pipeline()));
  return degrees;
}

}  // namespace plait
