#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/problem.h"

namespace plait::second_opinion {

// A problem and how to state it on the command line.
struct MixedProblem {
  Problem problem;
  std::string model;
  std::string cluster;
  std::optional<int> sequence;  // where it is not the model's own
  std::string arguments;        // "--model gpt2-xl --cluster 2xT4:4/25Gbps+1xA100-40GB:8/25Gbps .."
};

// As the zoo has them, or at times 8, 16, 32 or 64 thousand tokens.
enum class Sequences { usual, up_to_64k };

// Random: 16 to `most_devices` devices of one to three types, uneven nodes now and then, 10 to 400
// Gbit/s between nodes; a model of the zoo that the devices have room for, tied embeddings and
// mixtures of experts among them.
MixedProblem mixed_problem(std::uint64_t seed, int most_devices = 256,
                           Sequences sequences = Sequences::usual);

}  // namespace plait::second_opinion
