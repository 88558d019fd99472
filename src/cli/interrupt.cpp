#include "cli/interrupt.h"

#include <csignal>

#include "base/error.h"

namespace plait {
namespace {

std::stop_source* current = nullptr;

// request_stop() is a few lock-free atomic operations as long as nobody registers a stop_callback,
// and nobody does: searches poll their token. So it may be called from a signal.
extern "C" void on_interrupt(int) {
  if (current != nullptr) current->request_stop();
}

}  // namespace

Interrupt::Interrupt() {
  PLAIT_CHECK(current == nullptr);
  current = &source_;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  current = nullptr;
}

}  // namespace plait
