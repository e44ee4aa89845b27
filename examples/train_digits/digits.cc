#include "examples/train_digits/digits.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"

namespace ott::examples {
namespace {

// Appends one line of the file; false if it is not of the expected form.
bool ParseLine(const char* line, Digits* digits) {
  const char* position = line;
  for (int i = 0; i <= kPixels; ++i) {
    char* end = nullptr;
    const long value = std::strtol(position, &end, 10);
    const bool is_label = i == kPixels;
    const char separator = is_label ? '\n' : ',';
    if (end == position || *end != separator || value < 0 || value > (is_label ? kClasses - 1 : 16))
      return false;
    if (is_label) {
      digits->labels.push_back(static_cast<int>(value));
    } else {
      digits->images.push_back(static_cast<float>(value) / 16);
    }
    position = end + 1;
  }
  return true;
}

void AppendImage(const Digits& from, int64_t index, Digits* to) {
  const auto first = from.images.begin() + index * kPixels;
  to->images.insert(to->images.end(), first, first + kPixels);
  to->labels.push_back(from.labels[index]);
}

}  // namespace

absl::StatusOr<Digits> ReadDigits(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr)
    return absl::NotFoundError(absl::StrCat(path, ": cannot be opened; --data names the file"));
  Digits digits;
  char line[1024];
  while (gzgets(file.get(), line, sizeof(line)) != nullptr) {
    if (!ParseLine(line, &digits)) {
      return absl::DataLossError(absl::StrCat(path, ":", digits.count() + 1, ": not ", kPixels,
                                              " grey values from 0 to 16 and a label"));
    }
  }
  if (!gzeof(file.get()) || digits.count() == 0) {
    return absl::DataLossError(absl::StrCat(path, ": truncated or damaged after line ", digits.count()));
  }
  return digits;
}

Split SplitDigits(const Digits& digits) {
  Split split;
  for (int64_t i = 0; i < digits.count(); ++i)
    AppendImage(digits, i, i % 5 == 4 ? &split.test : &split.train);
  return split;
}

BatchSampler::BatchSampler(const Digits& digits, int64_t batch_size, uint64_t seed)
    : digits_(digits), batch_size_(batch_size), seed_(seed) {
  OTT_CHECK(batch_size > 0 && batch_size <= digits.count())
      << batch_size << " of " << digits.count() << " images";
}

Digits BatchSampler::Shard(int64_t iteration, int rank, int world_size) const {
  const int64_t batches_per_epoch = digits_.count() / batch_size_;
  std::vector<int64_t> order(digits_.count());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed_ * 1000003 + static_cast<uint64_t>(iteration / batches_per_epoch));
  std::shuffle(order.begin(), order.end(), random);

  const int64_t batch_begin = iteration % batches_per_epoch * batch_size_;
  const int64_t begin = batch_begin + rank * batch_size_ / world_size;
  const int64_t end = batch_begin + (rank + 1) * batch_size_ / world_size;
  Digits shard;
  for (int64_t i = begin; i < end; ++i) AppendImage(digits_, order[i], &shard);
  return shard;
}

}  // namespace ott::examples
