#pragma once

#include <string>

#include "report/table.h"

namespace plait {

// Execute a plan of a program by JAX and compare it with one device.
struct GraphRunRequest {
  std::string step;     // FILE.py:FUNCTION
  std::string plan;     // what the search wrote
  std::string devices;  // "cpu:8" makes eight devices of this machine; "" = those that JAX finds
  int steps = 3;
  std::string python;  // that has JAX
  std::string runner;  // python/plait/jax.py
};

struct GraphRunAnswer {
  std::string report;  // the runner's JSON
};

GraphRunAnswer answer(const GraphRunRequest& request);
std::string to_json(const GraphRunAnswer& answer);
std::string as_text(const GraphRunAnswer& answer, const Style& style);

}  // namespace plait
