#include "questions/saved/block_pieces.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott::saved {
namespace {

// Some 36 years in nanoseconds; the sum of several still fits into 64 bits.
constexpr int64_t kMaxTime = int64_t{1} << 60;

bool IsTime(int64_t nanoseconds) { return nanoseconds >= 0 && nanoseconds <= kMaxTime; }

absl::Status CheckBlock(const IterationSample& sample, const IterationBlock& block) {
  const int size = block.name_size();
  if (block.start_size() != size || block.duration_size() != size || block.iteration_end().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", sample.rank(), ": a block of ", size, " names, ",
                                                   block.start_size(), " starts and ", block.duration_size(),
                                                   " durations"));
  }
  bool is_valid = IsTime(block.first_iteration()) && IsTime(block.error_bound()) &&
                  block.begin() >= -kMaxTime && block.begin() <= kMaxTime;
  int64_t end = 0;
  for (const int64_t iteration_end : block.iteration_end()) {
    is_valid = is_valid && IsTime(iteration_end) && IsTime(end += iteration_end);
  }
  if (!is_valid) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", sample.rank(), ": the block of iteration ",
                                                   block.first_iteration(), " has impossible times"));
  }
  int64_t start = 0;
  for (int i = 0; i < size; ++i) {
    is_valid = block.name(i) >= 0 && block.name(i) < sample.names_size() && IsTime(block.start(i)) &&
               IsTime(block.duration(i)) && IsTime(start += block.start(i));
    if (!is_valid) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", sample.rank(), ": interval ", i,
                                                     " of iteration ", block.first_iteration(),
                                                     " is invalid"));
    }
  }
  return absl::OkStatus();
}

// Cuts a block of one rank into stretches.
class BlockCutter {
 public:
  BlockCutter(const IterationSample& sample, const IterationBlock& block, const std::vector<int32_t>& names)
      : sample_(sample), block_(block), names_(names) {}

  std::vector<Piece> Cut() {
    int64_t start = 0;
    int64_t iteration_end = block_.iteration_end(0);
    int iteration = 0;
    for (int i = 0; i < block_.name_size(); ++i) {
      start += block_.start(i);
      while (iteration + 1 < block_.iteration_end_size() && start >= iteration_end) {
        ++iteration;
        iteration_end += block_.iteration_end(iteration);
        ordinals_.clear();
      }
      iteration_ = block_.first_iteration() + iteration;
      const int32_t name = block_.name(i);
      const bool is_collective = sample_.collective(name) && name != sample_.observer();
      // Counted also where it is left out: another rank may have it beside the one around it.
      const int32_t ordinal = is_collective ? ordinals_[name]++ : -1;
      // Inside of a collective measurement nothing else counts; of what overlaps one, the rest.
      if (start + block_.duration(i) <= cursor_ && start < cursor_) continue;
      EndRunning(start);
      AddWork(start);
      const int64_t end = start + block_.duration(i);
      if (is_collective) {
        pieces_.push_back({names_[name], ordinal, iteration_, std::max(start, cursor_), end});
        cursor_ = end;
      } else {
        running_.push_back({name, end});
      }
    }
    EndRunning(std::numeric_limits<int64_t>::max());
    AddWork(std::accumulate(block_.iteration_end().begin(), block_.iteration_end().end(), int64_t{0}));
    for (Piece& piece : pieces_) {
      piece.start += block_.begin();
      piece.end += block_.begin();
    }
    return std::move(pieces_);
  }

 private:
  // Ends all that ended by then.
  void EndRunning(int64_t by) {
    while (!running_.empty() && running_.back().second <= by) {
      AddWork(running_.back().second);
      running_.pop_back();
    }
  }

  // Up to there, of the innermost measurement that runs.
  void AddWork(int64_t end) {
    if (end <= cursor_) return;
    pieces_.push_back({running_.empty() ? -1 : names_[running_.back().first], -1, iteration_, cursor_, end});
    cursor_ = end;
  }

  const IterationSample& sample_;
  const IterationBlock& block_;
  const std::vector<int32_t>& names_;
  int64_t cursor_ = 0;
  int64_t iteration_ = 0;
  std::vector<std::pair<int32_t, int64_t>> running_;  // name and end
  std::map<int32_t, int32_t> ordinals_;
  std::vector<Piece> pieces_;
};

}  // namespace

absl::Status CheckSample(const IterationSample& sample) {
  if (sample.collective_size() != sample.names_size()) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", sample.rank(), ": ", sample.names_size(),
                                                   " names, of which ", sample.collective_size(),
                                                   " are collective or not"));
  }
  int64_t before = -1;
  for (const IterationBlock& block : sample.blocks()) {
    OTT_RETURN_IF_ERROR(CheckBlock(sample, block));
    if (block.first_iteration() <= before) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", sample.rank(), ": the block of iteration ",
                                                     block.first_iteration(), " follows that of ", before));
    }
    before = block.first_iteration();
  }
  return absl::OkStatus();
}

std::vector<Piece> CutBlock(const IterationSample& sample, const IterationBlock& block,
                            const std::vector<int32_t>& names) {
  return BlockCutter(sample, block, names).Cut();
}

std::vector<int64_t> TimeInsideOfCollectives(const IterationSample& sample, const IterationBlock& block) {
  struct Interval {
    int64_t end;
    int32_t name;
  };
  const auto is_collective = [&](const Interval& interval) { return sample.collective(interval.name); };
  std::vector<Interval> running;
  std::vector<int64_t> inside(static_cast<size_t>(sample.names_size()));
  int64_t now = 0;
  // Counts the time until `then`, in which the same intervals run.
  const auto add_until = [&](int64_t then) {
    const auto around = std::find_if(running.begin(), running.end(), [&](const Interval& collective) {
      return is_collective(collective) &&
             std::any_of(running.begin(), running.end(), [&](const Interval& other) {
               // `running` is in the order of their beginnings.
               const bool is_around = &other < &collective && other.end >= collective.end;
               return !is_collective(other) && !is_around;
             });
    });
    if (around != running.end()) inside[static_cast<size_t>(around->name)] += then - now;
    now = then;
  };
  const auto end_until = [&](int64_t then) {
    const auto ends_first = [](const Interval& a, const Interval& b) { return a.end < b.end; };
    while (!running.empty()) {
      const auto first = std::min_element(running.begin(), running.end(), ends_first);
      if (first->end > then) break;
      add_until(first->end);
      running.erase(first);
    }
    add_until(then);
  };
  int64_t start = 0;
  int64_t last_end = 0;
  for (int i = 0; i < block.name_size(); ++i) {
    start += block.start(i);
    const int32_t name = block.name(i);
    if (name == sample.observer()) continue;
    end_until(start);
    running.push_back({start + block.duration(i), name});
    last_end = std::max(last_end, running.back().end);
  }
  end_until(last_end);
  return inside;
}

}  // namespace ott::saved
