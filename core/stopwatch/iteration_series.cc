#include "ott/core/stopwatch/iteration_series.h"

#include "ott/core/base/check.h"

namespace ott {

IterationSeries::IterationSeries(size_t limit) : limit_(limit) {
  OTT_CHECK(limit != 1) << "a series of one iteration cannot be thinned out";
  values_.reserve(limit);
}

void IterationSeries::Append(float seconds) {
  const int64_t index = num_appended_++;
  if (limit_ == 0 || index % stride_ != 0) return;
  if (values_.size() == limit_) {
    size_t kept = 0;
    for (size_t i = 0; i < values_.size(); i += 2) values_[kept++] = values_[i];
    values_.resize(kept);
    stride_ *= 2;
    if (index % stride_ != 0) return;
  }
  values_.push_back(seconds);
}

}  // namespace ott
