#include "export/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "export/shell_words.h"
#include "plan/names.h"

namespace plait {

// One function for each launcher, in launch_scripts.cpp.
std::string slurm_job(const std::string& model, const std::vector<LaunchNode>& nodes);
std::string mpirun_script(const std::vector<LaunchNode>& nodes, const RunScript& script);
std::string ssh_script(const std::vector<LaunchNode>& nodes, const RunScript& script);

const char* const kTorchrun =
    "torchrun --nnodes \"$NNODES\" --nproc-per-node \"$NPROC\" --node-rank \"$NODE_RANK\" \\\n"
    "  --master-addr \"$MASTER_ADDR\" --master-port \"$MASTER_PORT\"";

namespace {

bool is_first_ones(const std::vector<int>& devices) {
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i] != static_cast<int>(i)) return false;
  return true;
}

// Which node this is, where its peers are, and which devices it uses.
std::string about_nodes(const std::vector<LaunchNode>& nodes) {
  std::vector<std::string> names;
  std::vector<std::string> counts;
  std::vector<std::string> visible;
  bool usual = true;
  for (const LaunchNode& node : nodes) {
    names.push_back(shell_word(node.name));
    counts.push_back(std::to_string(node.devices.size()));
    visible.push_back(array_word(fmt::format("{}", fmt::join(node.devices, ","))));
    usual = usual && is_first_ones(node.devices);
  }
  if (nodes.size() == 1) names = {"localhost"};
  std::string out = fmt::format(
      "# The nodes in the order of their ranks, by the names of the plan's cluster, and how many "
      "processes\n"
      "# each has. Processes meet at the first one, or at MASTER_ADDR.\n"
      "NODES=({})\nPROCESSES=({})\n"
      "NODE_RANK=${{NODE_RANK:-${{SLURM_PROCID:-${{OMPI_COMM_WORLD_RANK:-0}}}}}}\n"
      "MASTER_ADDR=${{MASTER_ADDR:-${{NODES[0]}}}}\n"
      "MASTER_PORT=${{MASTER_PORT:-29500}}\n"
      "NNODES=${{#PROCESSES[@]}}\n"
      "if ((NODE_RANK < 0 || NODE_RANK >= NNODES)); then\n"
      "  echo \"run.sh: NODE_RANK is $NODE_RANK, there are $NNODES nodes\" >&2\n"
      "  exit 2\n"
      "fi\n",
      fmt::join(names, " "), fmt::join(counts, " "));
  if (!usual)
    out += fmt::format(
        "# Numbers of each node's devices, in the order of ranks.\n"
        "DEVICES=({})\nexport CUDA_VISIBLE_DEVICES=${{DEVICES[NODE_RANK]}}\n",
        fmt::join(visible, " "));
  return out;
}

std::string run_script(const std::vector<LaunchNode>& nodes, const RunScript& script) {
  const std::string program = script.settings + script.command;
  const auto uses = [&](const char* variable) { return program.find(variable) != program.npos; };
  std::string out = "#!/usr/bin/env bash\n" + shell_comment(script.about) +
                    "# Starts the processes of one node: that of NODE_RANK.\n"
                    "set -euo pipefail\n";
  if (uses("$HERE")) out += "HERE=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" && pwd)\n";
  out += "\n" + about_nodes(nodes);
  if (uses("$NPROC")) out += "NPROC=${PROCESSES[NODE_RANK]}\n";
  if (uses("$WORLD_SIZE")) {
    std::size_t world = 0;
    for (const LaunchNode& node : nodes) world += node.devices.size();
    out += fmt::format("WORLD_SIZE={}\n", world);
  }
  return out + "\n" + script.settings + "\nexec " + script.command + "\n";
}

// Lines of "host slots=8"; a name with a blank would be two words of it.
std::string hostfile(const std::vector<LaunchNode>& nodes, bool one_slot) {
  std::string out;
  for (const LaunchNode& node : nodes) {
    const bool holds = !node.name.empty() && std::ranges::all_of(node.name, [](char c) {
      return static_cast<unsigned char>(c) > ' ' && c != '#' && c != 0x7f;
    });
    if (!holds)
      throw InputError("node " + printable(node.name),
                       "is not a name that a hostfile can have: it is one word without blanks; "
                       "the launchers torchrun and slurm write none");
    out += fmt::format("{} slots={}\n", node.name, one_slot ? 1 : node.devices.size());
  }
  return out;
}

}  // namespace

const std::vector<std::string_view>& launcher_names() {
  static const std::vector<std::string_view> kNames{"torchrun", "slurm", "mpirun", "ssh"};
  return kNames;
}

std::optional<Launcher> launcher_named(std::string_view name) {
  const auto at = std::ranges::find(launcher_names(), name);
  if (at == launcher_names().end()) return std::nullopt;
  return static_cast<Launcher>(at - launcher_names().begin());
}

std::vector<LaunchNode> launch_nodes(const Problem& problem, const Plan& plan) {
  const Cluster& cluster = problem.cluster;
  std::vector<int> first(cluster.nodes.size(), -1);  // device of each node
  std::vector<int> count(cluster.nodes.size());
  for (int id = 0; id < cluster.device_count(); ++id) {
    const int node = cluster.devices[id].node;
    if (count[node]++ == 0) first[node] = id;
  }
  std::vector<LaunchNode> nodes;
  int last = -1;
  for (const Stage& stage : plan.stages)
    for (const DeviceId id : stage.devices) {
      const int node = cluster.device(id).node;
      if (node != last)
        nodes.push_back({cluster.nodes[node].name,
                         cluster.type_of(id).name,
                         {},
                         count[node],
                         cluster.nodes[node].zone,
                         cluster.device_types.size() > 1});
      last = node;
      nodes.back().devices.push_back(index(id) - first[node]);
    }
  return nodes;
}

std::vector<ExportedFile> launch_files(Launcher launcher, const std::string& model,
                                       const std::vector<LaunchNode>& nodes,
                                       const RunScript& script) {
  std::vector<ExportedFile> files{{"run.sh", run_script(nodes, script), true}};
  switch (launcher) {
    case Launcher::torchrun:
      break;
    case Launcher::slurm:
      files.push_back({"job.sbatch", slurm_job(model, nodes), true});
      break;
    case Launcher::mpirun:
      files.push_back({"hostfile", hostfile(nodes, true)});
      files.push_back({"mpirun.sh", mpirun_script(nodes, script), true});
      break;
    case Launcher::ssh:
      files.push_back({"hostfile", hostfile(nodes, false)});
      files.push_back({"launch.sh", ssh_script(nodes, script), true});
      break;
  }
  return files;
}

std::string start_command(Launcher launcher, const std::vector<LaunchNode>& nodes) {
  switch (launcher) {
    case Launcher::slurm:
      return "sbatch job.sbatch";
    case Launcher::mpirun:
      return "./mpirun.sh, on the hosts of hostfile";
    case Launcher::ssh:
      return "./launch.sh, on the hosts of hostfile";
    case Launcher::torchrun:
      break;
  }
  if (nodes.size() == 1) return "./run.sh";
  return fmt::format(
      "MASTER_ADDR={} NODE_RANK=0 ./run.sh on that host, and so on up to {} on the others",
      printable(shell_word(nodes.front().name)), nodes.size() - 1);
}

}  // namespace plait
