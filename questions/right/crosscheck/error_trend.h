// Shows how the errors against a reference run grow.

#ifndef OTT_QUESTIONS_RIGHT_CROSSCHECK_ERROR_TREND_H_
#define OTT_QUESTIONS_RIGHT_CROSSCHECK_ERROR_TREND_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ott/dist/check/cross_check.pb.h"

namespace ott::crosscheck {

// The largest error of each tensor over all ranks, by iteration. Not thread-safe.
class ErrorTrend {
 public:
  // Adds one rank's verdict, against a reference.
  void Add(const CrossCheckVerdict& verdict);

  // By the first iteration in which a tensor differs. Ends with a newline. Empty if all is equal bit for
  // bit.
  //
  //   max abs error, of all ranks  from iteration  at 0    at 100    at 190
  //   weights.w1                              100     0  3.05e-07  2.44e-06
  std::string ToString() const;

  // One tensor's errors, for a picture.
  struct Trend {
    std::string tensor;
    int64_t first_iteration = 0;        // in which it is not equal bit for bit
    std::vector<double> max_abs_error;  // in each of the iterations asked for; NaN: it was not compared
  };
  // Returns at most `limit`, evenly spread, with the first and the last.
  std::vector<int64_t> Iterations(size_t limit) const;
  // Returns them by their first iteration, at most `limit`.
  std::vector<Trend> Trends(const std::vector<int64_t>& iterations, size_t limit) const;
  size_t num_tensors() const { return names_.size(); }

 private:
  // Empty if the tensor was not compared.
  struct Tensor {
    std::map<int64_t, double> max_abs_error;
    std::set<int64_t> not_compared;

    int64_t first_iteration() const;
  };

  std::set<int64_t> iterations_;
  std::vector<std::string> names_;  // in the order in which they come
  std::map<std::string, Tensor> tensors_;
};

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_CROSSCHECK_ERROR_TREND_H_
