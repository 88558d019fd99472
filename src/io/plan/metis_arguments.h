#pragma once

#include <optional>
#include <string>

#include "io/model/loaded_model.h"

namespace plait {

// What Metis' program is told on its command line. 0 (or "") = not said.
struct MetisArguments {
  std::string where;  // the file, for messages
  std::string name;   // "GPT-1.5B"
  int layers = 0;     // embedding and head included, as in the profile
  int batch = 0;
  int hidden = 0;
  int sequence = 0;
  int vocabulary = 0;
  int heads = 0;  // "attention_head_size", which is a number of heads
  std::string hostfile;
  std::string clusterfile;
  std::string profile;
  int max_tensor = 0;
  int max_micro_batch = 0;
  double group_scale_variance = 1;
  int max_permute_len = 0;
};

// Reads a file with the program's command line,
//     python3 cost_het_cluster.py --num_layers=10 --gbs=128 --hostfile_path=hostfile ...
// or with that of its script,
//     cost_het_cluster.sh MODEL_NAME=GPT MODEL_SIZE=1.5B NUM_LAYERS=10 GBS=128 HOME_DIR=metis
//     ...
// where hostfile, clusterfile.json and profile lie in HOME_DIR, and the sizes of GPT 1.5B are
// known. Paths are taken from the working directory; what is not there, from the file's own and
// then from the ones above it. InputError for what is missing, wrong or nowhere.
MetisArguments read_metis_arguments(const std::string& path);

// A GPT with these sizes: an embedding, layers - 2 blocks and a head. Where the number of heads is
// not said, they have 128 features, or 64.
LoadedModel metis_model(const MetisArguments& arguments, std::optional<int> sequence);

}  // namespace plait
