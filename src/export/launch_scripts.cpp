// What starts run.sh on every node: the scripts of Slurm, Open MPI and ssh.
#include <fmt/format.h>

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

}  // namespace

std::string slurm_job(const std::string& model, const std::vector<LaunchNode>& nodes) {
  const std::vector<Component> components = components_of(nodes);
  const bool mixed = components.size() > 1;
  std::string out = fmt::format("#!/usr/bin/env bash\n#SBATCH --job-name={}\n", plain_name(model));
  for (std::size_t i = 0; i < components.size(); ++i) {
    const auto& [node, count] = components[i];
    if (i > 0) out += "#SBATCH hetjob\n";
    out += fmt::format("#SBATCH --nodes={} --ntasks-per-node=1 --gpus-per-node={}{} --exclusive\n",
                       count, mixed ? lower(plain_name(node->device_type)) + ":" : "", node->of);
  }
  out +=
      "# Submit it in its own folder, which all nodes see. The types of --gpus-per-node are those "
      "of the\n"
      "# site's gres.conf, whose names may differ; account, partition and time are the user's to "
      "add.\n"
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
  return out + fmt::format("srun {}--kill-on-bad-exit=1 --cpu-bind=none ./run.sh\n", groups);
}

std::string mpirun_script(const std::vector<LaunchNode>& nodes) {
  return fmt::format(
      "#!/usr/bin/env bash\n"
      "# Open MPI starts run.sh once on each node of the hostfile, in its order; all nodes see "
      "this\n"
      "# folder under the same path.\n"
      "set -euo pipefail\n"
      "HERE=$(cd -- \"$(dirname -- \"${{BASH_SOURCE[0]}}\")\" && pwd)\n"
      "MASTER_ADDR=${{MASTER_ADDR:-{}}}\n"
      "MASTER_PORT=${{MASTER_PORT:-29500}}\n"
      "export MASTER_ADDR MASTER_PORT\n"
      "exec mpirun --hostfile \"$HERE/hostfile\" -np {} --map-by ppr:1:node --bind-to none \\\n"
      "  -x MASTER_ADDR -x MASTER_PORT \"$HERE/run.sh\"\n",
      shell_word(nodes.front().name), nodes.size());
}

std::string ssh_script(const std::vector<LaunchNode>& nodes) {
  return fmt::format(
      "#!/usr/bin/env bash\n"
      "# Starts run.sh on each node of the hostfile, in its order, by ssh; all nodes see this "
      "folder\n"
      "# under the same path. Ends when all have ended, with an error where one of them had one.\n"
      "set -euo pipefail\n"
      "HERE=$(cd -- \"$(dirname -- \"${{BASH_SOURCE[0]}}\")\" && pwd)\n"
      "MASTER_ADDR=${{MASTER_ADDR:-{}}}\n"
      "MASTER_PORT=${{MASTER_PORT:-29500}}\n"
      "mapfile -t LINES_OF_HOSTS <\"$HERE/hostfile\"\n"
      "rank=0\n"
      "started=()\n"
      "for line in \"${{LINES_OF_HOSTS[@]}}\"; do\n"
      "  command=$(printf '%q ' env \"NODE_RANK=$rank\" \"MASTER_ADDR=$MASTER_ADDR\" \\\n"
      "    \"MASTER_PORT=$MASTER_PORT\" \"$HERE/run.sh\")\n"
      "  ssh -- \"${{line%% *}}\" \"$command\" &\n"
      "  started+=(\"$!\")\n"
      "  rank=$((rank + 1))\n"
      "done\n"
      "failed=0\n"
      "for process in \"${{started[@]}}\"; do wait \"$process\" || failed=1; done\n"
      "exit \"$failed\"\n",
      shell_word(nodes.front().name));
}

}  // namespace plait
