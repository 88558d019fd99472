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

// Pieces of a program that JAX times one after the other.
struct JaxMeasurement {
  std::string python;
  std::string runner;
  std::string program;  // HLO text with tags
  std::string request;  // what to time, as io/graph/profile_json.h writes it
  std::string output;   // the profile, gone on with where it exists
  std::string devices;
  double budget_s = 600;
};

// The runner's report, a JSON text; errors as of run_in_jax.
std::string measure_in_jax(const JaxMeasurement& measurement);

}  // namespace plait::runtime
