#include "plan/sample_frameworks.h"

#include "io/cluster/catalogue.h"

namespace plait::samples {

const Framework& framework(const std::string& name) {
  return find_framework(builtin_catalogue(), name, "tests");
}

}  // namespace plait::samples
