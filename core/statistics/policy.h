// Whom verdicts about time name: how often they may be wrong, and what is too small for a name. A threshold
// is changed here, and nowhere else.

#ifndef OTT_CORE_STATISTICS_POLICY_H_
#define OTT_CORE_STATISTICS_POLICY_H_

namespace ott {

// How often a gather names a rank although all ranks are alike: one for its work, one for any measurement,
// over all ranks and measurements, and one that the others wait for, over all ranks and collective
// measurements.
inline constexpr double kWorkError = 0.0025;
inline constexpr double kMeasurementError = 0.005;
inline constexpr double kHoldUpError = 0.0025;
// The share of these errors that one window between two gathers may have; a run has many windows.
inline constexpr double kWindowErrorShare = 0.05;

// The error rate of the intervals that are shown.
inline constexpr double kIntervalError = 0.05;

// A smaller excess is not named, however sure it is: smaller than this share of the others' median; and, for
// the work or for one measurement, than this share of a mean iteration.
inline constexpr double kMinExcess = 0.05;
inline constexpr double kMinWorkShare = 0.01;
inline constexpr double kMinMeasurementShare = 0.001;

// A rank holds the others up only if they wait for it longer than the clocks' error, and longer than this
// share of a mean iteration.
inline constexpr double kHoldUpIterationShare = 0.02;

// Ranks leave a collective one after the other, always in the same order: what that is expected to do, in
// seconds, as a standard deviation.
inline constexpr double kExpectedLateness = 2e-6;

// A single pause gets a line if it is at least so many seconds, and so many mean iterations, long.
inline constexpr double kPauseSeconds = 1;
inline constexpr double kPauseIterations = 10;

// A rank's CPU counts as taken if others had it for at least this share of the time of its own work.
inline constexpr double kTakenShare = 0.1;

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_POLICY_H_
