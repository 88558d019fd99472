#pragma once

#include <string>
#include <vector>

#include "export/shell_words.h"
#include "plan/problem.h"

namespace plait {

// The model in Megatron-LM's flags, or what they cannot say.
struct MegatronModel {
  std::vector<FlagWords> flags;
  std::string entry;  // "pretrain_gpt.py"
  std::vector<std::string> losses;
  std::string refusal;  // a sentence without its full stop
};

// The flags are read again by plait's own reader, and a field that comes out different is a
// refusal: nothing of the network is dropped in silence.
MegatronModel megatron_model(const Problem& problem);

// The configuration with every field that has a default written out, and what makes the same
// network in another way said in one way; of two that are equal, either describes the network.
TransformerConfig in_full(TransformerConfig config, int vocabulary_multiple);

// "" or the first field in which the configurations differ: "activation".
std::string difference(TransformerConfig a, TransformerConfig b);

}  // namespace plait
