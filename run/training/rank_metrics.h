// The metrics of a rank in a run, such as its loss, a line for each iteration.

#ifndef OTT_RUN_TRAINING_RANK_METRICS_H_
#define OTT_RUN_TRAINING_RANK_METRICS_H_

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace ott {

// Not thread-safe.
class RankMetrics {
 public:
  // The file, which is made with the first line; a run that goes on adds to it.
  explicit RankMetrics(std::string path) : path_(std::move(path)) {}

  // Sets a value of the iteration that goes on; a second value of it replaces the first.
  void Set(std::string_view name, double value) { values_.insert_or_assign(std::string(name), value); }

  // Writes {"step": iteration, NAME: value, ...} if a metric was set; numbers that are not finite as strings,
  // as protobuf's JSON does.
  absl::Status FinishIter(int64_t iteration);

 private:
  const std::string path_;
  std::ofstream file_;
  std::map<std::string, double> values_;
};

}  // namespace ott

#endif  // OTT_RUN_TRAINING_RANK_METRICS_H_
