#include "runtime/launch/rank.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace plait::runtime {
namespace {

Variables these(const std::map<std::string, std::string>& values) {
  return [values](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

std::string error_of(const std::map<std::string, std::string>& values) {
  try {
    rank_place(these(values));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RankPlaceTest, NobodyStartedRanksIsNothing) {
  EXPECT_EQ(rank_place(these({{"HOME", "/"}, {"MASTER_ADDR", "a"}})), std::nullopt);
}

TEST(RankPlaceTest, ReadsTorchrun) {
  const RankPlace expected{3, 8, 1, 2, "10.0.0.1", 29400, "torchrun"};
  EXPECT_EQ(rank_place(these({{"RANK", "3"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "10.0.0.1"},
                              {"MASTER_PORT", "29400"}})),
            expected);
}

TEST(RankPlaceTest, MeetsBesideTheStoreThatTorchrunKeeps) {
  std::map<std::string, std::string> variables{
      {"RANK", "0"},        {"WORLD_SIZE", "2"},      {"LOCAL_RANK", "0"},
      {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_RUN_ID", "none"}};
  EXPECT_EQ(rank_place(these(variables))->port, 29500);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  const int port = rank_place(these(variables))->port;
  EXPECT_NE(port, 29500);
  variables["RANK"] = "1";
  variables["LOCAL_RANK"] = "1";
  EXPECT_EQ(rank_place(these(variables))->port, port);
  variables["TORCHELASTIC_RUN_ID"] = "other";
  EXPECT_NE(rank_place(these(variables))->port, port);
}

TEST(RankPlaceTest, ReadsSlurmAndTwoJobsMeetAtDifferentPorts) {
  std::map<std::string, std::string> step{{"SLURM_STEP_ID", "0"},
                                          {"SLURM_PROCID", "9"},
                                          {"SLURM_STEP_NUM_TASKS", "16"},
                                          {"SLURM_LOCALID", "1"},
                                          {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                                          {"SLURM_JOB_ID", "4711"},
                                          // exported by many batch scripts, without RANK:
                                          {"WORLD_SIZE", "16"}};
  const auto place = rank_place(these(step));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 9);
  EXPECT_EQ(place->world, 16);
  EXPECT_EQ(place->address, "gpu07");
  step["SLURM_JOB_ID"] = "4712";
  EXPECT_NE(rank_place(these(step))->port, place->port);
  step["SLURM_JOB_ID"] = "4711";
  step["SLURM_STEP_ID"] = "1";
  EXPECT_NE(rank_place(these(step))->port, place->port);
  step["SLURM_NODEID"] = "1";
  step["SLURM_STEP_TASKS_PER_NODE"] = "8(x2)";
  EXPECT_EQ(rank_place(these(step))->local_world, 8);
}

TEST(RankPlaceTest, TheShellOfAnSlurmJobIsNoRank) {
  EXPECT_EQ(rank_place(these({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}})), std::nullopt);
  // The interactive step of salloc.
  EXPECT_EQ(rank_place(these({{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967290"}})),
            std::nullopt);
}

TEST(RankPlaceTest, CountsTheTasksOfANode) {
  EXPECT_EQ(tasks_on_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 3), 1);
  EXPECT_EQ(tasks_on_node("2(x3),1", 4), 0);
  EXPECT_EQ(tasks_on_node("4", 0), 4);
  EXPECT_EQ(tasks_on_node("x", 0), 0);
}

TEST(RankPlaceTest, ReadsOpenMpiAndMpich) {
  const auto open_mpi = rank_place(these({{"OMPI_COMM_WORLD_RANK", "1"},
                                          {"OMPI_COMM_WORLD_SIZE", "2"},
                                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  EXPECT_EQ(open_mpi, (RankPlace{1, 2, 1, 2, "127.0.0.1", 29500, "Open MPI"}));
  const auto mpich = rank_place(these({{"PMI_RANK", "5"},
                                       {"PMI_SIZE", "8"},
                                       {"MPI_LOCALRANKID", "1"},
                                       {"MPI_LOCALNRANKS", "4"},
                                       {"MASTER_ADDR", "head"},
                                       {"MASTER_PORT", "1234"}}));
  EXPECT_EQ(mpich, (RankPlace{5, 8, 1, 4, "head", 1234, "mpirun"}));
}

TEST(RankPlaceTest, WhatIsHalfSetIsNamed) {
  EXPECT_EQ(error_of({{"RANK", "0"}}),
            "environment variable WORLD_SIZE: is not set, though RANK is: torchrun sets both; "
            "unset RANK to run alone");
  EXPECT_EQ(error_of({{"WORLD_SIZE", "4"}}),
            "environment variable WORLD_SIZE: is set, but RANK is not: start the ranks with "
            "torchrun, or unset it");
  EXPECT_EQ(error_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}}),
            "environment variable RANK: is 4, but WORLD_SIZE says that there are 4 ranks");
  EXPECT_EQ(error_of({{"RANK", "x"}, {"WORLD_SIZE", "4"}}),
            "environment variable RANK: must be a whole number from 0 to 1000000, is 'x'");
  EXPECT_EQ(error_of({{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
            "environment variable MASTER_ADDR: is not set: Open MPI started ranks on several "
            "machines and does not say where they meet; set it to the host of rank 0");
}

TEST(RankPlaceTest, TheFirstHostOfAList) {
  EXPECT_EQ(first_host("gpu[003-010,12],login1"), "gpu003");
  EXPECT_EQ(first_host("a1,a2"), "a1");
  EXPECT_EQ(first_host("a"), "a");
  EXPECT_EQ(first_host("r[1-2]n[05-08]"), "r1n05");
  EXPECT_EQ(first_host(""), "");
}

}  // namespace
}  // namespace plait::runtime
