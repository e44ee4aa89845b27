#include "ott/questions/saved/whatif_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/saved/ideal_timeline.h"
#include "ott/questions/saved/run_job.h"
#include "ott/questions/saved/saved_answer.h"
#include "ott/questions/saved/timeline.h"
#include "ott/questions/saved/timeline_job.h"
#include "ott/questions/saved/what_if.h"
#include "ott/questions/saved/what_if_text.h"

namespace ott::saved {
namespace {

struct WhatIfFlags {
  std::string run;
  std::string sizes;
  std::string format = "text";
  std::string timeline;
  std::vector<std::string> scale;
};

absl::StatusOr<ReplayJob> ReadJob(const WhatIfFlags& flags) {
  if (IsDirectory(flags.run)) return ReadRunJob(flags.run);
  OTT_ASSIGN_OR_RETURN(Timeline timeline, ReadTimeline(flags.run, flags.sizes));
  return MakeJob(std::move(timeline));
}

absl::StatusOr<int> RunWhatIf(const WhatIfFlags& flags) {
  OTT_ASSIGN_OR_RETURN(const ReplayJob job, ReadJob(flags));
  std::vector<ScaleQuestion> questions;
  for (const std::string& text : flags.scale) {
    OTT_ASSIGN_OR_RETURN(ScaleQuestion question, ParseScaleQuestion(job, text));
    questions.push_back(std::move(question));
  }
  const WhatIfAnswer what_if = AnswerWhatIf(job, questions);
  if (!flags.timeline.empty()) OTT_RETURN_IF_ERROR(WriteIdealTimeline(job, flags.timeline));
  Answer answer = AnswerSaved(what_if);
  if (flags.timeline.empty()) AddNextOf(flags.run, &answer);
  std::fputs(
      (flags.format == "json" ? AnswersToJsonText({answer}) : FormatWhatIf(what_if) + FormatNext(answer))
          .c_str(),
      stdout);
  return ExitCodeOf(answer.finding());
}

}  // namespace

void AddWhatIfCommand(const CommandLine& line) {
  CLI::App* command = line.app.add_subcommand("whatif", "What would be saved if a slow part were mended");
  const auto flags = std::make_shared<WhatIfFlags>();
  command
      ->add_option("RUN", flags->run,
                   "Run directory, or a timeline as StragglerAnalysis publishes them (.json, .json.gz)")
      ->required();
  command->add_option(
      "--sizes", flags->sizes,
      "Of a timeline: file with dp_size, pp_size, ...; meta-NAME.yaml beside timeline-NAME.json.gz is found");
  command->add_option("--format", flags->format)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command
      ->add_option("--scale", flags->scale,
                   "A question of your own: rank=1,measurement=forward,0.5 makes that take half as long; "
                   "also stage=, replica=, host=")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--timeline", flags->timeline,
                      "Write the ideal run beside the measured one, and its critical path, for Perfetto");
  command->footer(
      "Exit code: 0 nothing to mend, 1 something would save time, 2 could not tell: RUN cannot be read, "
      "ranks are\n"
      "missing, or a replay of what was measured takes another time.\n"
      "Example:\n  ott whatif out/demo/reference --scale rank=1,measurement=forward,0.5");
  command->callback([flags, exit_code = line.exit_code] {
    *exit_code = FinishCommand(kQuestion.command, RunWhatIf(*flags));
  });
}

}  // namespace ott::saved
