#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "cost/metis_formula.h"
#include "io/format/json_reader.h"
#include "plan/problem.h"

namespace plait {

// One file of a Metis profile directory, DeviceType.A100_tp2_bs4.json, in SI units and as it was
// measured. Read: execution_time.layer_compute_total_ms (forward and backward of each layer),
// forward_backward_time_ms (absent in the form that Metis' README shows), optimizer_time_ms (Metis
// doubles it on loading; it is not doubled here), batch_generator_time_ms,
// execution_memory.layer_memory_total_mb (MB of 2^20 bytes),
// model.parameters.parameters_per_layer_bytes (element counts, in spite of their name).
struct MetisFile {
  std::string device_type;
  int tensor = 1;
  int micro_batch = 1;
  std::vector<Seconds> layers;
  Seconds forward_backward;   // of the whole model; the sum of the layers where it was not measured
  Seconds optimizer;          // of the whole model; 0 = not measured
  Seconds batch_generator;    // of one micro-batch; 0 = not measured
  std::vector<Bytes> memory;  // of each layer; empty = not measured
  std::vector<double> parameters;  // of each layer before any cut; empty = not given

  // What forward and backward take besides the layers: the logits and the loss, mostly.
  Seconds unexplained() const;
};

// "DeviceType.A100_tp2_bs4.json" -> the three of them; false for any other name.
bool parse_metis_name(const std::string& name, MetisFile& into);

// InputError for lists of different lengths, negative times and what is missing.
MetisFile read_metis_file(const MetisFile& named, const JsonValue& root);

// Whether `--profile` names a profile of Metis'.
bool is_metis_profile(const std::string& path);

// The same files as Metis' formula needs them: layer by layer, nothing interpolated, and optimizer,
// batch generator and parameters from the first file by name. Points beyond `max_tensor` and
// `max_samples` are left out (0 = none are). InputError when a device type of the cluster was not
// measured, or the layers are not the model's units.
struct MetisLimits {
  int max_tensor = 0;
  int max_samples = 0;
};
MetisTable load_metis_table(const std::string& path, const Problem& problem,
                            const MetisLimits& limits);

}  // namespace plait
