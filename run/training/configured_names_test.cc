#include "ott/run/training/configured_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FindNamesThatNeverRan, SaysWhichOneMayBeMeant) {
  ClusterStats stats;
  for (const char* const name : {"forward", "allreduce"}) stats.add_measurements()->set_name(name);
  StopwatchConfig config;
  config.add_collective_measurements("alreduce");
  config.add_collective_measurements("allreduce");
  config.add_collective_measurements("dist.*");
  config.add_collective_groups()->add_measurements("broadcast");
  config.set_cpu_usage_measurement("Forward");
  EXPECT_THAT(FindNamesThatNeverRan(config, stats),
              ElementsAre("collective_measurements: \"alreduce\" ran on no rank; \"allreduce\" did",
                          "collective_groups: \"broadcast\" ran on no rank",
                          "cpu_usage_measurement: \"Forward\" ran on no rank; \"forward\" did"));
  // Before anything ran nothing is said.
  EXPECT_THAT(FindNamesThatNeverRan(config, ClusterStats()), IsEmpty());
}

}  // namespace
}  // namespace ott
