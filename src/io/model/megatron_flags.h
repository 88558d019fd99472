#pragma once

#include <optional>
#include <string>

#include "io/model/huggingface/huggingface.h"

namespace plait {

// Reads Megatron-LM's command line: a whole launch script, or just its flags ("--num-layers 24
// --hidden-size 1024 ..."). Flags may be spelt with '-' or '_' and as "--flag value" or
// "--flag=value"; lines may end in '\' and have '#' comments. Flags that do not concern the shape
// of the model are ignored. What is not said takes Megatron's default. `name` stands for the file
// in messages; "pretrain_bert" or "pretrain_t5" anywhere in the text chooses that family.
TransformerReading read_megatron_flags(const std::string& name, const std::string& text,
                                       std::optional<int> sequence);

// Whether the text has Megatron's flags in it.
bool has_megatron_flags(const std::string& text);

}  // namespace plait
