#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/money.h"
#include "io/plan/metis_arguments.h"
#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// Everything that `plait plan` is told.
struct PlanArguments {
  std::optional<MetisArguments> metis;  // a run of Metis' to take what is not said from
  std::string model;
  std::optional<int> sequence;
  std::string granularity = "layer";
  std::string cluster;
  std::string clusterfile;
  std::string device;
  std::string profile;
  std::vector<std::string> catalogue;
  Job job;

  std::string planner = "auto";
  SearchOptions search;
  Wishes wishes;
  std::optional<int> layers_per_chunk;  // Megatron's way to say Pins::chunks
  bool json = false;
  bool explain_search = false;  // print what each pass of the search took and gave
  std::string output;
};

// The planner of this name; InputError when there is none.
const Planner& named_planner(const std::string& name);

// Threads of a search when nothing is said: one for each core.
int usual_threads();

std::vector<FlagGroup> plan_flags(PlanArguments& arguments);

// InputError when no file can be written there. Called before a search, so that its result is not
// lost for a slip of the pen.
void check_output(const std::string& path);

struct LoadedProblem {
  Problem problem;
  std::vector<std::string> warnings;
};

// Reads the model and the cluster, and says what they do not go well with.
LoadedProblem load_problem(const PlanArguments& arguments);

// Completes the pins, now that the model is known. `--stages` may count units, or layers only: then
// the embedding belongs to the first stage and the head to the last. InputError for sums that are
// neither. Gives a sentence to show when layers were meant.
std::string resolve_pins(PlanArguments& arguments, const Model& model);

}  // namespace plait
