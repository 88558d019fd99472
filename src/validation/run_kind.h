#pragma once

#include <array>
#include <string>
#include <string_view>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// Properties of a run that the error of its prediction may depend on. Each is a column of
// `plait validate --rows` and may be a row of data/catalogue/errors.json.
struct RunKind {
  std::string device;          // the type that most of the plan's devices have
  std::string framework;       // the catalogue's name
  bool lone = false;           // one device
  bool nodes = false;          // more than one node
  bool many_nodes = false;     // more than sixteen
  bool experts = false;        // a mixture
  bool long_sequence = false;  // 16,384 tokens and more
  bool narrow = false;         // products in 8 bits and less
  bool mixed = false;          // devices of several types
  bool other_network = false;  // anything but a decoder of text
  bool adapters = false;       // only adapters are trained
  bool measured = false;       // units' times are those of a profile

  friend bool operator==(const RunKind&, const RunKind&) = default;
};

RunKind kind_of(const Problem& problem, const Plan& plan);

// The properties that are either true or false, by the names that tables have.
struct RunProperty {
  std::string_view name;
  bool RunKind::*value;
  std::string_view words;  // "mixtures of experts"
};
inline constexpr std::array kRunProperties{
    RunProperty{"lone", &RunKind::lone, "one device"},
    RunProperty{"nodes", &RunKind::nodes, "several nodes"},
    RunProperty{"many_nodes", &RunKind::many_nodes, "more than 16 nodes"},
    RunProperty{"experts", &RunKind::experts, "a mixture of experts"},
    RunProperty{"long_sequence", &RunKind::long_sequence, "long sequences"},
    RunProperty{"narrow", &RunKind::narrow, "products in 8 bits or less"},
    RunProperty{"mixed", &RunKind::mixed, "devices of several types"},
    RunProperty{"other_network", &RunKind::other_network,
                "a network that is not a decoder of text"},
    RunProperty{"adapters", &RunKind::adapters, "adapters"},
    RunProperty{"measured", &RunKind::measured, "a profile of the model"},
};

}  // namespace plait
