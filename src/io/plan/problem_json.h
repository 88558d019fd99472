#pragma once

#include <string>

#include "cluster/cluster.h"
#include "io/format/json_reader.h"
#include "model/model.h"
#include "plan/problem.h"

namespace plait {

// The values of a problem as JSON and back, so that a saved plan needs no other file. Lossless:
// restore(dump(x)) == x, every number to its last bit, which is why quantities are in SI units here
// (bytes, seconds, flops) and not in those of the files that people write (io/load_*). The text is
// on one line; docs/files-plan.md describes it. What is absent has the default of its type.
//
// The restoring functions throw InputError naming file and JSON pointer for whatever is not such a
// value: unknown keys, numbers out of range, positions that point nowhere, absurd sizes.
std::string dump_model(const Model& model);
Model restore_model(const JsonValue& json);

std::string dump_cluster(const Cluster& cluster);
Cluster restore_cluster(const JsonValue& json);

// Understands global_batch_size for global_batch, as Megatron-LM calls it.
std::string dump_job(const Job& job);
Job restore_job(const JsonValue& json);

}  // namespace plait
