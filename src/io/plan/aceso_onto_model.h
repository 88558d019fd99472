#pragma once

#include <string>
#include <vector>

#include "io/plan/aceso_plan.h"

namespace plait {

// An Aceso configuration as a plan of a model whose units are plait's ops.
struct MappedAcesoPlan {
  Plan plan;
  // The configuration itself with its cuts where the model has them; as it was
  // where none moved.
  Plan moved;
  std::vector<std::string> moves;  // "before enc-attention-softmax of layer 3, to before ..."
  int mixed = 0;                   // ops of the model whose ops of Aceso disagree
};

// Aceso's ops are finer inside attention (scores, softmax, dropout and weighted
// sum are one op here): a cut there moves to the nearer end of the op. An op is
// run as the first of its ops of Aceso is, and recomputed where most of them
// are; ops that Aceso has no name for are run as the one before. InputError
// where `fine`, the model at op granularity, is another network: by `where`.
MappedAcesoPlan map_aceso_plan(const AcesoPlan& read, const Model& fine, const std::string& where);

}  // namespace plait
