#include "runtime/launch/private_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace plait::runtime {

PrivateFolder::PrivateFolder() {
  std::error_code fault;
  std::filesystem::path parent = std::filesystem::temp_directory_path(fault);
  if (fault) parent = "/tmp";
  path_ = (parent / "plait-XXXXXX").string();
  // mkdtemp makes a folder that was not there before, with mode 0700.
  if (mkdtemp(path_.data()) == nullptr)
    throw InputError(parent.string(),
                     std::string("no folder can be made there: ") + std::strerror(errno));
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace plait::runtime
