#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/request/session.h"
#include "export/exporter.h"
#include "io/plan/plan_json.h"
#include "report/table.h"

namespace plait {

// Write what another program needs to train by a saved plan.
struct ExportRequest {
  std::string name;  // what the answer calls the plan: its file
  PlanFile file;     // with a valid plan
  std::string to;    // a row of export/exporter.h
  Launcher launcher = Launcher::torchrun;
  // Where the program does not run the plan: write the best one that it runs.
  bool nearest = false;
  int threads = 1;
  Seconds time_limit = Seconds(60);
  std::string folder{};  // where the files are written; "" = they are in the answer alone
  bool force = false;  // the folder may have something in it: files of the same names are replaced
};

// The best plan that the program runs, where it does not run the one that was asked for.
struct NearestPlan {
  RankedPlan plan;
  double more = 0;  // time relative to the plan that was asked for, less one
};

struct ExportAnswer {
  std::string name;
  std::string to;
  PlanFile file;        // with the plan that is written
  Seconds step;         // predicted, of the plan that was asked for
  std::string refusal;  // why the program does not run that one; "" = it does
  std::optional<NearestPlan> nearest;
  std::string no_nearest;           // why there is none, where the plan is refused
  std::vector<ExportedFile> files;  // empty = nothing is written
  std::vector<std::string> losses;  // what the files do not say, a sentence each
  std::string start;                // what the user types in the folder of the files

  bool written() const { return !files.empty(); }
};

// RequestError where there is no such program; InputError where a name or a file cannot be written.
ExportAnswer answer(const ExportRequest& request, const Session& session);

// Why nothing is written; "" when something is.
std::string reason(const ExportAnswer& answer);

std::string to_json(const ExportAnswer& answer);
// `folder` is where the files are; "" = nowhere yet.
std::string as_text(const ExportAnswer& answer, const std::string& folder);

}  // namespace plait
