// Finds who holds the others up, by when the ranks came to collective measurements.

#ifndef OTT_QUESTIONS_WAITING_ARRIVAL_TRACKER_H_
#define OTT_QUESTIONS_WAITING_ARRIVAL_TRACKER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/stopwatch/own_time.h"
#include "ott/core/stopwatch/quantile_sketch.h"
#include "ott/dist/stats/arrival_summary.h"
#include "ott/dist/stats/cluster_stats.pb.h"

namespace ott {

// Adds up summaries over the run, on rank 0. An interval counts if all ranks came to it that came to any
// interval of its measurement in the same gather.
//
// A rank's cost is how much later than the next to last it comes, without the time for which it had no CPU or
// was held up itself: in all intervals of an iteration together, as a rank may be late at one of several. The
// mean of what the other ranks cost in the same way is subtracted. So it is nothing for ranks that are alike,
// however few they are and whatever the noise. If a rank leaves before the last one
// comes, not all wait for it, and that interval costs nothing. If ranks that do unlike work meet, as a send
// and its receive, one waits for the other by design.
//
// Stated is what all would be spared if the rank were like the others. One of n that are alike still costs
// most in one of n iterations. So the rank is late by the cost that is exceeded in so many, and what exceeds
// it is noise, which stays.
//
// Medians tell the cost of a rank, which a stall does not move. So a rank that is late by little in most
// iterations is named only if another one that is late by much in the rest does not cost as much in sum.
//
// Not thread-safe.
class ArrivalTracker {
 public:
  void Add(const ArrivalSummary& summary);

  // A mean iteration of the run, or of those since the gather before.
  struct MeanIteration {
    double seconds = 0;
    // The CPU time that ranks had while they worked.
    CpuShare cpu;
  };

  // Returns the statistics in order of name; hosts are left empty.
  std::vector<ArrivalStats> Finish(const MeanIteration& of_run, const MeanIteration& recent) const;

 private:
  // Seconds by which a rank cost more than the others in the mean, of the iterations in which it did: in sum,
  // and the most in one.
  struct Caused {
    double seconds = 0;
    double longest = 0;
    // Picoseconds.
    QuantileSketch costs;
    void Add(double cost) {
      seconds += cost;
      if (cost > longest) longest = cost;
      costs.Add(static_cast<uint64_t>(cost * 1e12));
    }
    // Returns the seconds that all would have been spared if the rank were like the others, in sum.
    double Spared(int64_t num_iterations, int64_t num_ranks) const;
  };
  struct Last {
    int64_t num_intervals = 0;
    double after_next = 0;  // seconds, in sum
    double waited = 0;      // by the mean of the others, in sum
    double cost_in_sum = 0;
    // Over the run, in the window that is open, and in the one that was closed last.
    Caused caused;
    Caused caused_since;
    Caused caused_in_window;
    // Its cost in the iteration that is open, and of each before less the mean cost of the others.
    double cost_of_open = 0;
    OwnTimeRecorder cost;
  };
  // An interval in which all waited long for one rank.
  struct Late {
    double seconds = 0;
    int64_t iteration = 0;
    int rank = 0;
  };
  struct Measurement {
    int64_t num_ranks = 0;
    int64_t num_intervals = 0;
    int64_t num_incomplete = 0;
    // Intervals in which somebody left before the last came.
    int64_t num_left = 0;
    int64_t num_iterations = 0;
    // From one of them to the next in the same gather, in sum, and how many such steps there are.
    int64_t stepped = 0;
    int64_t num_steps = 0;
    int64_t first_iteration = 0;
    int64_t last_iteration = -1;
    bool is_mixed = false;
    bool is_open = false;     // an interval of the iteration came
    double cost_of_open = 0;  // of all ranks
    double waited = 0;        // by the mean of all ranks, in sum
    double max_wait = 0;
    double error_bound = 0;    // of its intervals, in sum
    std::map<int, Last> last;  // by rank; those that are seldom last give way to others
    OwnTimeRecorder cost_of_never_last;
    std::vector<Late> latest;  // the longest

    // Returns the iterations of the run, those without the measurement included.
    double NumIterations() const {
      const double step = num_steps > 0 ? static_cast<double>(stepped) / static_cast<double>(num_steps) : 1.0;
      return step * static_cast<double>(num_iterations);
    }
  };

  static void AddInterval(int64_t iteration, const ArrivalSummary::Interval& interval, int64_t error_bound,
                          Measurement& measurement);
  static void FinishIteration(int64_t num_ranks, Measurement& measurement);
  static Last& FindLast(int rank, Measurement& measurement);
  static void FinishLast(const Measurement& measurement, ArrivalStats& stats);
  // The limits that a rank has to exceed. All are seconds of an iteration in which the ranks came to the
  // measurement, but for `least`, which is of any iteration.
  struct HoldUpTest {
    double level = 0;  // one-sided, of each test
    double least = 0;
    double spread = 0;
    double slowdown = 0;
    double share_of_iterations = 0;  // in which they came to it
  };
  HoldUpTest TestOf(const Measurement& measurement, const MeanIteration& iteration, bool is_recent) const;
  // Sets detectable_share and most_caused_share.
  void FindDetectable(const Measurement& measurement, const MeanIteration& iteration,
                      ArrivalStats& stats) const;
  // is_recent: in the last window instead of the whole run.
  void FindHoldUp(const Measurement& measurement, const MeanIteration& iteration, bool is_recent,
                  ArrivalStats& stats) const;
  // Returns true if another rank makes all wait for nearly as long in sum. A single interval does not count.
  static bool AnotherCostsAsMuch(const Measurement& measurement, int rank, bool is_recent);
  // Returns the long waits by rank, in the order of iterations.
  static std::map<int, std::vector<Late>> FindLate(const Measurement& measurement, double iteration_seconds);
  // Returns the seconds of events: waits in iterations in a row are one.
  static std::vector<double> EventsOf(const std::vector<Late>& late);
  // Returns those of other ranks anywhere: where one rank sends to the others, those are late elsewhere.
  std::vector<double> EventsOfOthers(int rank, double iteration_seconds) const;
  void FindHiccups(const Measurement& measurement, double iteration_seconds, ArrivalStats& stats) const;

  std::map<ArrivalSummary::Place, Measurement> measurements_;
};

}  // namespace ott

#endif  // OTT_QUESTIONS_WAITING_ARRIVAL_TRACKER_H_
