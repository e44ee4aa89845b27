// One time for all ranks: what rank 0's clock shows when this rank's shows something.

#ifndef OTT_DIST_COMM_CLOCK_ALIGN_H_
#define OTT_DIST_COMM_CLOCK_ALIGN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/deadline.h"

namespace ott {

// A moment on rank 0's clock.
struct AlignedTime {
  int64_t nanoseconds = 0;
  // The truth is no farther away than this, provided that clocks drift evenly.
  int64_t error_bound_nanoseconds = 0;
};

// Estimates a rank's offset from rank 0 as NTP does (Mills, RFC 5905): rank 0's answer to a ping was given
// between the ping's leaving and its return, so its middle is off by half the round trip at most. Of many
// pings the quickest counts. The drift is known after two measurements so far apart in time that their errors
// matter less than kUnknownDrift; until then, the error bound allows for a drift of that much. Ranks that
// read the same clock as rank 0, since one kernel runs them, need no ping and have no error.
//
// Not thread-safe.
//
//   ClockAligner aligner(*ranks->Split(0, 0, deadline));
//   aligner.Measure(100, deadline);  // at the start, and now and then
//   ...
//   const AlignedTime when = aligner.ToRankZero(local_time).value();
class ClockAligner {
 public:
  // Nanoseconds.
  using Clock = std::function<int64_t()>;

  // The drift of two quartz clocks, each off by 50 ppm at most.
  static constexpr double kUnknownDrift = 100e-6;

  // The number of ranks that each call measures after the first, so that a call takes as long for any number
  // of ranks.
  static constexpr int kRanksPerRound = 32;

  // ranks: a communicator of its own, from Split(). clock: std::chrono::steady_clock where it is empty.
  // unknown_drift: tests have worse clocks.
  explicit ClockAligner(std::unique_ptr<Communicator> ranks, Clock clock = {},
                        double unknown_drift = kUnknownDrift);

  // Collective. The ranks that read another clock than rank 0 send it num_pings pings each, one rank after
  // the other: all of them in the first call, kRanksPerRound of them in later ones. DEADLINE_EXCEEDED if by
  // the deadline rank 0 did not hear all ranks, or this rank did not hear rank 0; the ranks that were heard
  // are measured nevertheless. A rank that did not answer is waited for again only in the fourth, eighth,
  // sixteenth ... call. REQUIRES: num_pings > 0
  absl::Status Measure(int num_pings, Deadline deadline);

  // Returns FAILED_PRECONDITION before the first measurement of this rank.
  absl::StatusOr<AlignedTime> ToRankZero(int64_t local_nanoseconds) const;

  // Returns true if that needs no estimate: on rank 0, and where the kernel is the same. False before the
  // first measurement.
  bool ReadsClockOfRankZero() const { return reads_clock_of_rank_zero_; }

  // Seconds that rank 0's clock gains in one second of this rank's; nothing before two measurements tell.
  std::optional<double> drift() const;

 private:
  struct Sample {
    int64_t local = 0;   // when it was taken
    int64_t offset = 0;  // rank 0's clock less this one's
    int64_t error = 0;
  };

  absl::Status FindOtherClocks(Deadline deadline);
  // Returns those of other_clocks_ whose turn it is.
  std::vector<int> RanksOfRound() const;
  absl::Status Answer(int rank, int num_pings, Deadline deadline);
  absl::Status Ping(int num_pings, Deadline deadline);

  const std::unique_ptr<Communicator> ranks_;
  const Clock clock_;
  const double unknown_drift_;
  // Equal on ranks that read one clock; empty if that is not known.
  const std::string clock_id_;
  int round_ = 0;
  std::optional<std::vector<int>> other_clocks_;  // ranks that read another than rank 0
  bool reads_clock_of_rank_zero_;
  std::set<int> silent_;  // ranks that were waited for in vain
  std::optional<Sample> first_;
  std::optional<Sample> last_;
};

}  // namespace ott

#endif  // OTT_DIST_COMM_CLOCK_ALIGN_H_
