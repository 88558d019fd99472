#pragma once

#include <span>
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

// Rows in Aceso's order: of a GPT, or of an encoder and a decoder. A ResNet has none.
std::span<const AcesoMapping> aceso_mappings(std::string_view family);

bool matches(const AcesoMapping& mapping, const Op& op);

}  // namespace plait
