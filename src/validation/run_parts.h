#pragma once

#include <string>
#include <vector>

#include "io/cluster/catalogue.h"
#include "io/cluster/load_cluster.h"
#include "model/transformer.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "validation/run_row.h"

namespace plait {

// The parts of a problem and a plan that a row of a table of runs describes (validation/run_row.h).
// Each function adds a sentence to `assumptions` for what the row leaves open, and throws
// RowRefused when the row does not say enough or contradicts itself.
using Assumptions = std::vector<std::string>;

// What the row says of the program that ran and of the job, batch and precision apart.
Job job_of(const RunRow& row, const Catalogue& catalogue, Assumptions& assumptions);
// Megatron-Core's newer way to run mixtures, where the date and the device say so.
void set_graphs(const RunRow& row, const TransformerConfig& config, const Cluster& cluster,
                const Catalogue& catalogue, Job& job);

bool is_mist(const RunRow& row);  // Mist runs Megatron-LM's layers in its own engine

// Whether programs of this kind are given tensor and pipeline degrees as a matter of course.
bool runs_in_degrees(const Framework& framework);
bool is_megatron_core(const Framework& framework);  // NeMo and Megatron-Bridge as well

TransformerConfig transformer_of(const RunRow& row, const Job& job, Assumptions& assumptions);

// AMP's uneven model (model/gan.h); other generators are refused.
bool is_transgan(const RunRow& row);

// Fills in how many devices the row has from its nodes, its rented machines or a list of devices
// ("8x A100", "3x p3.8xlarge + 1x g4dn.12xlarge"), which is then a mixed cluster.
void count_devices(RunRow& row, const Catalogue& catalogue, Assumptions& assumptions);
// The device that such words name, with vendors, boards and remarks; nullptr when there is none.
const DeviceEntry* device_called(const std::string& text, const Catalogue& catalogue);
// A mixed cluster, in the order of the list; `network` is "" or "/50GBps", out of each node of
// devices. Rented machines have their own.
LoadedCluster listed_cluster(const RunRow& row, const std::string& network,
                             const Catalogue& catalogue, Assumptions& assumptions);
Cluster cluster_of(const RunRow& row, const Catalogue& catalogue, Assumptions& assumptions);

Precision precision_of(const RunRow& row, const Cluster& cluster, Assumptions& assumptions);

// How one stage is cut over its devices.
struct StageDegrees {
  int tensor = 1;
  int data = 1;
};

// Degrees and batch of a run, complete and multiplying out.
struct RunDegrees {
  std::vector<StageDegrees> stages;
  int chunks = 1;  // of a stage
  int context = 1;
  int expert = 1;
  int micro_batch = 1;  // samples of one micro-batch, all replicas of a stage together
  int micro_batches = 1;
  int pipeline() const { return static_cast<int>(stages.size()); }
  int tensor() const { return stages.front().tensor; }
};
RunDegrees degrees_of(const RunRow& row, const Job& job, Assumptions& assumptions);

// Units of each chunk in execution order, embedding and head counted. Without a stated split the
// layers are dealt out evenly, or as the program cuts a model by itself; Megatron's option to count
// embedding and loss as layers is taken where only that comes out even.
std::vector<int> chunk_sizes(const RunRow& row, const Job& job, const RunDegrees& degrees,
                             Schedule schedule, const Model& model, Assumptions& assumptions);

// The plan of the row, devices in Megatron's order: tensor fastest, then context, data, and
// pipeline slowest.
Plan plan_of(const RunRow& row, const Job& job, const RunDegrees& degrees, const Model& model,
             Assumptions& assumptions);

bool states_zero_stage(const RunRow& row);  // "ZeRO-3", "3"

// Whether the row says how much is computed twice.
bool states_recompute(const RunRow& row);
// Whether it says that all layers are computed twice.
bool recomputes_all(const RunRow& row);

// "7|8|9|8" in the text, after `label` where one is given; empty when there is none.
std::vector<int> numbers_with_bars(const std::string& text, const std::string& label = "");

}  // namespace plait
