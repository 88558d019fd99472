#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// What a published memory figure counts.
enum class MemoryMeaning {
  allocated,  // tensors, as PyTorch's max_memory_allocated
  reserved,   // what PyTorch's allocator has taken for them, which TorchTitan prints
  device,     // all that the device has given away, to driver and NCCL too: nvidia-smi
};

// A training run that somebody measured: what was run and what came out. Readers of published
// tables make them (validation/published_runs.h), validation/validation.h compares them with
// predictions.
struct MeasuredRun {
  std::string id;      // of the row in its table
  std::string source;  // whose table
  std::string grade;   // A complete and consistent, B something assumed, C suspect; "" unknown
  std::string device;  // the catalogue's name, or the table's own words when refused
  std::string job;     // equal for runs of one job, which differ in their plans

  // Runs of one problem share it. nullptr where `refusal` says why the row cannot be predicted.
  std::shared_ptr<const Problem> problem;
  Plan plan;
  std::string refusal;
  std::vector<std::string> assumptions;  // what the row leaves open and how it was taken

  std::optional<Seconds> step;
  std::optional<Bytes> memory;  // of the fullest device
  MemoryMeaning memory_meaning = MemoryMeaning::allocated;
  std::optional<Seconds> others_step;  // what another predictor says of it
  std::string other;                   // which one
  bool failed = false;                 // did not run; out of memory as far as the table says
  bool says_what_is_kept = true;       // states recompute, without which memory cannot be judged
};

}  // namespace plait
