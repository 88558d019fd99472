#pragma once

#include <string>
#include <vector>

#include "app/request/session.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"

namespace plait {

// A session of a person at a terminal: Ctrl-C stops it, a bar shows how far it is, warnings go to
// stderr. One at a time.
class ConsoleSession {
 public:
  enum class Warnings { shown, silent };  // silent where the JSON has them
  explicit ConsoleSession(Warnings warnings);

  const Session& session() const { return session_; }

 private:
  Interrupt interrupt_{Interrupt::Reading::ends};
  Progress progress_;
  Session session_;
};

// Answers a request at the terminal. The bar is gone when it returns.
template <typename Request>
auto answer_here(const Request& request, bool json) {
  const ConsoleSession console(json ? ConsoleSession::Warnings::silent
                                    : ConsoleSession::Warnings::shown);
  auto out = answer(request, console.session());
  return out;
}

// The sentences with flags in place of fields (cli/flags/field_flags.h).
void say_in_flags(std::vector<std::string>& sentences);

}  // namespace plait
