#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/hlo/program.h"

namespace plait::graph {

// What happens to an op when one of its index ranges is divided among devices.
enum class FactorKind {
  pass,        // nothing: each device computes its part
  reduction,   // outputs without the factor are partial sums (or maxima), combined afterwards
  replication  // it cannot be divided: the op wants all of it on every device
};

// An index range of an op, as in einsum notation.
struct Factor {
  std::int64_t size = 1;
  FactorKind kind = FactorKind::pass;
  friend bool operator==(const Factor&, const Factor&) = default;
};

// The factors of each dimension of a tensor, the major one first; their sizes multiply to that of
// the dimension, and a dimension of one has none.
using TensorFactors = std::vector<std::vector<int>>;

// What an op wants of a divided dimension besides its part: so many elements of the part before,
// and of the part behind. A convolution's window reaches over the border.
struct Halo {
  int operand = 0;
  int dim = 0;
  std::int64_t before = 0;
  std::int64_t behind = 0;
  friend bool operator==(const Halo&, const Halo&) = default;
};

// How the dimensions of an op's operands and outputs hang together.
struct Rule {
  std::vector<Factor> factors;
  std::vector<TensorFactors> operands;
  std::vector<TensorFactors> outputs;
  std::vector<Halo> halos;
  bool known = true;  // false: an op without a rule, planned as replicated
};

// The rule of each node. InputError where a shape contradicts its op; each kind of op that has no
// rule is named once in `warnings`.
std::vector<Rule> rules_of(const Program& program, std::vector<std::string>& warnings);

// The op multiplies and sums (dot, convolution), or looks up or adds rows as a product with a
// one-hot matrix would (gather and scatter of floating point rows).
bool is_contraction(const Program& program, const Node& node);

// "([i,k],[k,j])->([i,j]) {i=4, j=8, k=2} reduction={k}": for tests and messages.
std::string text_of(const Rule& rule);

}  // namespace plait::graph
