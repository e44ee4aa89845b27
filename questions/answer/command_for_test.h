// Runs commands in tests.

#ifndef OTT_QUESTIONS_ANSWER_COMMAND_FOR_TEST_H_
#define OTT_QUESTIONS_ANSWER_COMMAND_FOR_TEST_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "gtest/gtest.h"
#include "ott/questions/answer/question.h"

namespace ott {

// Returns the exit code, -2 for words that are none of the command's, and what was printed.
inline std::pair<int, std::string> RunForTest(void (*add)(const CommandLine&),
                                              std::vector<std::string> words) {
  CLI::App app;
  int exit_code = -1;
  add({app, &exit_code, nullptr});
  std::reverse(words.begin(), words.end());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    app.parse(words);
  } catch (const CLI::ParseError&) {
    exit_code = -2;
  }
  const std::string printed = testing::internal::GetCapturedStdout();
  return {exit_code, printed + testing::internal::GetCapturedStderr()};
}

}  // namespace ott

#endif  // OTT_QUESTIONS_ANSWER_COMMAND_FOR_TEST_H_
