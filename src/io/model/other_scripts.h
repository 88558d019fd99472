#pragma once

#include <string>
#include <string_view>

namespace plait {

// What a file that says how, not what, is trained by another program than Megatron-LM is read by: a
// launch script of torchrun, accelerate or DeepSpeed, a recipe of axolotl or LLaMA-Factory, a file
// of accelerate. The rest of a sentence that begins with "; ", with what the file says of batch,
// length and number format filled in; "" where it is none that is known.
std::string of_another_program(const std::string& text);

// Whether the text begins with a table of TOML: "[model]" on a line of its own.
bool is_toml(std::string_view text);

}  // namespace plait
