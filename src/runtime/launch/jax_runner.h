#pragma once

#include <string>

namespace plait::runtime {

// A sharded step that JAX runs, through python/plait/jax.py.
struct JaxRun {
  std::string python;   // that has JAX
  std::string runner;   // the file jax.py
  std::string step;     // FILE.py:FUNCTION
  std::string plan;     // of plait graph search
  std::string devices;  // "cpu:8"; "" = those that JAX finds
  int steps = 3;
};

// The runner's report, a JSON text. InputError with the last line of its errors when it fails.
std::string run_in_jax(const JaxRun& run);

}  // namespace plait::runtime
