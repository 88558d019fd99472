#include "runtime/lower/exec_op.h"

namespace plait::runtime {
namespace {

void cut_otherwise(ExecOp& op) {
  Parameter& weight = op.parameters.front();
  op.other = weight.dim == 0 ? OtherCut::by_input : OtherCut::by_output;
  op.usual_parts = std::move(weight.parts);
  weight.dim = 1 - weight.dim;
  weight.parts = {{weight.shape[weight.dim], weight.shape[weight.dim]}};
}

}  // namespace

ExecProgram with_splits(ExecProgram program, const Plan& plan) {
  for (const Stage& stage : plan.stages)
    for (const Span& span : stage.spans)
      if (span.split > 0 && span.tensor > 1)
        for (int u = span.units.begin; u < span.units.end; ++u)
          cut_otherwise(program.ops[program.begin[u]]);
  return program;
}

}  // namespace plait::runtime
