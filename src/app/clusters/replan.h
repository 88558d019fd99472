#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/plan/advice.h"
#include "app/request/memory_rule.h"
#include "app/request/session.h"
#include "io/plan/plan_json.h"
#include "report/table.h"
#include "search/clusters/replan.h"

namespace plait {

struct SlowNode {
  std::string node;
  double speed = 1;  // of what it was
  friend bool operator==(const SlowNode&, const SlowNode&) = default;
};

// Find the new best plan when devices were lost, added or slowed down.
struct ReplanRequest {
  PlanFile before;
  std::vector<std::string> lost;                  // names of nodes
  std::vector<std::pair<int, int>> lost_devices;  // first and last id
  std::vector<SlowNode> slow;
  std::vector<std::string> add;        // nodes in the cluster shorthand
  std::vector<std::string> catalogue;  // files that name what is added
  // Processes start, find each other and compile kernels: what passes before the first step even if
  // no state has to move. Large jobs report half a minute to a few minutes.
  Seconds restart = Seconds(60);
  std::string planner = "auto";
  SearchOptions search;
  MemoryRule memory{};
};

struct ReplanAnswer {
  PlanFile before;
  Estimate old_cost;
  Problem after;
  std::vector<int> device_before;  // by device: its id in the old cluster; -1 = new
  int left_out = 0;  // devices that are there, but not in `after`: nodes with fewer are faster
  Replanned result;
  std::optional<NoPlan> no_plan;
  Seconds restart;
  Seconds elapsed;
  bool interrupted = false;

  bool found() const { return result.plan.has_value(); }
  Seconds pause() const { return restart + result.migration.transfer; }
};

// RequestError when nothing has changed. answer() calls it, too.
void check_change(const ReplanRequest& request);

ReplanAnswer answer(const ReplanRequest& request, const Session& session);

// Why there is no plan; "" when there is one.
std::string reason(const ReplanAnswer& answer);

std::string to_json(const ReplanAnswer& answer);
std::string as_text(const ReplanAnswer& answer, const Style& style);
std::string plan_file(const ReplanAnswer& answer);

}  // namespace plait
