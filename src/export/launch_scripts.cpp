// What starts run.sh on every node: the scripts of Slurm, Open MPI and ssh.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "export/launch.h"
#include "export/shell_words.h"

namespace plait {
namespace {

// Words of #SBATCH lines cannot be quoted: what is not a letter or a digit becomes a dash.
std::string plain_name(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool kept = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '.' || c == '_';
    if (kept || (!out.empty() && out.back() != '-')) out += kept ? c : '-';
  }
  while (out.ends_with('-')) out.pop_back();
  return out.empty() ? "plait" : out.substr(0, 60);
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Consecutive nodes that are alike: one component of a job.
struct Component {
  const LaunchNode* node;
  int nodes = 0;
};

std::vector<Component> components_of(const std::vector<LaunchNode>& nodes) {
  std::vector<Component> out;
  for (const LaunchNode& node : nodes) {
    const auto same = [&](const LaunchNode& other) {
      return other.device_type == node.device_type && other.of == node.of &&
             other.zone == node.zone && other.devices.size() == node.devices.size();
    };
    if (out.empty() || !same(*out.back().node)) out.push_back({&node, 0});
    ++out.back().nodes;
  }
  return out;
}

// Names of variables that a user may set for run.sh: those of its lines NAME=${NAME..}.
std::string variables_of(const RunScript& script) {
  std::string out;
  std::size_t at = 0;
  while (at < script.settings.size()) {
    const std::size_t end = std::min(script.settings.find('\n', at), script.settings.size());
    const std::string line = script.settings.substr(at, end - at);
    const std::string name = line.substr(0, line.find('='));
    if (line.starts_with(name + "=${" + name)) out += name + " ";
    at = end + 1;
  }
  return out;
}

// HOSTS, MASTER_ADDR and MASTER_PORT from the hostfile, which the user may have changed, and the
// names of all variables that the nodes need.
std::string hosts_and_variables(std::string_view script_name, std::size_t nodes,
                                const RunScript& script) {
  return fmt::format(
      "set -euo pipefail\n"
      "HERE=$(cd -- \"$(dirname -- \"${{BASH_SOURCE[0]}}\")\" && pwd)\n"
      "mapfile -t HOSTS < <(awk '!/^[[:space:]]*(#|$)/ {{ print $1 }}' \"$HERE/hostfile\")\n"
      "if ((${{#HOSTS[@]}} != {0})); then\n"
      "  echo \"{1}: hostfile has ${{#HOSTS[@]}} hosts, the plan has {0}\" >&2\n"
      "  exit 2\n"
      "fi\n"
      "MASTER_ADDR=${{MASTER_ADDR:-${{HOSTS[0]}}}}\n"
      "MASTER_PORT=${{MASTER_PORT:-29500}}\n"
      "export MASTER_ADDR MASTER_PORT\n"
      "VARIABLES=(MASTER_ADDR MASTER_PORT {2}PATH LD_LIBRARY_PATH PYTHONPATH \"${{!NCCL_@}}\")\n",
      nodes, script_name, variables_of(script));
}

}  // namespace

std::string slurm_job(const std::string& model, const std::vector<LaunchNode>& nodes) {
  const std::vector<Component> components = components_of(nodes);
  const bool mixed = components.size() > 1;
  const bool typed = mixed || nodes.front().among_others;
  std::string out = fmt::format("#!/usr/bin/env bash\n#SBATCH --job-name={}\n", plain_name(model));
  for (std::size_t i = 0; i < components.size(); ++i) {
    const auto& [node, count] = components[i];
    if (i > 0) out += "#SBATCH hetjob\n";
    out += fmt::format("#SBATCH --nodes={} --ntasks-per-node=1 --gpus-per-node={}{} --exclusive\n",
                       count, typed ? lower(plain_name(node->device_type)) + ":" : "", node->of);
  }
  out +=
      "# Submit it in its own folder, which all nodes see; words after its name are run.sh's. "
      "Account, partition\n"
      "# and time are the user's to add. The output is in slurm-*.out.\n";
  out +=
      typed ? "# The types of --gpus-per-node are those of the site's gres.conf, whose names may "
              "differ.\n"
            : fmt::format(
                  "# Any nodes with {} GPUs will do; where the site has several types, "
                  "name the plan's, as its\n"
                  "# gres.conf calls it: --gpus-per-node={}:{}.\n",
                  nodes.front().of, lower(plain_name(nodes.front().device_type)), nodes.front().of);
  out +=
      "set -euo pipefail\n"
      "cd -- \"${SLURM_SUBMIT_DIR:-.}\"\n";
  out += fmt::format(
      "hosts=$(scontrol show hostnames \"{}\")\n"
      "MASTER_ADDR=${{MASTER_ADDR:-${{hosts%%$'\\n'*}}}}\n"
      "export MASTER_ADDR\n",
      mixed ? "${SLURM_JOB_NODELIST_HET_GROUP_0}" : "${SLURM_JOB_NODELIST}");
  std::string groups;
  if (mixed) groups = fmt::format("--het-group=0-{} ", components.size() - 1);
  // One task starts the processes of its node: it has all cores.
  return out + fmt::format("srun {}--kill-on-bad-exit=1 --cpu-bind=none ./run.sh \"$@\"\n", groups);
}

std::string mpirun_script(const std::vector<LaunchNode>& nodes, const RunScript& script) {
  return "#!/usr/bin/env bash\n"
         "# Open MPI starts run.sh once on each node of the hostfile, in its order, with these "
         "variables and\n"
         "# words; all nodes see this folder under the same path.\n" +
         hosts_and_variables("mpirun.sh", nodes.size(), script) +
         fmt::format(
             "passed=()\n"
             "for name in \"${{VARIABLES[@]}}\"; do\n"
             "  [[ -z ${{!name+set}} ]] || passed+=(-x \"$name\")\n"
             "done\n"
             "exec mpirun --hostfile \"$HERE/hostfile\" -np {} --map-by ppr:1:node --bind-to none "
             "\\\n"
             "  \"${{passed[@]}}\" \"$HERE/run.sh\" \"$@\"\n",
             nodes.size());
}

std::string ssh_script(const std::vector<LaunchNode>& nodes, const RunScript& script) {
  return "#!/usr/bin/env bash\n"
         "# Starts run.sh on each node of the hostfile, in its order, by ssh, in the folder of the "
         "caller\n"
         "# and with these variables and words; all nodes see the folders under the same paths. "
         "Ends when\n"
         "# all have ended. Where one fails, or at Ctrl-C, the others are stopped.\n" +
         hosts_and_variables("launch.sh", nodes.size(), script) +
         "words=()\n"
         "add() { words+=(\"'${1//\\'/\\'\\\\\\'\\'}'\"); }  # as any shell reads it back\n"
         "for name in \"${VARIABLES[@]}\"; do\n"
         "  [[ -z ${!name+set} ]] || add \"$name=${!name}\"\n"
         "done\n"
         "add \"$HERE/run.sh\"\n"
         "for word in \"$@\"; do add \"$word\"; done\n"
         "running=()\n"
         "trap 'kill \"${running[@]}\" 2>/dev/null || true' EXIT\n"
         "for rank in \"${!HOSTS[@]}\"; do\n"
         "  ssh -tt -- \"${HOSTS[rank]}\" \"cd '${PWD//\\'/\\'\\\\\\'\\'}' && env "
         "NODE_RANK=$rank ${words[*]}\" </dev/null &\n"
         "  running+=(\"$!\")\n"
         "done\n"
         "while ((${#running[@]} > 0)); do\n"
         "  sleep 0.2\n"
         "  left=()\n"
         "  for process in \"${running[@]}\"; do\n"
         "    if kill -0 \"$process\" 2>/dev/null; then left+=(\"$process\"); else wait "
         "\"$process\"; fi\n"
         "  done\n"
         "  running=(${left[@]+\"${left[@]}\"})\n"
         "done\n";
}

}  // namespace plait
