// Operations that wait for each other, and how long they take together if each takes so long itself.

#ifndef OTT_QUESTIONS_SAVED_DEPENDENCY_GRAPH_H_
#define OTT_QUESTIONS_SAVED_DEPENDENCY_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace ott::saved {

// An operation starts when all operations that it comes after have ended. It ends its own time later; as a
// member of a group, its own time after the last member of the group has started. So a collective is a group
// of all its ranks' operations, and a receive is a group with its send.
//
// Operations belong to steps, which do not wait for each other. Build, Finish(), then replay as often as
// wanted, with other own times. Thread-compatible.
class DependencyGraph {
 public:
  // Begins a step.
  void AddStep();
  // Adds an operation to the latest step; its number, counted from 0. part: of the job. Parts never wait for
  // each other, and each goes on to its next step by itself, so that the longest of them is the job's time.
  // REQUIRES: AddStep() was called
  int32_t AddOperation(int part = 0);
  // REQUIRES: both are of one step
  void AddDependency(int32_t operation, int32_t comes_after);
  // REQUIRES: all are of one step, and of no group yet
  void AddGroup(absl::Span<const int32_t> operations);

  // REQUIRES: called once, and nothing is added after it. FAILED_PRECONDITION, naming them, if operations
  // wait for each other in a circle.
  absl::Status Finish(absl::FunctionRef<std::string(int32_t operation)> name);

  int num_steps() const { return static_cast<int>(step_begin_.size()) - 1; }
  int32_t num_operations() const { return static_cast<int32_t>(group_.size()); }
  // Returns the operations of a step as [first, second).
  std::pair<int32_t, int32_t> OperationsOf(int step) const {
    return {step_begin_[step], step_begin_[step + 1]};
  }
  // Returns the group; empty for an operation without one.
  absl::Span<const int32_t> GroupOf(int32_t operation) const;
  absl::Span<const int32_t> ComesAfter(int32_t operation) const;

  // So many replays are made at once.
  static constexpr int kLanes = 8;

  // Writes the own seconds of operations [begin, end) in replays [replay, replay + kLanes) to `out`, for each
  // operation those of all replays; what is written for replays beyond the last does not matter.
  using OwnTimes = absl::FunctionRef<void(int replay, int32_t begin, int32_t end, double* out)>;

  // Replays all steps num_replays times; [replay][step] is the step's seconds, from 0 to its last end, of the
  // part that takes longest in that replay.
  std::vector<std::vector<double>> Replay(int num_replays, OwnTimes own_times) const;

  struct Times {
    std::vector<double> start;
    std::vector<double> end;
    // [part][step]; and the part that takes longest.
    std::vector<std::vector<double>> seconds;
    size_t longest_part = 0;
  };
  // Returns one replay in full; seconds from the beginning of each operation's step. delays: what each
  // operation starts after it could, in seconds; empty: nothing.
  Times ReplayInFull(absl::Span<const double> own_times, absl::Span<const double> delays) const;

  // Returns the operations that a step's end waited for, one after the other, the last first, in the part
  // that takes longest. times: of ReplayInFull()
  std::vector<int32_t> CriticalPath(int step, const Times& times) const;

  // Returns the part that takes longest. seconds: [part][step], of one part at least.
  static size_t LongestPart(const std::vector<std::vector<double>>& seconds);

 private:
  absl::Status Sort(int step, absl::FunctionRef<std::string(int32_t)> name);
  absl::Status DescribeCircle(int32_t waiting, const std::vector<int32_t>& num_open, int32_t first,
                              absl::FunctionRef<std::string(int32_t)> name) const;
  template <int lanes>
  void ReplayStep(int step, const double* own_times, const double* delays, double* start, double* end) const;

  // A step begins at [i]; behind them the number of operations.
  std::vector<int32_t> step_begin_ = {0};
  // By operation: the number of the group, or -1; and the part.
  std::vector<int32_t> group_;
  std::vector<int32_t> part_;
  size_t num_parts_ = 1;
  // Until Finish().
  std::vector<std::pair<int32_t, int32_t>> edges_;

  // Operation i comes after before_[before_begin_[i]] to before_[before_begin_[i + 1] - 1].
  std::vector<int32_t> before_begin_;
  std::vector<int32_t> before_;
  std::vector<int32_t> group_begin_ = {0};
  std::vector<int32_t> members_;
  // Operations such that each has those it waits for before it; of a step within its range.
  std::vector<int32_t> order_;
  // By position in order_: whether the operation is the last of its group there.
  std::vector<bool> ends_group_;
};

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_DEPENDENCY_GRAPH_H_
