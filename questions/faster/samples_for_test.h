// Draws processes and their times by chance, the same for the same seed.

#ifndef OTT_QUESTIONS_FASTER_SAMPLES_FOR_TEST_H_
#define OTT_QUESTIONS_FASTER_SAMPLES_FOR_TEST_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/samples.h"

namespace ott::faster {

class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}

  size_t Below(size_t end) { return random_() % end; }
  bool Coin() { return random_() % 2 == 0; }
  // Returns 0.01 to 0.99.
  double Number() { return static_cast<double>(1 + random_() % 99) / 100; }
  // Returns a number of mean 0 and standard deviation 1.
  double Normal() { return normal_(random_); }
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    std::shuffle(values.begin(), values.end(), random_);
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

inline Process ProcessOf(const std::string& name,
                         const std::map<std::string, std::vector<double>>& measurements) {
  Process process;
  process.name = name;
  for (const auto& [measurement, seconds] : measurements)
    process.measurements.push_back({measurement, seconds});
  return process;
}

// Draws processes of one iteration of about a second, B's of `ratio` seconds; they differ by 1 %.
inline Samples MakeSamples(Chance& chance, size_t runs, double ratio, size_t num_measurements = 1) {
  Samples samples;
  for (size_t run = 0; run < runs; ++run) {
    for (auto* side : {&samples.a, &samples.b}) {
      std::map<std::string, std::vector<double>> measurements;
      for (size_t i = 0; i < num_measurements; ++i) {
        measurements[absl::StrCat("m", i)] = {(side == &samples.b ? ratio : 1) *
                                              std::exp(0.01 * chance.Normal())};
      }
      side->push_back(ProcessOf(absl::StrCat(side == &samples.a ? "a" : "b", run), measurements));
    }
  }
  samples.primary = "m0";
  return samples;
}

inline void RunInBlocks(Samples* samples) {
  for (auto* side : {&samples->a, &samples->b}) {
    for (size_t i = 0; i < side->size(); ++i) (*side)[i].block = i / 2;
  }
}

inline Comparison MustCompare(const Samples& samples, const FasterOptions& options = FasterOptions()) {
  return Compare(samples, options).value();
}

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_SAMPLES_FOR_TEST_H_
