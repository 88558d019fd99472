#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/shell_words.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// Networks that Megatron-LM has a program for.
enum class MegatronFamily { gpt, bert, t5 };
MegatronFamily family_of(const TransformerConfig& config);

// The model in Megatron-LM's flags, or what they cannot say.
struct MegatronModel {
  std::vector<FlagWords> flags;
  MegatronFamily family = MegatronFamily::gpt;
  std::string entry;  // "pretrain_gpt.py"
  std::vector<std::string> losses;
  std::string refusal;  // a sentence without its full stop
};

// The flags are read again by plait's own reader, and a field that comes out different is a
// refusal: nothing of the network is dropped in silence.
MegatronModel megatron_model(const Problem& problem);

// Words of the network's table with those that the prediction pads it by.
int padded_vocabulary(const Problem& problem, const Plan& plan);

// Of a program that pads no table: that the prediction is for one that is padded; "" = it is not.
std::string padding_loss(const Problem& problem, const Plan& plan, std::string_view program);

// The configuration with every field that has a default written out, and what makes the same
// network in another way said in one way; of two that are equal, either describes the network.
TransformerConfig in_full(TransformerConfig config, int vocabulary_multiple);

// "" or the first field in which the configurations differ: "activation".
std::string difference(TransformerConfig a, TransformerConfig b);
// What people call it: "norm of queries and keys" for "qk_norm".
std::string field_in_words(std::string_view field);

}  // namespace plait
