#include "ott/dist/comm/launched_process.h"

#include <cstdlib>
#include <optional>
#include <utility>

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

TEST_F(LaunchedProcessTest, TwoNumbersOfOneLauncherOfMpiTellRankAndSize) {
  for (const auto& [rank, size] :
       {std::pair("PMI_RANK", "PMI_SIZE"), {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}}) {
    SetUp();
    for (const char* const name : {rank, size}) {
      setenv(rank, "2", 1);
      setenv(size, "3", 1);
      for (const char* const launcher : {"mpirun", "orted", "hydra_pmi_proxy"}) {
        const std::optional<LaunchedProcess> process = LaunchedProcessFromEnvironment(launcher);
        ASSERT_TRUE(process) << launcher;
        EXPECT_EQ(process->rank, 2);
        EXPECT_EQ(process->size, 3);
        EXPECT_TRUE(process->by_mpi);
      }
      // Such as a training program that looks at its own run.
      EXPECT_FALSE(LaunchedProcessFromEnvironment("python3"));
      setenv(name, "x", 1);
      EXPECT_FALSE(LaunchedProcessFromEnvironment("mpirun")) << name;
      unsetenv(name);
      EXPECT_FALSE(LaunchedProcessFromEnvironment("mpirun")) << name;
    }
  }
  setenv("PMI_RANK", "1", 1);
  setenv("PMI_SIZE", "4", 1);
  EXPECT_EQ(LaunchedProcessFromEnvironment("mpirun")->rank, 1);
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  EXPECT_EQ(LaunchedProcessFromEnvironment("mpirun")->rank, 2) << "Open MPI's go first";
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
