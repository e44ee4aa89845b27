// Brings the curves of several runs to common points, and describes each run by a few numbers that a change
// of the training moves. Neither knows which run is on which side.

#ifndef OTT_QUESTIONS_LEARNING_COMMON_POINTS_H_
#define OTT_QUESTIONS_LEARNING_COMMON_POINTS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/learning/curve.h"

namespace ott::learning {

// Curves of more points are averaged in so many windows.
inline constexpr size_t kMostPoints = 32;
// The limit of DrawIn() in what runs span.
inline constexpr double kMostDeviations = 10;

// A metric of several runs at the same points.
struct CommonPoints {
  std::vector<double> x;  // ascending
  size_t num_runs = 0;
  std::vector<double> y;  // row-major [num_runs, x.size()], finite
  // True if learning lowers it.
  bool lower_is_better = true;

  double at(size_t run, size_t point) const { return y[run * x.size() + point]; }
};

// Takes the points from the first that all runs have to the last one. A run without a point there is
// interpolated; one that is not finite from some point on has the worst value of any run there.
// INVALID_ARGUMENT if the runs have no point in common, or no finite one.
absl::StatusOr<CommonPoints> BringToCommonPoints(const std::vector<const Curve*>& curves,
                                                 bool lower_is_better);

// Moves values that are farther from the median than `most` robust deviations to there. Of runs of two sides
// that is for tests alone: all runs of the smaller side may be far away, and what they lose would be too
// small. REQUIRES: values is not empty.
std::vector<double> DrawIn(std::vector<double> values, double most);

// The kind of difference that a score measures.
enum class Shape {
  kSteps,   // a share of the steps is lost
  kPart,    // a part of the curve moved, or all of it
  kTarget,  // runs that stop at a target stop earlier or later
};

struct Score {
  Shape shape = Shape::kPart;
  // Indices of points, for kPart.
  size_t first = 0;
  size_t last = 0;
  // The share of the error at which it counts as much as the others at theirs.
  double share = 0;
  // 1 or -1; the score is multiplied by it, so that more is worse. Steps lost by curves that get worse are
  // better.
  double worse = 1;
  // The index of the score for the same that takes points to be independent: its own, if it does so itself.
  size_t plain = 0;
  // For kSteps: the score of a run that loses all its steps, if its curve were straight.
  double per_share_lost = 0;
};

struct RunScores {
  std::vector<Score> scores;
  std::vector<double> values;    // row-major [runs, scores], of curves that are drawn in: for tests
  std::vector<double> measured;  // the same of curves as they are: for how much
  // So many points that do not depend on each other vary as much together.
  double effective_points = 1;
};

// stops: the last x of each run if all stopped at a target, else empty. has_outliers: true if values far from
// the median say nothing of the sides, as those of one run among others; false where one run is the side.
RunScores ScoreRuns(const CommonPoints& points, const std::vector<double>& stops, bool has_outliers);

// Returns the last x of each run, if each run ended when its curve first reached a value that is the same for
// all; else empty.
std::vector<double> StopsAtTarget(const std::vector<const Curve*>& curves, bool lower_is_better);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_COMMON_POINTS_H_
