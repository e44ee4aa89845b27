// The times of single iterations, in bounded memory.

#ifndef OTT_CORE_STOPWATCH_ITERATION_SERIES_H_
#define OTT_CORE_STOPWATCH_ITERATION_SERIES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ott {

// Keeps every value up to `limit` of them, then every second, then every fourth, and so on. Memory for
// `limit` values is taken at construction.
//
// A value type; not synchronised.
class IterationSeries {
 public:
  // limit: 0 keeps nothing, otherwise at least 2.
  explicit IterationSeries(size_t limit = 0);

  void Append(float seconds);

  // values()[k] is of iteration k * stride(), counted from the first that was appended.
  int64_t stride() const { return stride_; }
  const std::vector<float>& values() const { return values_; }

 private:
  size_t limit_;
  int64_t stride_ = 1;
  int64_t num_appended_ = 0;
  std::vector<float> values_;
};

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_ITERATION_SERIES_H_
