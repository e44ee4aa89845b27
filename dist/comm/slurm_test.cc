#include "ott/dist/comm/slurm.h"

#include <cstdlib>
#include <tuple>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(Slurm, TheFirstNodeOfAListIsFound) {
  EXPECT_EQ(FirstOfSlurmNodes("node7"), "node7");
  EXPECT_EQ(FirstOfSlurmNodes("node7,node8"), "node7");
  EXPECT_EQ(FirstOfSlurmNodes("node[07-12,15]"), "node07");
  EXPECT_EQ(FirstOfSlurmNodes("node[3,5]-ib,other"), "node3-ib");
  EXPECT_EQ(FirstOfSlurmNodes("rack[2]"), "rack2");
  EXPECT_EQ(FirstOfSlurmNodes("rack[0-3]_blade[07,9]-ib,other"), "rack0_blade07-ib");
  EXPECT_EQ(FirstOfSlurmNodes("rack[2"), "rack2");
  EXPECT_EQ(FirstOfSlurmNodes(""), "");
}

TEST(Slurm, ATaskIsReadFromWhatSrunSets) {
  EXPECT_FALSE(SlurmTaskFromEnvironment().has_value());
  setenv("SLURM_JOB_ID", "4711", 1);
  setenv("SLURM_PROCID", "3", 1);
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  setenv("SLURM_STEP_NODELIST", "node[1-2]", 1);
  EXPECT_FALSE(SlurmTaskFromEnvironment().has_value()) << "in the script of sbatch there is no step";
  setenv("SLURM_STEP_ID", "2", 1);
  std::optional<SlurmTask> task = SlurmTaskFromEnvironment();
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->rank, 3);
  EXPECT_EQ(task->num_tasks, 4);
  EXPECT_EQ(task->first_node, "node1");
  EXPECT_EQ(task->ends_s, 0);
  EXPECT_EQ(task->Name(), "Slurm job 4711.2");
  EXPECT_EQ(task->Port(), 20000 + (4711 * 31 + 2) % 12000) << "all tasks find it, and each step another one";
  setenv("SLURM_STEP_ID", "3", 1);
  EXPECT_EQ(SlurmTaskFromEnvironment()->Port(), 20000 + (4711 * 31 + 3) % 12000);
  setenv("SLURM_RESTART_COUNT", "1", 1);
  setenv("SLURM_JOB_END_TIME", "1800000000", 1);
  task = SlurmTaskFromEnvironment();
  EXPECT_EQ(task->ends_s, 1800000000);
  EXPECT_EQ(task->Name(), "Slurm job 4711.3, start 2");
  for (const auto& [name, good, bad] : {std::tuple("SLURM_PROCID", "3", "4"),
                                        {"SLURM_PROCID", "0", "-1"},
                                        {"SLURM_JOB_ID", "0", "x"},
                                        {"SLURM_STEP_ID", "0", "-2"},
                                        {"SLURM_STEP_NUM_TASKS", "16777216", "16777217"}}) {
    setenv(name, good, 1);
    EXPECT_TRUE(SlurmTaskFromEnvironment().has_value()) << name << " " << good;
    setenv(name, bad, 1);
    EXPECT_FALSE(SlurmTaskFromEnvironment().has_value()) << name << " " << bad;
    setenv(name, good, 1);
  }
  unsetenv("SLURM_STEP_NODELIST");
  EXPECT_EQ(SlurmTaskFromEnvironment()->first_node, "");
}

}  // namespace
}  // namespace ott
