#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/request/batch_tokens.h"
#include "app/request/memory_rule.h"
#include "app/request/objective.h"
#include "app/request/prices.h"
#include "io/model/megatron_launch.h"
#include "io/plan/metis_arguments.h"
#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

enum class Granularity { layer, op };

// Where a problem comes from: names and paths, as the user wrote them.
struct ProblemSource {
  std::string model;  // a zoo name, a config.json, a plait model file, Megatron-LM's flags
  std::optional<int> sequence;
  std::optional<int> layers;  // of Aceso's models, instead of their own number
  Granularity granularity = Granularity::layer;
  std::string cluster;  // a shorthand, a cluster file, a hostfile
  std::string clusterfile;
  std::string device;
  std::string profile;
  std::vector<std::string> catalogue;
  std::string framework;  // of the catalogue; "" = its first
  // What a launch script of Megatron-LM says about the layout is left open.
  bool free_layout = false;
  bool configured = false;  // the layout is somebody's configuration, which is read elsewhere
  std::string runs_on;      // a row of plan/target.h; "" = that of the framework
  Job job;
  // Where nothing is said, what all devices have: bf16 and flash attention, or fp16 and plain.
  std::optional<Precision> precision;
  std::optional<AttentionKernel> attention;
  std::optional<BatchTokens> batch_tokens;  // instead of job.global_batch
  MemoryRule memory;
  int frozen_layers = 0;  // the first ones, which are not trained
  std::vector<StatedPrice> prices;
  std::optional<MetisArguments> metis;  // defaults taken from a command line of Metis' program
};

// Sets what a command line of Metis' program says; what the request says later wins over it.
void take_defaults(ProblemSource& source, SearchOptions& options, const MetisArguments& metis);

struct LoadedProblem {
  Problem problem;
  std::optional<MegatronLaunch> launch;  // of the model's file, where it is to be taken
  Target target;                         // the program that must be able to run the plans
  // Where precision or attention were chosen for the oldest devices: the job of the newer ones.
  std::optional<Job> newer_job;
  // Flags by which the program overlaps communication with compute and a launch script does not
  // have; the job's framework is without. `with_switches` is the framework as it is with them.
  std::vector<std::string> switches;
  Framework with_switches;
  std::vector<std::string> warnings;
};

// Reads the model, the cluster and the profile, and says what they do not go well with.
LoadedProblem load_problem(const ProblemSource& source);

// What every use case that searches is asked.
struct SearchRequest {
  ProblemSource source;
  std::string planner = "auto";
  SearchOptions search;
  std::optional<int> layers_per_chunk;  // Megatron's way to say Pins::chunks
  // Stages of equally many layers, or one more: yes, no, or, where nothing is said, when their
  // number is pinned and the program has one layout for all of them.
  std::optional<bool> even_stages;
  // The nodes are in several networks, and no plan has devices of two (pareto).
  bool apart = false;
  Objective objective;
  std::string
      initial_point;  // where the planner aceso starts: a configuration of Aceso; "" = balance
};

// The planner of this name; RequestError when there is none.
const Planner& planner_named(const std::string& name);
std::vector<std::string_view> planner_names();

// Threads of a search when nothing is said: one for each core.
int usual_threads();

// The pins of the request in the model's own units. `stages` may count units, or layers only: then
// the embedding belongs to the first stage and the head to the last. RequestError for Megatron's
// chunks that do not come out even; the other rules of pins are those of search/space/pins.h.
struct ResolvedPins {
  Pins pins;
  std::string note;  // a sentence to show when layers were counted
};
ResolvedPins resolve_pins(const SearchRequest& request, const Model& model);

// RequestError when devices of the cluster cannot be in one training of the target: NVIDIA's and
// AMD's have no collectives in common.
void refuse_several_collectives(const Cluster& cluster, const Target& target, const char* field);

// The problem, with the request's pins resolved and found to be possible (RequestError otherwise).
struct LoadedSearch {
  Problem problem;
  SearchOptions options;
  std::vector<std::string> warnings;
  std::optional<Job> newer_job;  // LoadedProblem
  // The request's own pins, where those of a launch script are added to them.
  std::optional<Pins> own_pins;
  std::vector<std::string> switches{};  // LoadedProblem
  Framework with_switches{};
};
LoadedSearch load_search(const SearchRequest& request);

}  // namespace plait
