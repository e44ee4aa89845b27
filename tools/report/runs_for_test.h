// Run directories with numbers that are known, for tests of reports.

#ifndef OTT_TOOLS_REPORT_RUNS_FOR_TEST_H_
#define OTT_TOOLS_REPORT_RUNS_FOR_TEST_H_

#include <cstdint>
#include <string>

namespace ott::report {

struct PlantedRun {
  int num_ranks = 4;
  int num_iterations = 40;  // measured, after 5 of warm-up
  double iteration_seconds = 4e-3;
  // That works 3 ms in "forward" where others work 1 ms and wait for it in "sum_loss".
  int slow_rank = 1;
  // Of which one, counted with the warm-up, takes 20 ms.
  int64_t long_iteration = 25;
  // Checked every ten iterations: rank 2 differs from iteration 20 on, and all are within tolerance of a
  // reference with errors that grow tenfold from check to check.
  bool with_checks = true;
  // Intervals of the last iterations, for the timeline.
  bool with_sample = true;
  // Goes into the names of hosts, measurements, and tensors.
  std::string suffix;
};

// Ends the program where a file cannot be written.
void WritePlantedRun(const std::string& run_dir, const PlantedRun& planted);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_RUNS_FOR_TEST_H_
