#pragma once

#include <optional>
#include <string>

#include "base/version.h"
#include "cost/estimate.h"
#include "io/format/json_reader.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// A plan as JSON on one line, and back; docs/files-plan.md describes it. Reading understands
// Megatron-LM's words (tensor_model_parallel_size ...) and leaves the rules of structure to
// check_plan(); it throws InputError for unknown keys, wrong types and numbers out of range.
std::string plan_to_json(const Plan& plan);
Plan plan_from_json(const JsonValue& json);

// What `plait plan -o` saves: a plan with everything that it was made from, so that no other file
// is needed to cost, explain, export or run it.
struct PlanFile {
  Problem problem;
  Plan plan;
  std::string made_by{};  // the program that wrote it, with its version; "" = the file does not say
};

// The text of such a file, laid out for people; `predicted` is a note to them and is not read back.
// `made_by` is left out where it is empty.
std::string plan_file_to_json(const Problem& problem, const Plan& plan,
                              const std::optional<Estimate>& predicted,
                              const std::string& made_by = program_version());

// The file as it stands, whether or not its plan is sound: for `plait check`.
PlanFile plan_file_from_json(const JsonValue& root);

// The file with a plan that passes check_plan(); otherwise InputError at the first violation:
// "plan.json#/plan/stages/2/devices: device 5 is already used by stage 1".
PlanFile read_plan_file(const std::string& path);

}  // namespace plait
