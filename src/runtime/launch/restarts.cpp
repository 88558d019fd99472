#include "runtime/launch/restarts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "cost/engine.h"
#include "io/format/json_reader.h"
#include "plan/describe.h"
#include "search/clusters/replan.h"

namespace plait::runtime {
namespace {

constexpr int kCandidates = 100;  // of a search, of which the first that can be executed is taken

const Planner& usual_planner() {
  for (const Planner& planner : planners())
    if (planner.name == "auto") return planner;
  return planners().front();
}

// By rank of the new plan: the rank that its device had.
std::vector<int> old_ranks(const std::vector<DeviceId>& old_devices,
                           const std::vector<int>& device_before, const Plan& plan) {
  std::vector<int> out;
  for (const DeviceId device : devices_of_ranks(plan)) {
    const auto old = DeviceId(device_before[static_cast<std::size_t>(index(device))]);
    const auto found = std::find(old_devices.begin(), old_devices.end(), old);
    out.push_back(found == old_devices.end() ? -1 : static_cast<int>(found - old_devices.begin()));
  }
  return out;
}

}  // namespace

std::vector<DeviceId> devices_of_ranks(const Plan& plan) {
  std::vector<DeviceId> devices;
  for (const Stage& stage : plan.stages)
    devices.insert(devices.end(), stage.devices.begin(), stage.devices.end());
  std::sort(devices.begin(), devices.end());
  return devices;
}

Successor plan_without_ranks(const PlanFile& before, const std::vector<int>& lost,
                             const RestartOptions& restarts) {
  const std::vector<DeviceId> devices = devices_of_ranks(before.plan);
  ClusterChange change;
  change.lost.assign(before.problem.cluster.devices.size(), false);
  for (const int rank : lost)
    change.lost[static_cast<std::size_t>(index(devices[static_cast<std::size_t>(rank)]))] = true;
  ChangedCluster changed = changed_cluster(before.problem.cluster, change);
  PlanFile after{before.problem, {}};
  after.problem.cluster = std::move(changed.cluster);
  if (after.problem.cluster.devices.empty())
    throw InputError("restart", "no device is left to go on with");
  SearchContext context{after.problem, restarts.search, {}, {}, {}};
  context.options.keep = std::max(context.options.keep, kCandidates);
  std::string reason = "nothing fits on the devices that are left";
  // What the runtime cannot execute may be all that a free search keeps.
  for (const bool plain : {false, true}) {
    if (plain) {
      context.options.pins.schedule = Schedule::one_f_one_b;
      context.options.pins.zero = ZeroStage::off;
      context.options.pins.context = 1;
      context.options.pins.expert = 1;
    }
    const Replanned found =
        replan(usual_planner(), context, before.problem, before.plan, changed.before);
    std::vector<RankedPlan> plans = found.search.plans;
    if (found.plan) plans.insert(plans.begin(), *found.plan);
    for (const RankedPlan& ranked : plans) {
      const std::string fault = restarts.unsupported_reason
                                    ? restarts.unsupported_reason(after.problem, ranked.plan)
                                    : std::string();
      if (fault.empty()) {
        after.plan = ranked.plan;
        return {std::move(after), old_ranks(devices, changed.before, ranked.plan)};
      }
      reason = "no plan for the devices that are left can be executed: " + fault;
    }
  }
  throw InputError("restart", reason);
}

LaunchOutcome launch_with_restarts(
    LaunchOptions options, const std::string& plan_path, const RestartOptions& restarts,
    const std::function<std::vector<std::string>(const std::string& plan_path)>& command) {
  const auto tell = [&](const std::string& sentence) {
    if (restarts.tell) restarts.tell(sentence);
  };
  PlanFile file = read_plan_file(plan_path);
  std::string path = plan_path;
  for (int start = 0;; ++start) {
    options.ranks = static_cast<int>(devices_of_ranks(file.plan).size());
    options.command = command(path);
    LaunchOutcome outcome = launch(options);
    if (!outcome.failure) return outcome;
    const int status = outcome.failure->status;
    const bool hopeless = status == kWrongInputStatus || status == kDiverged;
    if (status != kDiverged) tell(in_words(*outcome.failure));  // rank 0 has told of it
    if (hopeless || start >= restarts.most) return outcome;
    if (restarts.device_lost) {
      Successor next = plan_without_ranks(file, {outcome.failure->rank}, restarts);
      file = std::move(next.file);
      path = (std::filesystem::path(restarts.folder) / fmt::format("restart-{}.json", start + 1))
                 .string();
      write_text_file(path, plan_file_to_json(file.problem, file.plan,
                                              CostEngine(file.problem).simulate(file.plan)));
      if (options.threads.size() > 1) {
        std::vector<int> threads;
        for (const int rank : next.old_rank)
          threads.push_back(rank < 0 ? 1 : options.threads[static_cast<std::size_t>(rank)]);
        options.threads = std::move(threads);
      }
      tell(fmt::format("goes on without it: {}", describe(file.plan)));
    }
    tell(fmt::format("restart {} of {}", start + 1, restarts.most));
  }
}

}  // namespace plait::runtime
