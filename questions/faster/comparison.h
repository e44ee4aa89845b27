// Judges whether B is faster than A, with the rate at which such an answer is wrong.

#ifndef OTT_QUESTIONS_FASTER_COMPARISON_H_
#define OTT_QUESTIONS_FASTER_COMPARISON_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/faster/comparison.pb.h"
#include "ott/questions/faster/samples.h"

namespace ott::faster {

// "faster", "slower", "same", "cannot tell"
const char* Name(AbResult::Verdict verdict);

enum class Location { kMedian, kMean };

struct FasterOptions {
  // An answer other than "cannot tell" may be wrong so often.
  double error = 0.01;
  // Ratios between 1 / (1 + margin) and 1 + margin are the same.
  double margin = 0.01;
  Location location = Location::kMedian;
  // First iterations of each process to leave out; absent: as many as WarmUpLength() says.
  std::optional<size_t> warm_up;
  // The most processes of each side, if they are run in turn until there is an answer. 0: all there are were
  // planned.
  size_t max_runs = 0;
  // Differences between the sides that are meant: "machine", "CPU", "ranks", "library", "iterations".
  std::set<std::string> accepted;
};

// B / A of one measurement.
struct Result {
  std::string name;
  AbResult::Verdict verdict = AbResult::CANNOT_TELL;
  // With too few processes there is a ratio without an interval; of measurements that count alike there is
  // none.
  std::optional<double> ratio;
  std::optional<double> low;
  std::optional<double> high;
  // The interval misses the true ratio with this probability, over all looks and measurements together.
  double error = 0;
  // Runs of each side, so that the interval is as wide as the margin allows; absent if an answer was found,
  // and where the samples do not say.
  std::optional<size_t> runs_needed;
  // The location of the processes' times, in seconds: the median if they were run in turn, else the geometric
  // mean.
  double seconds_a = 0;
  double seconds_b = 0;
  // B - A, of a mean iteration: a measurement that runs in some iterations counts as much less.
  double seconds_added = 0;
};

struct ProcessLocation {
  double seconds = 0;
  size_t num_warm_up = 0;
};

struct Comparison {
  // The verdict of the primary measurement; else the worst of all verdicts (slower, cannot tell, faster,
  // same), without a ratio.
  Result answer;
  // The others, or all where none is primary.
  std::vector<Result> measurements;
  // Why there is no verdict although there is an interval.
  std::vector<std::string> voids;
  std::vector<std::string> notes;
  size_t num_a = 0;
  size_t num_b = 0;
  double margin = 0;
  // The times of each process, of the primary or else the first measurement.
  std::string plotted;
  std::vector<ProcessLocation> locations_a;
  std::vector<ProcessLocation> locations_b;
};

// Returns the fewest processes of each side with which an answer may be wrong so rarely: of processes of
// which nothing else is known, and of processes that were run in turn.
size_t FewestRuns(double error);
size_t FewestRunsInTurn(double error);

// Returns INVALID_ARGUMENT for samples that cannot be compared: a side without processes, no measurement in
// common, processes with other numbers of iterations, more iterations of warm-up than there are.
absl::StatusOr<Comparison> Compare(const Samples& samples, const FasterOptions& options);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_COMPARISON_H_
