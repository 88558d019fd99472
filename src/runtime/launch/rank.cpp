#include "runtime/launch/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "runtime/launch/run_secret.h"

namespace plait::runtime {
namespace {

constexpr int kUsualPort = 29500;  // torchrun's
constexpr int kMostRanks = 1'000'000;
constexpr const char* kPrivateSteps = "42949672";  // Slurm's own, from 4294967290 on

struct Names {
  const char* launcher;
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* local_world;
  const char* marker;  // set only where the launcher really started this process
  const char* job;     // the same for all ranks of a job, different for another
};

constexpr Names kTorchrun{"torchrun",         "RANK", "WORLD_SIZE", "LOCAL_RANK",
                          "LOCAL_WORLD_SIZE", "RANK", nullptr};
constexpr Names kMpi[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MPI_LOCALRANKID",
     "PMI_PORT"},
};
constexpr Names kSlurm{"Slurm",         "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                       "SLURM_LOCALID", nullptr,        "SLURM_STEP_ID",
                       nullptr};

int integer_in(const std::string& name, const std::string& text, int least, int most) {
  int value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || value < least ||
      value > most)
    throw InputError(
        "environment variable " + name,
        fmt::format("must be a whole number from {} to {}, is '{}'", least, most, text));
  return value;
}

std::string needed(const Variables& variables, const char* name, const Names& names) {
  const auto text = variables(name);
  if (!text)
    throw InputError(std::string("environment variable ") + name,
                     fmt::format("is not set, though {} is: {} sets both; unset {} to run alone",
                                 names.marker, names.launcher, names.marker));
  return *text;
}

RankPlace counts(const Variables& variables, const Names& names) {
  RankPlace place;
  place.launcher = names.launcher;
  place.interface = variables("GLOO_SOCKET_IFNAME").value_or("");
  place.secret = secret_of_run(variables);
  place.world = integer_in(names.world, needed(variables, names.world, names), 1, kMostRanks);
  const auto number = [&](const char* name, int most) {
    return integer_in(name, needed(variables, name, names), 0, most);
  };
  place.rank = number(names.rank, kMostRanks);
  if (place.rank >= place.world)
    throw InputError(std::string("environment variable ") + names.rank,
                     fmt::format("is {}, but {} says that there are {} ranks", place.rank,
                                 names.world, place.world));
  place.local_rank = number(names.local_rank, place.rank);
  if (names.local_world != nullptr)
    if (const auto text = variables(names.local_world))
      place.local_world = integer_in(names.local_world, *text, place.local_rank + 1, place.world);
  return place;
}

// FNV-1a, into the ports that are neither privileged nor handed out by the kernel.
int port_of_job(std::string_view job) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : job) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return 12000 + static_cast<int>(hash % 20000);
}

void meet(const Variables& variables, const Names& names, const std::string& usual_address,
          RankPlace& place) {
  place.address = variables("MASTER_ADDR").value_or(usual_address);
  if (place.address.empty())
    throw InputError("environment variable MASTER_ADDR",
                     fmt::format("is not set: {} started ranks on several machines and does not "
                                 "say where they meet; set it to the host of rank 0",
                                 names.launcher));
  if (const auto text = variables("MASTER_PORT")) {
    place.port = integer_in("MASTER_PORT", *text, 1, 65535);
    return;
  }
  const auto job = names.job == nullptr ? std::nullopt : variables(names.job);
  place.port = job ? port_of_job(*job) : kUsualPort;
}

RankPlace torchrun_place(const Variables& variables) {
  RankPlace place = counts(variables, kTorchrun);
  needed(variables, "MASTER_ADDR", kTorchrun);
  needed(variables, "MASTER_PORT", kTorchrun);
  meet(variables, kTorchrun, "", place);
  // torchrun keeps a store of its own at that port, in the protocol of its own version.
  if (variables("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True")
    place.port = port_of_job(variables("TORCHELASTIC_RUN_ID").value_or("") + " " +
                             std::to_string(place.port));
  return place;
}

// A shell of salloc or sbatch has SLURM_PROCID as well, but no step, or one of Slurm's own.
bool is_slurm_step(const Variables& variables) {
  const auto step = variables(kSlurm.marker);
  return step && variables(kSlurm.rank) &&
         !(step->size() == 10 && step->starts_with(kPrivateSteps));
}

RankPlace slurm_place(const Variables& variables) {
  RankPlace place = counts(variables, kSlurm);
  meet(variables, kSlurm, first_host(variables("SLURM_STEP_NODELIST").value_or("")), place);
  const auto job = variables("SLURM_JOB_ID");
  if (job && !variables("MASTER_PORT"))
    place.port = port_of_job(*job + "." + variables(kSlurm.marker).value_or(""));
  const auto node = variables("SLURM_NODEID");
  const auto tasks = variables("SLURM_STEP_TASKS_PER_NODE");
  if (node && tasks)
    place.local_world = tasks_on_node(*tasks, integer_in("SLURM_NODEID", *node, 0, kMostRanks));
  return place;
}

}  // namespace

Variables environment_variables() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* text = std::getenv(name.c_str());
    return text == nullptr || *text == '\0' ? std::nullopt : std::optional<std::string>(text);
  };
}

std::optional<RankPlace> rank_place(const Variables& variables) {
  if (variables(kTorchrun.marker)) return torchrun_place(variables);
  for (const Names& names : kMpi) {
    if (!variables(names.marker)) continue;
    RankPlace place = counts(variables, names);
    meet(variables, names, place.local_world == place.world ? "127.0.0.1" : "", place);
    return place;
  }
  if (is_slurm_step(variables)) return slurm_place(variables);
  if (variables(kTorchrun.world))
    throw InputError("environment variable WORLD_SIZE",
                     "is set, but RANK is not: start the ranks with torchrun, or unset it");
  return std::nullopt;
}

int tasks_on_node(const std::string& list, int node) {
  int first = 0;  // node of the entry
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    int tasks = 0, nodes = 1;
    const auto read = std::from_chars(list.data() + begin, list.data() + end, tasks);
    const char* rest = read.ptr;
    if (read.ec != std::errc()) return 0;
    if (std::string_view(rest, list.data() + end - rest).starts_with("(x"))
      std::from_chars(rest + 2, list.data() + end, nodes);
    if (node < first + nodes) return tasks;
    first += nodes;
    begin = end + 1;
  }
  return 0;
}

std::string first_host(const std::string& list) {
  const std::size_t open = list.find_first_of("[,");
  if (open == std::string::npos || list[open] == ',') return list.substr(0, open);
  const std::size_t close = list.find(']', open);
  if (close == std::string::npos) return list.substr(0, open);
  const std::string number = list.substr(open + 1, list.find_first_of("-,]", open) - open - 1);
  const std::size_t end = list.find(',', close);
  const std::size_t rest = end == std::string::npos ? list.size() : end;
  return first_host(list.substr(0, open) + number + list.substr(close + 1, rest - close - 1));
}

}  // namespace plait::runtime
