#pragma once

// PyTorch's wheels have Gloo in libtorch_cpu.so and c10d's header for it, but not Gloo's own headers
// that c10d's includes. These declare as much of Gloo as that header names: plait makes process groups
// through c10d and never an object of Gloo itself. Not used where Gloo's headers are installed.

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
