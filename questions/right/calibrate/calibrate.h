// Tolerances from repetitions of one training: what differs between them is noise.

#ifndef OTT_QUESTIONS_RIGHT_CALIBRATE_CALIBRATE_H_
#define OTT_QUESTIONS_RIGHT_CALIBRATE_CALIBRATE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/check/tolerances.pb.h"
#include "ott/questions/right/calibrate/noise.h"

namespace ott::calibrate {

struct Calibration {
  Tolerances tolerances;
  // The runs that count, and those that are another one bit for bit, which say nothing.
  std::vector<std::string> runs;
  std::vector<std::string> repeated;
  // Runs by their position in `runs`; empty for two.
  std::vector<Noise::LeftOut> left_out;
  // Tensors of which FactorFor() the number of runs gave false alarms there, and how many times larger their
  // factor is.
  std::map<std::string, double> raised;
  // Tensors that differ and of which nothing but statistics or images was dumped: they have no tolerance.
  std::set<std::string> not_calibrated;
  double median_looseness = 0;
  double max_looseness = 0;
};

// Compares each run with each, rank by rank, in all iterations that were dumped. A tensor's atol in an
// iteration is a factor times the noise about there (Noise::Fit); where all runs agree bit for bit in all
// iterations, 0. The factor follows from the number of runs and, of each tensor, from leaving each run out,
// unless it is given. A run that is beyond kOutlier is none of the repetitions: FAILED_PRECONDITION, naming
// it. FAILED_PRECONDITION, naming runs, rank and iteration, where they differ in more than values: tensors,
// shapes, dtypes, texts, NaN or infinity in one of them only, or dumps that are missing or cannot be read.
// The same where all are equal bit for bit, and where only two differ and no factor is given: nobody could
// tell a fault of one from noise. REQUIRES: at least two runs; factor >= 1
absl::StatusOr<Calibration> Calibrate(const std::vector<std::string>& runs,
                                      std::optional<double> factor = std::nullopt);

// Returns a few lines on what was found.
std::string ToText(const Calibration& calibration);

}  // namespace ott::calibrate

#endif  // OTT_QUESTIONS_RIGHT_CALIBRATE_CALIBRATE_H_
