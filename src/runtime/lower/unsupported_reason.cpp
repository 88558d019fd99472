#include <algorithm>
#include <map>

#include "plan/target.h"
#include "runtime/lower/layout.h"
#include "runtime/lower/network_support.h"

namespace plait::runtime {
namespace {

bool repeats(const ExecOp& op, std::size_t part) {
  return (op.kind == ExecOpKind::queries_keys_values && part > 0) ||
         op.kind == ExecOpKind::cross_keys_values;
}

// Whether the tensor degree cuts the parameters into parts that are whole pieces.
std::string tensor_fault(const ExecOp& op, int tensor) {
  for (const Parameter& parameter : op.parameters)
    for (std::size_t p = 0; p < parameter.parts.size(); ++p) {
      const Part& part = parameter.parts[p];
      const bool fits =
          part.pieces == 0
              ? part.size > (part.size + tensor - 1) / tensor * (tensor - 1)
              : part.pieces % tensor == 0 || (repeats(op, p) && tensor % part.pieces == 0);
      if (!fits)
        return "tensor " + std::to_string(tensor) + " does not divide " +
               std::to_string(part.pieces == 0 ? part.size : part.pieces) + " of '" + op.name + "'";
    }
  return "";
}

// The other way to cut an op gives each device equal parts of what the usual one leaves.
std::string split_fault(const ExecOp& op, int tensor) {
  for (const Part& part : op.usual_parts)
    if (part.pieces % tensor != 0)
      return "'" + op.name + "' is not cut in another way where tensor " + std::to_string(tensor) +
             " does not divide its " + std::to_string(part.pieces) + " parts";
  return "";
}

// Where keys and values are repeated their gradients are parts of a sum, which no cut can hand on.
std::string cut_fault(const ExecOp& op, const SpanPlace& a, const SpanPlace& b) {
  const std::string place = "a cut after '" + op.name + "'";
  if (!op.may_cut_after) return place + ", between the experts, is not implemented";
  for (const LiveTensor& alive : op.alive)
    if (alive.cut == LiveTensor::Cut::features)
      for (const Part& part : alive.parts)
        if (part.pieces > 0 && part.pieces < std::max(a.tensor, b.tensor))
          return place + " is not implemented where key-value heads are fewer than tensor " +
                 std::to_string(std::max(a.tensor, b.tensor));
  return "";
}

// Shards that are cut along an inner dimension are not parts of each other in memory.
std::string sharing_fault(const Layout& layout, const ExecProgram& program) {
  std::map<std::string, int> dim_of;
  for (const ExecOp& op : program.ops)
    for (const Parameter& parameter : op.parameters)
      if (dim_of.emplace(parameter.name, parameter.dim).first->second != parameter.dim)
        return "'" + op.name + "' has the same weights as an op that is cut in another way";
  std::map<std::string, int> tensor_of;
  for (const SpanPlace& span : layout.spans)
    for (int s = span.begin; s < span.end; ++s)
      for (const Parameter& parameter : program.ops[s].parameters) {
        if (parameter.dim <= 0) continue;
        const int tensor = tensor_of.emplace(parameter.name, span.tensor).first->second;
        if (tensor != span.tensor)
          return "'" + program.ops[s].name + "' has the same weights in layers of tensor " +
                 std::to_string(tensor) + " and " + std::to_string(span.tensor) +
                 "; shards of them can only be summed where all layers have one degree (`tensor`)";
      }
  return "";
}

}  // namespace

std::string unsupported_reason(const Problem& problem, const Plan& plan) {
  if (const auto reason = why_not(*target_named("plait"), problem, plan)) return *reason;
  if (problem.job.optimizer == Optimizer::adam8bit)
    return "8-bit Adam, where plait train has the usual one";
  for (const int unit : problem.model.units)
    if (problem.model.kinds[unit].frozen) return "frozen layers, where plait train trains all";
  Lowered lowered = lower(problem.model);
  if (!lowered.fault.empty()) return lowered.fault;
  lowered.program = with_splits(std::move(lowered.program), plan);
  std::string fault = untrained_feature(problem.model);
  if (!fault.empty()) return fault;
  for (const Stage& stage : plan.stages)
    for (const int share : stage.shares)
      if (share < 1) return "a replica without samples is not implemented";
  const Layout layout = make_layout(problem, plan, lowered.program);
  for (std::size_t i = 0; i < layout.spans.size(); ++i) {
    const SpanPlace& span = layout.spans[i];
    for (int s = span.begin; s < span.end; ++s) {
      fault = tensor_fault(lowered.program.ops[s], span.tensor);
      if (fault.empty()) fault = split_fault(lowered.program.ops[s], span.tensor);
      if (!fault.empty()) return fault;
    }
    if (plan.sequence_parallel && span.tensor > 1 && lowered.program.images)
      return "sequence parallelism of images is not implemented";
    if (plan.sequence_parallel && lowered.program.target % span.tensor != 0)
      return "tensor " + std::to_string(span.tensor) + " does not divide the decoder's " +
             std::to_string(lowered.program.target) + " positions";
    if (i + 1 == layout.spans.size() || same_places(span, layout.spans[i + 1])) continue;
    fault = cut_fault(lowered.program.ops[span.end - 1], span, layout.spans[i + 1]);
    if (!fault.empty()) return fault;
  }
  return sharing_fault(layout, lowered.program);
}

}  // namespace plait::runtime
