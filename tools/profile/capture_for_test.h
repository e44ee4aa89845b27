// Captures of nvtx_program_for_test, and what is in their files.

#ifndef OTT_TOOLS_PROFILE_CAPTURE_FOR_TEST_H_
#define OTT_TOOLS_PROFILE_CAPTURE_FOR_TEST_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tools/profile/profile_program.h"

namespace ott::profile {

inline constexpr char kProgramForTest[] = "tools/profile/nvtx_program_for_test";

// Returns the rows that a query gives, values joined by |, NULL as -.
std::vector<std::string> Query(const std::string& path, const std::string& sql);

// Names of the ranges or marks of a type, in the order of their starts.
std::vector<std::string> Names(const std::string& path, int event_type);

class CaptureTest : public ::testing::Test {
 protected:
  CaptureTest();

  // Captures the program in a scenario of its own into options_.output.
  ProfiledProgram Profile(const std::vector<std::string>& scenario);
  // The same of a scenario that is one process.
  CaptureSummary Capture(const std::vector<std::string>& scenario);
  // Returns what a query gives of the file, and the names of its ranges.
  std::vector<std::string> Rows(const std::string& sql) const { return Query(options_.output, sql); }
  std::vector<std::string> Ranges() const { return Names(options_.output, 59); }

  const std::string directory_;
  ProfileOptions options_;
};

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_CAPTURE_FOR_TEST_H_
