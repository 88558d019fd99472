#pragma once

#include "cli/command.h"

namespace plait {

// One function a verb, each in the file of its name; verbs.cpp puts them in the table.
Command plan_command();
Command compare_command();
Command estimate_command();
Command pareto_command();
Command replan_command();
Command explain_command();
Command check_command();
Command import_command();
Command profile_command();
Command validate_command();
Command train_command();
Command trial_command();
Command tokenize_command();
Command graph_solve_command();
Command models_command();
Command model_command();
Command devices_command();
Command instances_command();
Command completion_command();
Command version_command();
Command help_command();

}  // namespace plait
