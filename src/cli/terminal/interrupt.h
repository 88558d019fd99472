#pragma once

#include <stop_token>

namespace plait {

// While it lives, the first Ctrl-C asks for a stop and the second ends the program; so does what
// batch systems and closed terminals send (SIGTERM, SIGHUP). One at a time.
class Interrupt {
 public:
  // What becomes of a call that waits for input meanwhile.
  enum class Reading { goes_on, ends };
  explicit Interrupt(Reading reading = Reading::goes_on);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool happened() const { return source_.stop_requested(); }
  // Whether one has been interrupted since the program began.
  static bool ever_happened();

 private:
  std::stop_source source_;
};

}  // namespace plait
