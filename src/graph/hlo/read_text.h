#pragma once

#include <string>
#include <string_view>

#include "graph/hlo/module.h"

namespace plait::graph {

// Reads HLO text as XLA and JAX print it, in every form: long and short, with and without '%' and
// types of operands, layouts, comments, tables of source places. InputError with line and column
// for what is not HLO; `where` is the file's name. Linear in the text.
Module read_hlo(std::string_view text, const std::string& where);

}  // namespace plait::graph
