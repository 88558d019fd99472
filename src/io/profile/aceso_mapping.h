#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/model.h"

namespace plait {

// Which of plait's ops an op of Aceso is: the one table for both directions. Reading adds up all
// of Aceso's ops that are one of plait's; an op of Aceso that is several of plait's goes to the
// first of them. Writing divides the time of one of plait's ops by `share`.
struct AcesoMapping {
  std::string_view aceso;
  std::string_view kind;  // LayerKind::name at layer granularity
  std::string_view op;    // Op::name; "" = all of the layer, "norm" and "!norm" by what they are
  double share = 1;
};

// Rows in Aceso's order: of a GPT, or of an encoder and a decoder. A ResNet has none: the names of
// its ops say where they are.
std::span<const AcesoMapping> aceso_mappings(std::string_view family);

bool matches(const AcesoMapping& mapping, const Op& op);

// LayerKind::name, at layer granularity, of what an op of Aceso's ResNet is in: "stage3_first" of
// block-2-0-conv1, "stage3" of block-2-1-conv1.
std::string resnet_layer(std::string_view aceso);

// Whether a unit that is one op ("decoder.attention.qkv") is that op of Aceso, or has it inside.
bool is_unit_of(std::string_view family, std::string_view aceso, const LayerKind& unit);

}  // namespace plait
