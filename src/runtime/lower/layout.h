#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"
#include "runtime/lower/exec_op.h"

namespace plait::runtime {

// A span of a plan with the ranks that run it. Rank of a device = its place among the devices of
// the plan in ascending order of id, so that ranks lie on machines as launchers number them.
struct SpanPlace {
  int stage = 0;
  int chunk = 0;
  int tensor = 1;
  int data = 1;
  Recompute recompute = Recompute::none;
  int begin = 0;  // ops of the program
  int end = 0;
  std::vector<int> ranks;         // data-major, tensor-minor
  std::vector<Interval> samples;  // of a micro-batch: what each replica takes

  int place_of(int rank) const;  // in `ranks`; -1 = it is of another stage
};

// Who does what when a plan is run.
struct Layout {
  int world = 1;
  int stages = 1;
  int chunks = 1;  // of a stage
  std::int64_t micro_batch = 0;
  bool sequence_parallel = false;
  std::vector<SpanPlace> spans;  // in the order in which a sample passes them
  std::vector<int> stage_of;     // rank

  // The spans of a chunk: positions in `spans`, which follow each other.
  std::vector<int> chunk_spans(int stage, int chunk) const;
};

Layout make_layout(const Problem& problem, const Plan& plan, const ExecProgram& program);

// Part of a rank's tensor, in its own coordinates: these samples, and this range of a dimension
// (0 = the first after the samples).
struct TensorSlice {
  Interval samples;
  int dim = 0;
  Interval range;
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

// Values that one rank hands to another, or to itself.
struct Transfer {
  int from = 0;
  int to = 0;
  int tensor = 0;  // position among the tensors that are alive
  TensorSlice source;
  TensorSlice target;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// How the tensors that are alive between two spans get from where `a` leaves them to where `b`
// wants them: every rank of `b` gets each of its values once. Also the way of gradients, with `a`
// and `b` exchanged, as the devices of a tensor group have equal gradients of what they all have.
std::vector<Transfer> transfers(const SpanPlace& a, const SpanPlace& b,
                                const std::vector<LiveTensor>& alive, bool sequence_parallel);

// True when nothing has to move: every rank already has what it needs.
bool same_places(const SpanPlace& a, const SpanPlace& b);

// The shape, without samples, that device `t` of `tensor` has of a tensor.
std::vector<std::int64_t> local_shape(const LiveTensor& alive, int tensor, int t,
                                      bool sequence_parallel);

// Values of a parameter that the same ranks hold: rows [begin, end) of a parameter that is cut
// along its first dimension, else a whole shard, told by its first interval.
struct SharedRange {
  std::string name;
  Interval rows;
  std::int64_t count = 0;   // values
  std::int64_t offset = 0;  // in the group's values
  int tensor = 1, t = 0;    // a shard that has it
};

// Gradients are summed over, and optimizer states may be spread over, the ranks that hold a value.
struct ParameterGroup {
  std::vector<int> ranks;           // ascending
  std::vector<SharedRange> ranges;  // in the order of the ops that use them first
  std::int64_t size = 0;
};

// A parameter, or part of it, as a rank holds it.
struct LocalTensor {
  Parameter parameter;
  int tensor = 1;
  int t = 0;
  std::vector<std::int64_t> shape;
  double weight = 1;  // of its gradient in the sum over ranks
  struct Segment {
    int group = 0;
    std::int64_t group_offset = 0;
    std::int64_t offset = 0;  // in the tensor
    std::int64_t count = 0;
  };
  std::vector<Segment> segments;
  std::int64_t size() const;
};

struct ParameterLayout {
  std::map<std::string, Parameter> all;  // of the model, by name
  std::vector<ParameterGroup> groups;    // the same on all ranks
  std::vector<LocalTensor> mine;
};

ParameterLayout parameter_layout(const Layout& layout, const ExecProgram& program, int rank);

// "" or why a plan cannot be executed: "context parallelism is not implemented". The plan must pass
// check_plan().
std::string unsupported_reason(const Problem& problem, const Plan& plan);

}  // namespace plait::runtime
