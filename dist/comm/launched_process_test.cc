#include "ott/dist/comm/launched_process.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace ott {
namespace {

class LaunchedProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_JOB_ID",
          "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"}) {
      unsetenv(name);
    }
  }
};

TEST_F(LaunchedProcessTest, NobodyIsALauncherWithoutVariables) {
  EXPECT_FALSE(LaunchedProcessFromEnvironment("mpirun"));
  EXPECT_FALSE(LaunchedProcessFromEnvironment("slurmstepd"));
  EXPECT_FALSE(LaunchedProcessFromEnvironment("bash"));
}

TEST_F(LaunchedProcessTest, OpenMpiAndMpichTellRankAndSize) {
  setenv("PMI_RANK", "1", 1);
  setenv("PMI_SIZE", "4", 1);
  EXPECT_EQ(LaunchedProcessFromEnvironment("hydra_pmi_proxy")->rank, 1);
  EXPECT_EQ(LaunchedProcessFromEnvironment("hydra_pmi_proxy")->size, 4);
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  EXPECT_EQ(LaunchedProcessFromEnvironment("orted")->rank, 2);
  EXPECT_EQ(LaunchedProcessFromEnvironment("orted")->size, 3);
  EXPECT_TRUE(LaunchedProcessFromEnvironment("mpirun")->by_mpi);
}

// Such as a training program that looks at its own run.
TEST_F(LaunchedProcessTest, WhatALaunchedProcessStartsIsNotLaunched) {
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  EXPECT_FALSE(LaunchedProcessFromEnvironment("python3"));
}

TEST_F(LaunchedProcessTest, ATaskOfAStepOfSlurmIsLaunched) {
  setenv("SLURM_JOB_ID", "4711", 1);
  setenv("SLURM_STEP_ID", "0", 1);
  setenv("SLURM_PROCID", "1", 1);
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  setenv("SLURM_STEP_NODELIST", "node[7-8]", 1);
  const std::optional<LaunchedProcess> process = LaunchedProcessFromEnvironment("slurmstepd");
  ASSERT_TRUE(process);
  EXPECT_EQ(process->rank, 1);
  EXPECT_EQ(process->size, 2);
  EXPECT_FALSE(process->by_mpi);
}

TEST(ParentProgram, HasAName) { EXPECT_NE(ParentProgram(), ""); }

}  // namespace
}  // namespace ott
