#include "base/error.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace plait {

// The file as the tree names it: where the tree was on the machine that built the program is
// nobody's business.
void check_failed(const char* condition, const char* file, int line) {
  constexpr std::string_view kTree = "/src/";
  const std::size_t at = std::string_view(file).rfind(kTree);
  if (at != std::string_view::npos) file += at + 1;
  std::fprintf(stderr,
               "plait: internal error: %s does not hold (%s:%d)\n"
               "This is a bug in plait. Please report it with the command that you ran.\n",
               condition, file, line);
  std::abort();
}

}  // namespace plait
