// Connects a folder in questions/ with the command `ott`: its commands, and what it finds in a run. The list
// of all is questions/questions.cc.

#ifndef OTT_QUESTIONS_ANSWER_QUESTION_H_
#define OTT_QUESTIONS_ANSWER_QUESTION_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "ott/dist/directory/run_info.pb.h"
#include "ott/dist/share/processes.h"
#include "ott/questions/answer/document.h"

namespace ott {

struct CommandLine {
  CLI::App& app;
  // Set (questions/answer/exit_code.h) when a subcommand ran.
  int* exit_code;
  // Returns the document as a page for the browser, in one file.
  std::function<std::string(const Document& document)> page;
};

// Accepts a finite number of `low` to `high`. CLI11's ranges let NaN pass, and print a limit in 300 digits.
CLI::Validator NumberFrom(double low, double high = std::numeric_limits<double>::max());

// A run, and what was given to compare it with.
struct AskedRun {
  std::string run_dir;
  // Nullopt if run.json cannot be read, which is said elsewhere.
  std::optional<RunInfo> info;
  // Those that have a directory, ascending.
  std::vector<int> ranks;
  // A run whose operations are compared, and a perturbed one of it (questions/origin/origin.h); empty: none.
  std::string reference;
  std::string perturbed;
  // Runs of the same version, run_dir first, and of another one; empty: none.
  std::vector<std::string> runs;
  std::vector<std::string> before;

  // Returns the iteration with which the process's count begins.
  int64_t start_iteration() const;
};

// A gauge of Prometheus, or a counter.
struct Metric {
  struct Sample {
    double value = 0;
    std::vector<std::pair<const char*, std::string>> labels;
  };
  const char* name;
  const char* help;
  std::vector<Sample> samples;
  bool only_grows = false;  // a counter, whose name ends with _total
};

// The findings of a question in a run.
struct Findings {
  // Empty if the run was not to be asked.
  std::vector<Answer> answers;
  // Says what is missing or cannot be read.
  std::vector<std::string> problems;
  std::vector<Details> details;
  std::vector<Metric> metrics;
  // Adds the pictures, which may take longer than the answer. named: ranks that any answer names. May be
  // null.
  std::function<void(const std::vector<int>& named, Document* document)> draw;
  // True if the run left something about this, so that it is worth a report.
  bool is_news = false;
};

struct Question {
  const char* title;  // "Does it hang?", also of its commands in the help
  // Adds its commands. Null: it has none.
  void (*add_commands)(const CommandLine& line) = nullptr;
  // An error if there can be no report. Null: it is not asked about runs.
  absl::StatusOr<Findings> (*ask)(const AskedRun& run) = nullptr;
  // True if its bad news is that tensors differ.
  bool is_about_tensors = false;
  // True if it finds something else when time goes by, though no file of the run changes.
  bool depends_on_time = false;
  // Lists what it reads in the ranks' folders, by the beginnings of names; empty: anything.
  std::vector<const char*> reads = {};
  // Lists the tasks that its commands and `ask` give to other processes.
  std::vector<ShareTask> tasks = {};
};

}  // namespace ott

#endif  // OTT_QUESTIONS_ANSWER_QUESTION_H_
