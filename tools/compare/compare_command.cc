#include "tools/compare/compare_command.h"

#include <cstdio>
#include <memory>
#include <string>

#include "tools/compare/compare_runs.h"
#include "tools/compare/runs_report.h"
#include "tools/exit_code.h"

namespace ott {
namespace {

struct CompareFlags {
  std::string reference;
  std::string current;
  std::string format = "text";
  CompareRunsOptions options;
};

int RunCompare(const CompareFlags& flags) {
  const absl::StatusOr<RunsComparison> comparison =
      CompareRuns(flags.reference, flags.current, flags.options);
  if (!comparison.ok()) {
    std::fprintf(stderr, "ott compare: %s\n", std::string(comparison.status().message()).c_str());
    return kExitCouldNotTell;
  }
  std::fputs((flags.format == "json" ? ToJson(*comparison) : ToText(*comparison)).c_str(), stdout);
  switch (comparison->verdict()) {
    case Verdict::kEqual:
      return kExitGood;
    case Verdict::kDifferent:
      return kExitBad;
    case Verdict::kCouldNotCompare:
      break;
  }
  return kExitCouldNotTell;
}

}  // namespace

void AddCompareCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("compare", "What first differs between two runs, or two dumps");
  const auto flags = std::make_shared<CompareFlags>();
  Tolerance& tolerance = flags->options.compare.tensors.tolerance;
  command->add_option("REFERENCE", flags->reference, "Run directory, folder of dumps, or dump")->required();
  command->add_option("CURRENT", flags->current, "The same kind of folder")->required();
  command->add_option("--atol", tolerance.atol, "Absolute tolerance")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--rtol", tolerance.rtol, "Tolerance relative to the reference; both add up")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--bitwise", tolerance.bitwise, "Only equal bits are equal")
      ->excludes("--atol")
      ->excludes("--rtol");
  command->add_option("--format", flags->format)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Exit code: 0 equal within the tolerance, 1 different, 2 could not be compared in full.\n"
      "Example:\n  ott compare --atol 1e-4 --rtol 1e-3 out/demo/reference out/demo/optimized");
  command->callback([flags, exit_code] { *exit_code = RunCompare(*flags); });
}

}  // namespace ott
