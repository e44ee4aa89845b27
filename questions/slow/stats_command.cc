#include "ott/questions/slow/stats_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/slow/cluster_table.h"
#include "ott/questions/slow/read_cluster_stats.h"
#include "ott/questions/slow/slow_answer.h"
#include "ott/questions/waiting/waiting_answer.h"

namespace ott::slow {
namespace {

struct StatsFlags {
  std::string run;
  std::string format = "text";
};

// It is all of what is printed around them.
std::vector<Answer> WithoutEvidence(std::vector<Answer> answers) {
  for (Answer& answer : answers) answer.clear_evidence_type();
  return answers;
}

absl::StatusOr<int> RunStats(const StatsFlags& flags) {
  std::vector<std::string> problems;
  OTT_ASSIGN_OR_RETURN(const ClusterStats stats, ReadClusterStats(flags.run, &problems));
  const std::string run_dir = LatestAttempt(flags.run);
  const absl::StatusOr<RunInfo> info = ReadRunInfo(run_dir);
  const bool has_collectives = info.ok() && info->config().stopwatch().collective_measurements_size() > 0;
  std::vector<Answer> answers = {
      AnswerSlow(stats),
      waiting::AnswerWaiting(stats, has_collectives, /*was_gathered=*/PathExists(ClusterStatsPath(run_dir)))};
  AddNextOf(flags.run, &answers[0]);
  const Answer::Finding finding = FindingOf(answers);
  const std::string text =
      flags.format == "json"
          ? WithAnswers(ClusterStatsToJson(stats), WithoutEvidence(answers))
          : absl::StrCat(FormatClusterTable(stats), FormatSentences(answers), FormatNext(answers[0]));
  std::fputs(text.c_str(), stdout);
  return ExitCodeOf(problems.empty() || finding == Answer::BAD ? finding : Answer::CANNOT_TELL);
}

}  // namespace

void AddStatsCommand(const CommandLine& line) {
  CLI::App* command =
      line.app.add_subcommand("stats", "Where the time of a run went, over all ranks, and who was slow");
  const auto flags = std::make_shared<StatsFlags>();
  command->add_option("RUN", flags->run, "Run directory, also of a run that was cut short")->required();
  command->add_option("--format", flags->format)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Exit code: 0 no rank is slow or holds the others up, 1 one is, 2 that cannot be told, or ranks did "
      "not\n"
      "report (they are named), or RUN or a file of it cannot be read.\n"
      "Example:\n  ott stats out/demo/reference");
  command->callback([flags, exit_code = line.exit_code] {
    *exit_code = FinishCommand(kQuestion.command, RunStats(*flags));
  });
}

}  // namespace ott::slow
