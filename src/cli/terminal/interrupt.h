#pragma once

#include <stop_token>

namespace plait {

// While it lives, the first Ctrl-C asks for a stop and the second ends the program. One at a time.
class Interrupt {
 public:
  // What else asks for a stop: with `requests`, what batch systems and closed terminals send
  // (SIGTERM, SIGHUP). For verbs that must not leave behind what they started or measured.
  enum class By { keyboard, requests };
  explicit Interrupt(By by = By::keyboard);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool happened() const { return source_.stop_requested(); }

 private:
  std::stop_source source_;
};

}  // namespace plait
