#include "cli/terminal/interrupt.h"

#include <csignal>

#include "base/error.h"

namespace plait {
namespace {

std::stop_source* current = nullptr;
volatile std::sig_atomic_t happened_once = 0;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// request_stop() is a few lock-free atomic operations as long as nobody registers a stop_callback,
// and nobody does: searches poll their token. So it may be called from a signal.
extern "C" void on_interrupt(int) {
  happened_once = 1;
  if (current != nullptr) current->request_stop();
}

}  // namespace

Interrupt::Interrupt(Reading reading) {
  PLAIT_CHECK(current == nullptr);
  current = &source_;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND | (reading == Reading::goes_on ? SA_RESTART : 0);
  for (const int signal : kSignals) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    // nohup ignores SIGHUP, and wants it to stay so.
    if (signal == SIGINT || before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (const int signal : kSignals) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler == on_interrupt) std::signal(signal, SIG_DFL);
  }
  current = nullptr;
}

bool Interrupt::ever_happened() { return happened_once != 0; }

}  // namespace plait
