#include "source_tree.h"

namespace plait {

std::string source_dir() { return PLAIT_SOURCE_DIR; }

}  // namespace plait
