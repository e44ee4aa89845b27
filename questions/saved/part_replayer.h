// Replays a job with some of it mended, and says what that saves.

#ifndef OTT_QUESTIONS_SAVED_PART_REPLAYER_H_
#define OTT_QUESTIONS_SAVED_PART_REPLAYER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ott/questions/saved/replay_job.h"
#include "ott/questions/saved/scenario.h"

namespace ott::saved {

// A share of a step, with its 95 % interval, which is infinite if there is but one batch of steps.
struct Saving {
  double share = 0;
  double low = 0;
  double high = 0;
};

// Something that could be mended.
struct JobPart {
  JobPart(std::string name, std::vector<char> selection)
      : name(std::move(name)), selection(std::move(selection)) {}

  std::string name;
  std::vector<char> selection;
  // The weight of a repair's saving: one that mends less is the better answer where it saves as much.
  double weight = 1;
  double slowdown = 0;
  std::vector<double> slowdown_of_step;
  Saving saving;
  // Seconds of each step if it were mended.
  std::vector<double> mended;
};

double Sum(const std::vector<double>& values);

// Immutable, so thread-safe. The job outlives it.
class PartReplayer {
 public:
  explicit PartReplayer(const ReplayJob& job);

  const ScenarioReplayer& scenarios() const { return replayer_; }
  // Seconds of each step: as it was, and if all ranks were alike.
  const std::vector<double>& measured() const { return measured_; }
  const std::vector<double>& ideal() const { return ideal_; }

  // Sets what the parts would slow the ideal job down by.
  void FindSlowdowns(std::vector<JobPart>& parts) const;
  // Sets what the parts would save if they were mended; only_if_sure: as Scenario's.
  void FindSavings(std::vector<JobPart>& parts, bool only_if_sure = true) const;
  // replayed: seconds of each step.
  Saving SavingOf(const std::vector<double>& replayed) const;
  // Returns what mending `more` saves of what is left if `less` is mended. REQUIRES: FindSavings() of both
  Saving SavingBeyond(const JobPart& less, const JobPart& more) const;
  // Returns what share of all that could be saved is saved if these ranks are ideal; nullopt if there is
  // nothing to save.
  std::optional<double> ShareOf(absl::FunctionRef<bool(int rank)> is_mended) const;
  // Sorts ranks by what their operations take longer than those of others, most first.
  void SortByExcess(std::vector<size_t>& ranks) const;

 private:
  std::vector<double> ByBatch(const std::vector<double>& steps) const;

  const ReplayJob& job_;
  const ScenarioReplayer replayer_;
  std::vector<double> measured_;
  std::vector<double> ideal_;
};

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_PART_REPLAYER_H_
