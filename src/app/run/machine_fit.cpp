#include "app/run/machine_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "app/request/request_error.h"
#include "cost/engine.h"
#include "io/cluster/catalogue.h"
#include "report/quantities.h"
#include "runtime/launch/restarts.h"

namespace plait {
namespace {

bool is_in_catalogue(const std::string& name) {
  const std::vector<DeviceEntry>& known = builtin_catalogue().devices;
  return std::ranges::any_of(known, [&](const DeviceEntry& d) { return d.type.name == name; });
}

std::set<std::string> types_of(const PlanFile& file) {
  std::set<std::string> names;
  const Cluster& cluster = file.problem.cluster;
  for (const Stage& stage : file.plan.stages)
    for (const DeviceId device : stage.devices)
      names.insert(cluster.device_types[cluster.devices[index(device)].type].name);
  return names;
}

// What a rank keeps in the memory of a CPU: there is no workspace of GPU libraries.
Bytes kept_by(const StageCost& stage) {
  return stage.weights + stage.gradients + stage.optimizer_state + stage.activations;
}

const StageCost& stage_of(const MachineFit& fit, const Estimate& cost, int rank) {
  const DeviceId device = runtime::devices_of_ranks(fit.file.plan)[static_cast<std::size_t>(rank)];
  for (std::size_t s = 0; s < fit.file.plan.stages.size(); ++s)
    if (std::ranges::find(fit.file.plan.stages[s].devices, device) !=
        fit.file.plan.stages[s].devices.end())
      return cost.stages[s];
  return cost.stages.front();
}

void check_host_memory(const MachineFit& fit, const Estimate& cost, Bytes free,
                       const std::string& path) {
  Bytes needed;
  for (const int rank : fit.ranks) needed += kept_by(stage_of(fit, cost, rank));
  if (needed <= free) return;
  throw InputError(
      path,
      fmt::format("{} on this machine would need {} of memory, as predicted, and {} are free: "
                  "train a smaller model or batch, or on more machines",
                  counted(static_cast<int>(fit.ranks.size()), "rank"), in_words(needed),
                  in_words(free)));
}

void check_gpu_memory(const MachineFit& fit, const Estimate& cost, const std::vector<Bytes>& gpus,
                      const std::string& path) {
  for (std::size_t i = 0; i < std::min(fit.ranks.size(), gpus.size()); ++i) {
    const StageCost& stage = stage_of(fit, cost, fit.ranks[i]);
    if (gpus[i] == Bytes(0) || stage.peak_memory() <= gpus[i]) continue;
    throw InputError(path,
                     fmt::format("rank {} would need {} of memory, as predicted, and its GPU "
                                 "has {}: plan for the devices of this machine",
                                 fit.ranks[i], in_words(stage.peak_memory()), in_words(gpus[i])));
  }
}

}  // namespace

bool is_for_gpus(const PlanFile& file) {
  return std::ranges::any_of(types_of(file), is_in_catalogue);
}

void check_machine(const MachineFit& fit, const runtime::LocalMachine& machine,
                   const std::string& plan_path) {
  if (fit.device == "cuda" && machine.gpus.empty())
    throw RequestError("device", "cuda needs a GPU, and this machine has none that can be used");
  if (fit.device == "auto" && machine.gpus.empty() && is_for_gpus(fit.file))
    throw RequestError("device",
                       fmt::format("the plan is for {}, and this machine has no GPU that can be "
                                   "used; `device` cpu trains it on CPUs, which takes far longer",
                                   fmt::join(types_of(fit.file), ", ")));
  const Estimate cost = CostEngine(fit.file.problem).simulate(fit.file.plan);
  const bool cpu = fit.device == "cpu" || machine.gpus.empty();
  if (!cpu) check_gpu_memory(fit, cost, machine.gpus, plan_path);
  if (cpu && machine.free_memory) check_host_memory(fit, cost, *machine.free_memory, plan_path);
}

}  // namespace plait
