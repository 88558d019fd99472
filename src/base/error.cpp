#include "base/error.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace plait {

void check_failed(const char* condition, const char* file, int line) {
  // The place in the sources, not the directory in which the program was built.
  const std::string_view path(file);
  const std::size_t root = path.rfind("src/");
  if (root != path.npos) file += root;
  std::fprintf(stderr,
               "plait: internal error: %s does not hold (%s:%d)\n"
               "This is a bug in plait. Please report it with the command that you ran.\n",
               condition, file, line);
  std::abort();
}

}  // namespace plait
