#include "ott/questions/sound/check_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ott/core/base/status_macros.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/sound/disk_evidence.h"
#include "ott/questions/sound/sound.h"
#include "ott/questions/sound/sound_answer.h"

namespace ott::sound {
namespace {

struct CheckFlags {
  std::string run_dir;
  std::string format = "text";
};

absl::StatusOr<int> RunCheck(const CheckFlags& flags) {
  OTT_RETURN_IF_ERROR(CheckRunDirectory(flags.run_dir));
  SayLatestAttempt(kQuestion.command, flags.run_dir);
  const std::string run_dir = LatestAttempt(flags.run_dir);
  OTT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ListRanks(run_dir));
  OTT_ASSIGN_OR_RETURN(const RunInfo info, ReadRunInfo(run_dir));
  std::vector<std::string> problems;
  const SoundVerdict verdict =
      JudgeSound(ReadEvidence(run_dir, ranks, info, &problems), info.world_size(), info.config().sound());
  for (const std::string& problem : problems) PrintError(kQuestion.command, absl::DataLossError(problem));
  const Answer answer = AnswerSound(verdict);
  std::fputs((flags.format == "json" ? AnswersToJsonText({answer}) : ToText(verdict)).c_str(), stdout);
  // Who asks is told nothing by a run that nobody looked at.
  const bool tells = verdict.kind() != SoundVerdict::NOT_LOOKED_AT && problems.empty();
  return ExitCodeOf(tells || answer.finding() == Answer::BAD ? answer.finding() : Answer::CANNOT_TELL);
}

}  // namespace

void AddCheckCommand(const CommandLine& line) {
  CLI::App* command = line.app.add_subcommand("check", "Which rules of a sound training step a run broke");
  const auto flags = std::make_shared<CheckFlags>();
  command->add_option("RUN", flags->run_dir, "Run directory")->required();
  command->add_option("--format", flags->format)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Exit code: 0 sound in what was checked, 1 a rule is broken, 2 cannot tell.\n"
      "Example:\n  ott check out/run1");
  command->callback([flags, exit_code = line.exit_code] {
    *exit_code = FinishCommand(kQuestion.command, RunCheck(*flags));
  });
}

}  // namespace ott::sound
