#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait::runtime {

// What a launch command can be told of a plan, by name: {tp} in the command, PLAIT_TP in its
// environment. docs/trial.md lists them. What differs between stages is a list by stage: "4,2".
using PlanFields = std::vector<std::pair<std::string, std::string>>;
PlanFields plan_fields(const Problem& problem, const Plan& plan, const std::string& plan_path);

// The command with {names} replaced by their values, each as one word of the shell, whatever is in
// it. "${NAME}" stays, as the shell's; "{{" and "}}" are braces. InputError, naming `launch`, for a
// name that is not a field, and for a value that is not a plain word (a model called "x;y") where
// the shell would read it a second time: inside quotes, substitutions, here-documents, comments.
std::string with_fields(const std::string& command, const PlanFields& fields);

// The command that trains with a plan on this machine by plait's own runtime; `more` are words that
// the user adds.
std::string train_command(const std::string& program, int steps, const std::string& more);

// tp -> PLAIT_TP
std::string variable_of(const std::string& field);

}  // namespace plait::runtime
