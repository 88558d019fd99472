#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace plait {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr,
               "plait: internal error: %s does not hold (%s:%d)\n"
               "This is a bug in plait. Please report it with the command that you ran.\n",
               condition, file, line);
  std::abort();
}

}  // namespace plait
