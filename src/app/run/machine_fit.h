#pragma once

#include <string>
#include <vector>

#include "io/plan/plan_json.h"
#include "runtime/launch/local_machine.h"

namespace plait {

// Refuses to train where it cannot go well: ranks of a plan on this machine.
struct MachineFit {
  const PlanFile& file;
  std::vector<int> ranks;  // of the plan, that run on this machine
  std::string device;      // as TrainRequest::device
};

// Whether the plan was made for GPUs: a device type that it uses is one of the catalogue's. Of
// types that a user's own file names nothing is known.
bool is_for_gpus(const PlanFile& file);

// RequestError naming `device` when the plan is for GPUs, the machine has none, and the CPU was not
// asked for; InputError with both numbers when the ranks' predicted memory is more than the machine
// has: on CPUs states and activations of all ranks against the free memory, on GPUs all that is
// predicted for each rank against the memory of its GPU.
void check_machine(const MachineFit& fit, const runtime::LocalMachine& machine,
                   const std::string& plan_path);

}  // namespace plait
