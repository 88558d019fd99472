#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

struct ExportedFile {
  std::string name;  // in its folder
  std::string text;
  bool executable = false;
  friend bool operator==(const ExportedFile&, const ExportedFile&) = default;
};

// What starts the processes of all nodes.
enum class Launcher {
  torchrun,  // by hand: the script of a node, on each of them
  slurm,     // sbatch; a heterogeneous job where nodes differ
  mpirun,
  ssh,
};
const std::vector<std::string_view>& launcher_names();
std::optional<Launcher> launcher_named(std::string_view name);

// A node in the order of ranks.
struct LaunchNode {
  std::string name;
  std::string device_type;
  std::vector<int> devices;  // numbers in the node, in the order of ranks
  int of = 0;                // devices of the node, used or not
  int zone = 0;
  bool among_others = false;  // the cluster has nodes of other device types, too
  friend bool operator==(const LaunchNode&, const LaunchNode&) = default;
};
// Of a plan whose ranks go through a node before they go on to the next (Target::ranks_in_order).
std::vector<LaunchNode> launch_nodes(const Problem& problem, const Plan& plan);

// The part of a node's script that the program decides.
struct RunScript {
  std::string about;  // a line of comment
  // Shell lines: what users change by variables (NAME=${NAME:-..}), arrays of flags, environment.
  std::string settings;
  // What starts the processes of a node. The variables HERE (this folder), NNODES, NODE_RANK,
  // NPROC, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set.
  std::string command;
};

// "torchrun --nnodes ..": the words of torchrun for this node.
extern const char* const kTorchrun;

// run.sh and, beside it, what starts it on every node. InputError where a host has a name that the
// files of the launcher cannot hold.
std::vector<ExportedFile> launch_files(Launcher launcher, const std::string& model,
                                       const std::vector<LaunchNode>& nodes,
                                       const RunScript& script);

// What the user types to start it, in the folder of the files.
std::string start_command(Launcher launcher, const std::vector<LaunchNode>& nodes);

}  // namespace plait
