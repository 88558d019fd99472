#pragma once

#include <array>
#include <string>
#include <vector>

#include "cost/estimate.h"
#include "io/plan/plan_json.h"
#include "report/table.h"

namespace plait {

// Put two saved plans side by side: what differs, and where the time goes.
struct DiffRequest {
  std::array<std::string, 2> names;  // what the answer calls the plans: their files
  std::array<PlanFile, 2> files;     // with valid plans
};

// One thing that plans are compared by, and what each has.
struct DiffRow {
  std::string what;
  std::array<std::string, 2> values;
  bool differs() const { return values[0] != values[1]; }
};

struct DiffAnswer {
  std::array<std::string, 2> names;
  std::array<PlanFile, 2> files;
  std::array<Estimate, 2> costs;
  std::vector<std::string> other_problem;  // parts of the problem that differ: "the cluster"
  std::vector<DiffRow> dimensions;         // in the order of Plan's fields

  // Whether a step of both trains equally many tokens.
  bool same_work() const;
  // Of the second's time for a token against the first's: 0.1 is ten per cent slower.
  double change() const;
};

DiffAnswer answer(const DiffRequest& request);
std::string to_json(const DiffAnswer& answer);
std::string as_text(const DiffAnswer& answer, const Style& style);

}  // namespace plait
