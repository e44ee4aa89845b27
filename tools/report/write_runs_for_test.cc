// write_runs_for_test DIR: run directories for page_test.js: DIR/known, its DIR/reference, DIR/before_*,
// DIR/after_*, DIR/traces, DIR/hostile, its DIR/hostile_reference, DIR/many and DIR/long.

#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/core/kineto/traces_for_test.h"
#include "tools/report/runs_for_test.h"

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const std::string directory = argv[1];
  using ott::report::PlantedRun;
  PlantedRun known;
  known.with_op_log = true;
  ott::report::WritePlantedRun(directory + "/reference", known);
  known.with_wrong_norm = true;
  ott::report::WritePlantedRun(directory + "/known", known);

  // Each a little longer than the one before, as runs are.
  PlantedRun compared;
  compared.num_ranks = 2;
  compared.with_checks = compared.with_sample = false;
  for (int i = 0; i < 6; ++i) {
    compared.iteration_seconds = 5e-3 * (1 + 1e-4 * i);
    ott::report::WritePlantedRun(absl::StrCat(directory, "/before_", i), compared);
    compared.iteration_seconds = 4e-3 * (1 + 1e-4 * i);
    ott::report::WritePlantedRun(absl::StrCat(directory, "/after_", i), compared);
  }

  OTT_CHECK(ott::MakeDirectories(directory + "/traces").ok());
  for (int rank = 0; rank < 2; ++rank) {
    const std::string trace = ott::kineto::RankTraceForTest(rank, 3000 * rank, 3000, 0, 60);
    OTT_CHECK(ott::WriteFileAtomically(absl::StrCat(directory, "/traces/", rank, ".json"), trace).ok());
  }

  PlantedRun hostile;
  hostile.suffix =
      "</script><img src=x onerror=\"window.taken = "
      "1\">{{script}}\u202e\u0645\u0631\u062d\u0628\u0627\n\"'\\";
  hostile.suffix += std::string(10'000, 'x');
  hostile.with_op_log = true;
  ott::report::WritePlantedRun(directory + "/hostile_reference", hostile);
  hostile.with_wrong_norm = true;
  ott::report::WritePlantedRun(directory + "/hostile", hostile);

  PlantedRun many;
  many.num_ranks = 16384;
  many.num_iterations = 100;
  many.slow_rank = 7000;
  many.with_checks = many.with_sample = false;
  ott::report::WritePlantedRun(directory + "/many", many);

  PlantedRun lengthy;
  lengthy.num_iterations = 10'000'000;
  lengthy.long_iteration = 5 + 100 * 16384;  // one of those that are kept
  lengthy.check_every = 1000;
  ott::report::WritePlantedRun(directory + "/long", lengthy);
}
