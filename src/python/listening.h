#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <optional>

#include "app/request/session.h"

namespace plait {

// Functions of the caller that are told of the work; None = not wanted.
struct Callbacks {
  nanobind::object on_improvement = nanobind::none();  // seconds of the best step so far
  nanobind::object on_progress = nanobind::none();     // from 0 to 1
};

// Runs `work` in a thread of its own and without Python's lock. Meanwhile the calling thread serves
// Python: its signals, and the callbacks, which therefore run where the caller is. Ctrl-C and a
// callback that raises ask the work to stop; it is waited for. True when Ctrl-C was pressed; what a
// callback or `work` threw is thrown again.
bool run_listening(const Callbacks& callbacks, const std::function<void(const Session&)>& work);

[[noreturn]] inline void raise_interrupt() {
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nanobind::python_error();
}

// The result of work that cannot be stopped: it is finished, and then the interrupt is raised.
template <typename Work>
auto run_to_the_end(const Work& work) {
  std::optional<decltype(work())> out;
  if (run_listening({}, [&](const Session&) { out = work(); })) raise_interrupt();
  return std::move(*out);
}

}  // namespace plait
