#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/clusters/pareto.h"
#include "app/clusters/replan.h"
#include "cli/flags/command.h"
#include "cli/flags/plan_arguments.h"

namespace plait {

// Setters for what can be rented and for what became of a cluster. Several entries are separated by
// commas.
Setter into_offers(std::vector<Offer>& into);       // "p4d.24xlarge:0-8,g5.24xlarge@east:4:spot"
Setter into_words(std::vector<std::string>& into);  // "node3,node7"
Setter into_devices(std::vector<std::pair<int, int>>& into);  // "5,8-15" as first and last
Setter into_slow(std::vector<SlowNode>& into);                // "node2=0.5"

// --instances and --spot: what can be rented.
FlagGroup offer_flags(std::vector<Offer>& instances, bool& spot);
// The flags of `plait plan` that `plait pareto` takes: all but those of the cluster, which is to be
// found.
std::vector<FlagGroup> pareto_plan_flags(PlanArguments& arguments);

// --lost, --slow, --add ..: what became of a cluster.
FlagGroup change_flags(ReplanRequest& request);
// The flags of `plait plan` that `plait replan` takes, and their values as its request has them.
std::vector<FlagGroup> replan_plan_flags(PlanArguments& arguments);
void take_plan_arguments(const PlanArguments& arguments, ReplanRequest& request);

}  // namespace plait
