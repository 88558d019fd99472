#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

struct Violation {
  std::string where;  // "stages[2].devices"
  std::string what;   // "device 5 is already used by stage 1"
  friend bool operator==(const Violation&, const Violation&) = default;
};

// Says everything that is wrong with a plan, independently of how it was found or what it costs.
// Shares no code with cost/ or search/, so that it can be used to test them. Memory is not a matter
// of structure and is judged by cost/. The problem is taken to be sound (its readers see to that).
//
// The rules, beyond what plan.h says of each field:
//   units    every unit of the model is in exactly one span, and the chunks follow each other in
//            the order of chunk_position().
//   chunks   one in each stage; interleaved: the same number, at least 2, at least two stages, and
//            stages divide micro_batches (Megatron-LM's rule); zb-v: 2.
//   batch    micro_batches divide global_batch, and `data` of a span divides the micro-batch unless
//            the stage has shares.
//   tensor   divides the heads of every attention and the cut side of every matrix product in the
//            span. Heads of keys and values may be fewer (they are repeated) and the vocabulary is
//            padded, so neither restricts it. A tensor group has devices of one type only: its
//            members wait for each other in every layer.
//   context  divides the sequence; with sequence_parallel, `tensor` divides what is left of it.
//   expert   divides data * context of every span and the experts of the model, which must have
//            some when it is above 1.
// Not violations: sequence_parallel without tensor parallelism (it does nothing), and sharding of
// gradients or parameters in a pipeline (costly with many micro-batches, which cost/ says).
std::vector<Violation> check_plan(const Problem& problem, const Plan& plan);

}  // namespace plait
