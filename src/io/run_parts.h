#pragma once

#include <string>
#include <vector>

#include "io/catalogue.h"
#include "io/run_row.h"
#include "model/transformer.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// The parts of a problem and a plan that a row of a table of runs describes (io/run_row.h). Each
// function adds a sentence to `assumptions` for what the row leaves open, and throws RowRefused
// when the row does not say enough or contradicts itself.
using Assumptions = std::vector<std::string>;

// Which program ran, by the words of the column `framework`.
struct RunProgram {
  Framework framework = Framework::megatron;
  bool megatron_core = false;  // Megatron-Core, NeMo, Megatron-Bridge: fused kernels and overlap
  AttentionKernel attention = AttentionKernel::flash;
};
RunProgram program_of(const RunRow& row, Assumptions& assumptions);

TransformerConfig transformer_of(const RunRow& row, const RunProgram& program,
                                 Assumptions& assumptions);

Cluster cluster_of(const RunRow& row, const Catalogue& catalogue, Assumptions& assumptions);

// Degrees and batch of a run, complete and multiplying out.
struct RunDegrees {
  int tensor = 1;
  int pipeline = 1;
  int chunks = 1;
  int data = 1;
  int context = 1;
  int expert = 1;
  int micro_batch = 1;
  int micro_batches = 1;
};
RunDegrees degrees_of(const RunRow& row, const RunProgram& program, Assumptions& assumptions);

// The plan of the row for this model and cluster, devices in Megatron's order: tensor fastest,
// then context, data, and pipeline slowest.
Plan plan_of(const RunRow& row, const RunProgram& program, const RunDegrees& degrees,
             const Model& model, Assumptions& assumptions);

Precision precision_of(const RunRow& row, const Cluster& cluster, Assumptions& assumptions);

}  // namespace plait
