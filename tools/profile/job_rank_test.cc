#include "tools/profile/job_rank.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ott::profile {
namespace {

TEST(RankFromEnvironment, IsThatOfTheFirstVariableThatHasOne) {
  const std::vector<std::string> variables = {"OMPI_COMM_WORLD_RANK", "RANK", "PMIX_RANK", "SLURM_PROCID"};
  const std::pair<const char*, int> values[] = {
      {nullptr, -1}, {"", -1},           {"-1", -1}, {"3x", -1},
      {"x", -1},     {"2147483648", -1}, {"0", 0},   {"2147483647", 2147483647}};
  for (const auto& [first, of_first] : values) {
    for (const auto& [second, of_second] : values) {
      for (size_t i = 0; i + 1 < variables.size(); ++i) {
        for (const std::string& variable : variables) unsetenv(variable.c_str());
        if (first != nullptr) setenv(variables[i].c_str(), first, 1);
        if (second != nullptr) setenv(variables[i + 1].c_str(), second, 1);
        EXPECT_EQ(RankFromEnvironment(), of_first >= 0 ? of_first : of_second) << variables[i];
      }
    }
  }
}

}  // namespace
}  // namespace ott::profile
