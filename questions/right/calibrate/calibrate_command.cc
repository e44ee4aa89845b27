#include "ott/questions/right/calibrate/calibrate_command.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/tolerance_file.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/answer/exit_code.h"
#include "ott/questions/right/calibrate/calibrate.h"

namespace ott::calibrate {
namespace {

struct CalibrateFlags {
  std::vector<std::string> runs;
  std::string output;
  std::optional<double> factor;
};

absl::StatusOr<std::string> CalibrateTo(const CalibrateFlags& flags) {
  OTT_ASSIGN_OR_RETURN(const Calibration calibration, Calibrate(flags.runs, flags.factor));
  OTT_RETURN_IF_ERROR(WriteFileAtomically(flags.output, TolerancesToText(calibration.tolerances)));
  return absl::StrCat(flags.output, ": ", ToText(calibration));
}

absl::StatusOr<int> RunCalibrate(const CalibrateFlags& flags) {
  for (const std::string& run : flags.runs) SayLatestAttempt("calibrate", run);
  OTT_ASSIGN_OR_RETURN(const std::string text, CalibrateTo(flags));
  std::fputs(text.c_str(), stdout);
  return kExitGood;
}

}  // namespace

void AddCalibrateCommand(const CommandLine& line) {
  CLI::App* command = line.app.add_subcommand("calibrate", "Tolerances from repetitions of one training");
  const auto flags = std::make_shared<CalibrateFlags>();
  command->add_option("RUN", flags->runs, "Run directories with dumps, three or more; two with --factor")
      ->required()
      ->expected(2, CLI::detail::expected_max_vector_size);
  command->add_option("-o,--output", flags->output, "File to write")->required();
  command
      ->add_option(
          "--factor", flags->factor,
          "What is beyond so many times the noise is a finding; by default by the number of runs: "
          "Student's t, 9.9 for 3 runs, 5.8 for 4, 5 for more, and what leaving each out needs. Two runs "
          "need one, 63.7 by Student's t, as nobody can tell a fault of one from noise")
      ->check(NumberFrom(1, 1e6));
  command->footer(
      "Exit code: 0 calibrated, 2 the runs are no repetitions, equal bit for bit, too few, or cannot be "
      "read.\n"
      "Examples:\n  ott calibrate out/run1 out/run2 out/run3 -o tolerances.textproto\n"
      "  ott crosscheck out/run1 out/optimized --tolerances tolerances.textproto");
  command->callback(
      [flags, exit_code = line.exit_code] { *exit_code = FinishCommand("calibrate", RunCalibrate(*flags)); });
}

}  // namespace ott::calibrate
