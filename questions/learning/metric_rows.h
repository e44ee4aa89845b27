// Collects the rows of a file as curves.

#ifndef OTT_QUESTIONS_LEARNING_METRIC_ROWS_H_
#define OTT_QUESTIONS_LEARNING_METRIC_ROWS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ott/questions/learning/curve.h"

namespace ott::learning {

// The names of x, the first that a file has. A name in a file may begin with an underscore.
inline constexpr const char* kXNames[] = {"step",          "global_step", "iteration",         "iter",
                                          "samples_count", "samples",     "train/global_step", "epoch_num",
                                          "epoch",         "wall_time"};

// Returns the place of a name in kXNames, or their number if it is none.
size_t RankOfX(std::string_view name);

class MetricRows {
 public:
  // x: the name that was asked for; empty: by kXNames. source: the file.
  MetricRows(std::string source, std::string x)
      : source_(std::move(source)), x_is_given_(!x.empty()), x_(std::move(x)) {}

  // Adds the metrics of a row; run: which of the file's runs, empty if it has one. Rows without x, or without
  // anything else, are left out.
  void Add(std::string_view run, const std::vector<std::pair<std::string_view, double>>& row);
  void AddPoint(const std::string& run, const std::string& metric, double x, double y);

  // Returns how long a time is after the first one that was given here.
  double SecondsOfRun(double time) {
    if (!first_time_.has_value()) first_time_ = time;
    return time - *first_time_;
  }

  const std::string& x_name() const { return x_; }
  void set_x_name(std::string x) { x_ = std::move(x); }

  // Sorts by x; of several points at one x, the last one that was added stays. Times of day become seconds
  // since the run's first point. INVALID_ARGUMENT if there is no point.
  absl::Status Finish(std::vector<RunCurves>* runs);

 private:
  const std::string source_;
  const bool x_is_given_;
  std::string x_;
  std::optional<double> first_time_;
  std::map<std::string, RunCurves, std::less<>> runs_;
};

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_METRIC_ROWS_H_
