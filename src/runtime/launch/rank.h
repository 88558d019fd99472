#pragma once

#include <functional>
#include <optional>
#include <string>

namespace plait::runtime {

// Which of the processes of a run this one is, and where they meet.
struct RankPlace {
  int rank = 0;
  int world = 1;
  int local_rank = 0;   // on its machine: which GPU
  int local_world = 0;  // ranks of its machine; 0 = the launcher does not say
  std::string address;  // of rank 0
  int port = 0;
  std::string launcher;   // who started it, for messages
  std::string interface;  // that ranks listen on; "" = the one that leads to rank 0
  std::string secret;     // that all ranks of the run know; "" = none
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

// The value of an environment variable, or nothing; std::getenv in the program.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
Variables environment_variables();

// Reads what a launcher told this process; nothing when none did. In this order:
//   torchrun, plait --local   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT;
//                             beside its own store (TORCHELASTIC_USE_AGENT_STORE) at another port
//   Open MPI's mpirun         OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
//   MPICH, Intel MPI          PMI_RANK PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS
//   Slurm's srun              SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_LOCALID SLURM_STEP_NODELIST
//                             SLURM_NODEID SLURM_STEP_TASKS_PER_NODE
// GLOO_SOCKET_IFNAME names the interface, PLAIT_RUN_SECRET is the secret (run_secret.h).
// MASTER_ADDR and MASTER_PORT count under all of them. Without: mpirun on one machine meets at the
// loopback, srun at the first node of its list; ports follow from the numbers of job and step, so
// that two of them on a machine do not meet. InputError for variables that are set in part or
// contradict each other.
std::optional<RankPlace> rank_place(const Variables& variables);

// Tasks on a node as Slurm counts them: "2(x3),1" is 2 on nodes 0, 1 and 2, 1 on node 3; 0 = the
// list does not say.
int tasks_on_node(const std::string& list, int node);

// The first host of a Slurm list: "gpu[003-010,12],login1" -> "gpu003".
std::string first_host(const std::string& list);

}  // namespace plait::runtime
