#pragma once

#include <string>

#include "app/graph/source.h"
#include "base/units.h"

namespace plait {

// Time the blocks of a program and the collectives of a mesh on devices that JAX has.
struct GraphProfileRequest {
  GraphSource source;   // with a mesh
  std::string devices;  // "cpu:8"; "" = those that JAX finds
  std::string output;   // kept up to date while it runs; what it has already is not timed again
  Seconds budget{600};  // after which nothing new is begun
  std::string python;   // that has JAX
  std::string runner;   // python/plait/jax.py
  // Instead: write the products that one device computes here, for plait profile --ops.
  std::string products;
};

struct GraphProfileAnswer {
  std::string report;        // the runner's JSON: how much was timed, known, failed and left
  std::size_t products = 0;  // that were written; nothing is timed then
};

GraphProfileAnswer answer(const GraphProfileRequest& request, const Session& session);
std::string to_json(const GraphProfileAnswer& answer);
std::string as_text(const GraphProfileAnswer& answer);

}  // namespace plait
