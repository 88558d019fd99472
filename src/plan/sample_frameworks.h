#pragma once

// The frameworks of the catalogue for tests of the layers below the one that reads files.

#include <string>

#include "plan/framework.h"

namespace plait::samples {

// The catalogue's framework of that name: "megatron-lm". Defined in tests/sample_frameworks.cpp.
const Framework& framework(const std::string& name);

}  // namespace plait::samples
