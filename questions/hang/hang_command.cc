#include "ott/questions/hang/hang_command.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/hang/diagnosis.h"
#include "ott/questions/hang/found_hang.h"
#include "ott/questions/hang/hang_answer.h"
#include "ott/questions/hang/hang_report.h"
#include "ott/questions/hang/run_state.h"
#include "ott/questions/hang/torch_dumps.h"

namespace ott::hang {
namespace {

struct HangFlags {
  std::string dir;
  std::string format = "text";
  double after_seconds = 0;
};

// Sets *after_seconds to what it was configured with, if it was.
absl::StatusOr<JobState> ReadJob(const std::string& dir, double* after_seconds) {
  if (!IsRunDirectory(dir)) return ReadTorchDumps(dir);
  const absl::StatusOr<RunInfo> info = ReadRunInfo(dir);
  if (info.ok() && info->config().hang().after_seconds() > 0) {
    *after_seconds = info->config().hang().after_seconds();
  }
  return ReadRunState(dir, RunStateEnvironment::Real());
}

absl::StatusOr<int> RunHang(const HangFlags& flags) {
  HangOptions options;
  const std::string dir = IsRunDirectory(flags.dir) ? LatestAttempt(flags.dir) : flags.dir;
  OTT_ASSIGN_OR_RETURN(const JobState job, ReadJob(dir, &options.after_seconds));
  if (flags.after_seconds > 0) options.after_seconds = flags.after_seconds;
  HangVerdict verdict = DiagnoseHang(job, options);
  absl::StatusOr<std::optional<HangVerdict>> found = ReadFoundHang(dir);
  if (!found.ok()) {
    PrintError(kQuestion.command, found.status());
  } else if (*found && StillHolds(**found, verdict)) {
    verdict = **std::move(found);
  }
  const Answer answer = AnswerHang(verdict, std::nullopt);
  std::fputs((flags.format == "json" ? AnswersToJsonText({answer}) : FormatHangVerdict(verdict)).c_str(),
             stdout);
  return ExitCodeOf(answer.finding());
}

}  // namespace

void AddHangCommand(const CommandLine& line) {
  CLI::App* command = line.app.add_subcommand("hang", "Why a job stands still, and which rank is to blame");
  const auto flags = std::make_shared<HangFlags>();
  command
      ->add_option("DIRECTORY", flags->dir,
                   "Run directory, of a job that runs or has ended; or one with the dumps of PyTorch's "
                   "Flight Recorder")
      ->required();
  command
      ->add_option("--after", flags->after_seconds,
                   "Seconds; a shorter wait is no hang. For run directories only. By default after_seconds "
                   "of the run's configuration, or 60")
      ->check(NumberFrom(1e-9, 1e9));
  command->add_option("--format", flags->format)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Exit code: 0 not hanging, 1 hanging and why is said, 2 cannot tell.\n"
      "Examples:\n  ott hang out/run1\n  ott hang /tmp/nccl_traces --format json");
  command->callback([flags, exit_code = line.exit_code] {
    *exit_code = FinishCommand(kQuestion.command, RunHang(*flags));
  });
}

}  // namespace ott::hang
