#include "ott/core/flight/process.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(Process, IsReadAsTheKernelTellsOfIt) {
  std::string text;
  prctl(PR_SET_NAME, "a) R 1 (b");
  std::getline(std::ifstream("/proc/self/stat"), text);
  // The state is the third field, and the start the 22nd; the second may hold anything, in brackets.
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::vector<std::string> values;
  for (std::string value; fields >> value;) values.push_back(value);
  EXPECT_EQ(std::string(1, ReadProcess(getpid()).state), values.at(0));
  EXPECT_EQ(std::to_string(ReadProcess(getpid()).started), values.at(19));
  EXPECT_EQ(ReadProcess(-1).started, 0u);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  EXPECT_EQ(ThisMachine(), boot + " " + std::filesystem::read_symlink("/proc/self/ns/pid").string());
}

}  // namespace
}  // namespace ott
