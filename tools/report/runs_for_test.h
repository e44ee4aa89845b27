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
  // This rank works 3 ms in "forward" where others work 1 ms and wait for it in "sum_loss".
  int slow_rank = 1;
  // One iteration takes 20 ms: this one, counted with the warm-up.
  int64_t long_iteration = 25;
  // Checked every so many iterations. Rank 2 differs from the third check on, and ranks 0 and 3 read the same
  // batch in the fourth. All are within tolerance of a reference, with errors that grow tenfold up to the
  // seventh check.
  bool with_checks = true;
  int check_every = 10;
  // Intervals of the last iterations, for the timeline.
  bool with_sample = true;
  // A log of operations: linear, norm, gelu and argmax, which read each other, residual, which reads linear
  // and norm, and head, which reads gelu and residual.
  bool with_op_log = false;
  // norm computes something else in rank 1's log: argmax swallows it, the others pass it on.
  bool with_wrong_norm = false;
  // Goes into the names of hosts, measurements, and tensors.
  std::string suffix;
};

// Ends the program where a file cannot be written.
void WritePlantedRun(const std::string& run_dir, const PlantedRun& planted);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_RUNS_FOR_TEST_H_
