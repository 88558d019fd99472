#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/request/configured.h"
#include "app/request/session.h"
#include "cost/estimate.h"
#include "io/plan/plan_json.h"
#include "profile/profile.h"

namespace plait {

// Turn what another system measured, or a plan that it found, into plait's files.
struct ImportRequest {
  std::string path;
  std::string from;   // import_forms(); "" = the files' names tell
  std::string model;  // that was measured
  std::optional<int> sequence;
  std::string database;  // aceso-plan: the directory with Aceso's tables of ops
  std::string cluster;   // aceso-plan, megatron, deepspeed: what the plan is for
  std::string device;    // megatron, deepspeed: of all hosts, where the cluster is a hostfile
  // megatron, deepspeed: what else is said of the configuration; the fields above win over it
  ConfiguredRequest configured;
};
std::vector<std::string> import_forms();

// A plan of a file that holds together, as it is predicted.
struct ImportedPlan {
  PlanFile file;
  Estimate cost;
};

// One of the two is there.
struct ImportAnswer {
  std::optional<Profile> profile;
  std::optional<ImportedPlan> plan;
  std::vector<std::string> warnings;
};

ImportAnswer answer(const ImportRequest& request, const Session& session);

// The text of a profile file or a plan file.
std::string to_json(const ImportAnswer& answer);
// "27 points of compute of embedding, layer on T4, 12 curves of collectives"
std::string in_words(const ImportAnswer& answer);

}  // namespace plait
