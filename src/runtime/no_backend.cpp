#include "runtime/backend.h"

namespace plait::runtime {

const Backend* backend() { return nullptr; }

}  // namespace plait::runtime
