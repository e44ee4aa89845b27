// The handwritten digits of data/digits.csv.gz (data/README.md has source and licence).

#ifndef OTT_EXAMPLES_TRAIN_DIGITS_DIGITS_H_
#define OTT_EXAMPLES_TRAIN_DIGITS_DIGITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ott::examples {

inline constexpr int kPixels = 64;
inline constexpr int kClasses = 10;

struct Digits {
  std::vector<float> images;  // row-major [count, kPixels], from 0 to 1
  std::vector<int> labels;    // [count], from 0 to 9

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

// Reads gzipped lines of kPixels grey values from 0 to 16 and a label, comma-separated.
// NOT_FOUND if there is no such file, DATA_LOSS naming the line that is not of this form.
absl::StatusOr<Digits> ReadDigits(const std::string& path);

struct Split {
  Digits train;
  Digits test;
};

// Every fifth image is for testing; the file's order mixes writers and digits.
Split SplitDigits(const Digits& digits);

// `count` images of `digits` drawn without replacement within an epoch; the order depends on seed and epoch
// alone, so ranks that know both agree without talking.
class BatchSampler {
 public:
  // REQUIRES: 0 < batch_size <= digits.count(); digits outlives the sampler.
  BatchSampler(const Digits& digits, int64_t batch_size, uint64_t seed);

  // Returns the part [rank * batch_size / world_size, (rank + 1) * batch_size / world_size) of the batch of
  // an iteration.
  Digits Shard(int64_t iteration, int rank, int world_size) const;

 private:
  const Digits& digits_;
  int64_t batch_size_;
  uint64_t seed_;
};

}  // namespace ott::examples

#endif  // OTT_EXAMPLES_TRAIN_DIGITS_DIGITS_H_
