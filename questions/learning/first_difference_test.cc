#include "ott/questions/learning/first_difference.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/crosscheck/run_for_test.h"

namespace ott::learning {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(AddFirstDifference, NamesArePrintableAndQuotedForAShell) {
  std::vector<std::string> runs;
  for (const float weight : {1.0f, 2.0f}) {
    runs.push_back(crosscheck::MakeRunForTest(absl::StrCat("the run\x1b", weight), 1));
    crosscheck::WriteTreeForTest(runs.back(), 0, 3, ValueMap{{"w\x1b", TensorView(&weight, {1})}});
  }
  LearningVerdict verdict;
  AddFirstDifference({{"a", runs[0], {}}}, {{"b", runs[1], {}}}, &verdict);
  EXPECT_THAT(verdict.first_difference(),
              HasSubstr("their dumps first differ in iteration 3 on rank 0, in w"));
  EXPECT_THAT(verdict.first_difference(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(verdict.next(), StartsWith("ott compare '"));
  EXPECT_THAT(verdict.next(), Not(HasSubstr("\x1b")));
  // Dumps that could not be compared neither differ nor are equal.
  std::ofstream(DumpPath(runs[1], 0, 3) + "/tensors.json") << "{";
  AddFirstDifference({{"a", runs[0], {}}}, {{"b", runs[1], {}}}, &verdict);
  EXPECT_THAT(verdict.first_difference(),
              EndsWith(": not all of their dumps could be compared; what could does not differ"));
}

}  // namespace
}  // namespace ott::learning
