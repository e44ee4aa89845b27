// Random tensors, trees, and damaged files, against oracles that are short and slow.

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/compare/compare.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/tensor/element.h"

namespace ott {
namespace {

using Random = std::mt19937_64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

MATCHER_P(IsNearly, expected, "") {
  const bool is_close = std::abs(arg - expected) <= 1e-12 * std::max(1.0, expected);
  return arg == expected || (std::isfinite(expected) && is_close);
}

// The result of CompareTensors() by its definition.
struct Expected {
  CompareStatus status = CompareStatus::kBitwiseEqual;
  int64_t num_mismatched = 0;
  int64_t num_bits_differ = 0;
  // The largest errors of finite elements, each with the first element that has it.
  std::optional<std::pair<double, int64_t>> max_abs_error;
  std::optional<std::pair<double, int64_t>> max_rel_error;
  double mean_abs_error = 0;
  double root_mean_square_error = 0;
  double cosine_similarity = 0;
  double passing_atol = 0;
  double passing_rtol = 0;
  std::optional<int64_t> first_bits;
  // NaN and infinities of the reference and of the current.
  int64_t num_nan[2] = {};
  int64_t num_inf[2] = {};
  uint64_t max_ulp_distance = 0;
  // Errors and places of mismatches, the largest first.
  std::vector<std::pair<double, int64_t>> worst;
};

void NoteLargest(double error, size_t position, std::optional<std::pair<double, int64_t>>& largest) {
  if (!largest || error > largest->first) largest.emplace(error, position);
}

// Counts the floating-point numbers from a to b, by which their bits differ on either side of 0.
template <typename T>
uint64_t UlpsBetween(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const auto place = [](T number) {
    Bits bits;
    std::memcpy(&bits, &number, sizeof(T));
    return static_cast<uint64_t>(bits < 0 ? std::numeric_limits<Bits>::min() - bits : bits);
  };
  return a < b ? place(b) - place(a) : place(a) - place(b);
}

template <typename T>
Expected Expect(const std::vector<T>& reference, const std::vector<T>& current, const Tolerance& tolerance) {
  Expected expected;
  bool all_equal = true;
  double sum = 0, sum_of_squares = 0, num_finite = 0, products = 0, squares_a = 0, squares_b = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double a = reference[i], b = current[i];
    const bool same_bits = std::memcmp(&reference[i], &current[i], sizeof(T)) == 0;
    expected.num_bits_differ += same_bits ? 0 : 1;
    if (!same_bits && !expected.first_bits) expected.first_bits = i;
    const bool both_nan = std::isnan(a) && std::isnan(b);
    const bool is_equal = a == b || (both_nan && tolerance.nan_equal);
    const bool is_finite = std::isfinite(a) && std::isfinite(b);
    bool matches = tolerance.bitwise ? same_bits : is_equal;
    for (const int side : {0, 1}) {
      expected.num_nan[side] += std::isnan(side == 0 ? a : b);
      expected.num_inf[side] += std::isinf(side == 0 ? a : b);
    }
    if (is_finite) {
      const double error = std::abs(b - a);
      ++num_finite;
      expected.max_ulp_distance = std::max(expected.max_ulp_distance, UlpsBetween(reference[i], current[i]));
      sum += error;
      products += a * b;
      squares_a += a * a;
      squares_b += b * b;
      sum_of_squares += error * error;
      NoteLargest(error, i, expected.max_abs_error);
      NoteLargest(error == 0 ? 0 : error / std::abs(a), i, expected.max_rel_error);
      if (!tolerance.bitwise) {
        matches = matches || error <= tolerance.atol + tolerance.rtol * std::abs(a);
        expected.passing_atol = std::max(expected.passing_atol, error - tolerance.rtol * std::abs(a));
        if (error > tolerance.atol) {
          expected.passing_rtol = std::max(expected.passing_rtol, (error - tolerance.atol) / std::abs(a));
        }
      }
    } else if (!is_equal) {
      expected.passing_atol = expected.passing_rtol = kInfinity;
    }
    all_equal = all_equal && (is_equal || same_bits);
    expected.num_mismatched += matches ? 0 : 1;
    if (!matches) expected.worst.emplace_back(is_finite ? std::abs(b - a) : kInfinity, i);
  }
  expected.mean_abs_error = sum / num_finite;
  expected.root_mean_square_error = std::sqrt(sum_of_squares / num_finite);
  expected.cosine_similarity = products / std::sqrt(squares_a * squares_b);
  std::stable_sort(expected.worst.begin(), expected.worst.end(),
                   [](const auto& one, const auto& other) { return one.first > other.first; });
  if (expected.num_mismatched > 0) {
    expected.status = CompareStatus::kMismatch;
  } else if (expected.num_bits_differ > 0) {
    expected.status = all_equal ? CompareStatus::kEqual : CompareStatus::kWithinTolerance;
  }
  return expected;
}

template <typename T>
void CompareRandomTensors(int num_trials, uint64_t seed) {
  Random random(seed);
  std::normal_distribution<double> normal;
  const T specials[] = {0,
                        T(-0.0),
                        std::numeric_limits<T>::quiet_NaN(),
                        std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::denorm_min()};
  for (int trial = 0; trial < num_trials; ++trial) {
    // Around the kernels' blocks.
    const size_t size = 1 + random() % (trial % 3 == 0 ? 20000 : 150);
    Tolerance tolerance;
    tolerance.atol = random() % 3 == 0 ? 0 : 0.01;
    tolerance.rtol = random() % 3 == 0 ? 0 : 0.1;
    tolerance.nan_equal = random() % 2 == 0;
    tolerance.bitwise = random() % 5 == 0;
    // The kernels take blocks without them.
    const bool has_specials = random() % 4 == 0;
    // All, or zeros alone.
    const size_t num_specials = random() % 2 == 0 ? 2 : std::size(specials);
    std::vector<T> reference(size), current(size);
    // The errors of half of the tensors are within the tolerance.
    const double most_of_errors = random() % 2 == 0 ? 0.02 : 0.002;
    double size_of_numbers = 1, size_of_errors = 1;
    for (size_t i = 0; i < size; ++i) {
      // Now and then of all sizes, so that neither the largest error nor the largest ratio decides alone.
      if (trial % 3 == 0 && i % 1000 == 0) {
        size_of_numbers = std::exp(3 * normal(random));
        size_of_errors = std::exp(-2 * std::abs(normal(random)));
      }
      reference[i] = static_cast<T>(size_of_numbers * normal(random));
      if (has_specials && random() % 50 == 0) reference[i] = specials[random() % num_specials];
      current[i] = reference[i];
      if (trial % 4 != 0 && random() % 3 == 0) {
        // Errors near rtol, so that the largest one may be within the tolerance.
        const double error = trial % 3 == 0
                                 ? most_of_errors * size_of_errors * (static_cast<double>(reference[i]) + 1)
                                 : 0.004;
        current[i] += static_cast<T>(error * normal(random));
      }
      if (trial % 4 == 2 && random() % size == 0) current[i] = specials[random() % std::size(specials)];
    }
    const Expected expected = Expect(reference, current, tolerance);
    // Now and then each second element of a larger tensor.
    const int64_t stride = 1 + static_cast<int64_t>(random() % 3) / 2;
    std::vector<T> spread(size * stride);
    for (size_t i = 0; i < size; ++i) spread[i * stride] = current[i];
    TensorCompareOptions options;
    options.tolerance = tolerance;
    options.num_worst = random() % 2 == 0 ? 0 : 5;
    const TensorComparison result = CompareTensors(
        TensorView(reference.data(), {static_cast<int64_t>(size)}),
        TensorView(spread.data(), DTypeOf<T>(), {static_cast<int64_t>(size)}, {stride}), options);
    const std::string context = absl::StrCat("trial ", trial, ", ", size, " elements");
    ASSERT_EQ(result.status, expected.status) << context;
    ASSERT_EQ(result.num_bits_differ, expected.num_bits_differ) << context;
    if (!Passes(result.status)) {
      ASSERT_EQ(result.num_mismatched, expected.num_mismatched) << context;
    }
    ASSERT_EQ(result.num_nan_reference, expected.num_nan[0]) << context;
    ASSERT_EQ(result.num_nan_current, expected.num_nan[1]) << context;
    ASSERT_EQ(result.num_inf_reference, expected.num_inf[0]) << context;
    ASSERT_EQ(result.num_inf_current, expected.num_inf[1]) << context;
    ASSERT_EQ(result.max_ulp_distance, expected.max_ulp_distance) << context;
    if (expected.num_bits_differ == 0) continue;
    ASSERT_EQ(result.max_abs_error.has_value(), expected.max_abs_error.has_value()) << context;
    if (expected.max_abs_error) {
      ASSERT_NEAR(result.max_abs_error->error, expected.max_abs_error->first, 1e-15) << context;
      ASSERT_EQ(result.max_abs_error->position, expected.max_abs_error->second) << context;
      ASSERT_THAT(result.max_rel_error->error, IsNearly(expected.max_rel_error->first)) << context;
      ASSERT_EQ(result.max_rel_error->position, expected.max_rel_error->second) << context;
      ASSERT_THAT(result.mean_abs_error, IsNearly(expected.mean_abs_error)) << context;
      ASSERT_THAT(result.root_mean_square_error, IsNearly(expected.root_mean_square_error)) << context;
    }
    if (!std::isnan(expected.cosine_similarity)) {
      ASSERT_NEAR(result.cosine_similarity, expected.cosine_similarity, 1e-12) << context;
    }
    ASSERT_EQ(result.first_bit_difference->element.position, *expected.first_bits) << context;
    T flipped = reference[*expected.first_bits];
    for (const int bit : result.first_bit_difference->flipped_bits) {
      reinterpret_cast<unsigned char*>(&flipped)[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    }
    ASSERT_EQ(std::memcmp(&flipped, &current[*expected.first_bits], sizeof(T)), 0) << context;
    const size_t num_worst = std::min<size_t>(options.num_worst, expected.worst.size());
    ASSERT_EQ(result.worst.size(), num_worst) << context;
    for (size_t i = 0; i < num_worst; ++i)
      ASSERT_EQ(result.worst[i].position, expected.worst[i].second) << context << ", worst " << i;
    if (!tolerance.bitwise) {
      ASSERT_THAT(result.passing_atol, IsNearly(expected.passing_atol)) << context;
      ASSERT_THAT(result.passing_rtol, IsNearly(expected.passing_rtol)) << context;
    }
  }
}

TEST(CompareTensors, SaysOfRandomFloatsWhatTheDefinitionSays) { CompareRandomTensors<float>(300, 1); }
TEST(CompareTensors, SaysOfRandomDoublesWhatTheDefinitionSays) { CompareRandomTensors<double>(300, 2); }

// A tree as it would be printed, and the elements that its tensors view.
struct Tree {
  Value value;
  std::string text;
};

// Numbers that live as long as the test.
const float* Numbers() {
  static const std::vector<float>& numbers = *[] {
    auto* const made = new std::vector<float>(64);
    for (size_t i = 0; i < made->size(); ++i) (*made)[i] = static_cast<float>(i);
    return made;
  }();
  return numbers.data();
}

// Names that paths, shells and files take for something else.
const char* const kNames[] = {"a",     "b.c",   "x/y",   "..", "",     "[0]",
                              "ta\nb", "größe", "grads", "*",  "\xff", "%s"};

Tree RandomTree(Random& random, int depth) {
  switch (depth == 0 ? random() % 4 : random() % 6) {
    case 0: {
      const auto size = static_cast<int64_t>(1 + random() % 3);
      const auto first = random() % 4;
      return {TensorView(Numbers() + first, {size}), absl::StrCat("tensor ", first, " ", size)};
    }
    case 1: {
      const auto number = static_cast<int64_t>(random() % 3);
      return {number, absl::StrCat("number ", number)};
    }
    case 2: {
      const std::string text(random() % 3, 'x');
      return {text, absl::StrCat("text ", text)};
    }
    case 3: {
      // Compared as the number that it is.
      const bool flag = random() % 2 == 0;
      return {flag, absl::StrCat("number ", flag)};
    }
    case 4: {
      Value::List list;
      std::string text = "[";
      for (uint64_t i = random() % 3; i > 0; --i) {
        Tree element = RandomTree(random, depth - 1);
        list.push_back(std::move(element.value));
        absl::StrAppend(&text, element.text, ",");
      }
      // Lists of numbers are one tensor; a text keeps it a list.
      list.push_back(Value("end"));
      return {list, text + "]"};
    }
    default: {
      ValueMap map;
      std::string text = "{";
      std::vector<std::string> names(std::begin(kNames), std::end(kNames));
      std::shuffle(names.begin(), names.end(), random);
      names.resize(random() % 4);
      std::sort(names.begin(), names.end());
      for (const std::string& name : names) {
        Tree element = RandomTree(random, depth - 1);
        map.Insert(name, std::move(element.value));
        absl::StrAppend(&text, name, ":", element.text, ",");
      }
      return {map, text + "}"};
    }
  }
}

TEST(CompareTrees, AreEqualIfTheyPrintTheSame) {
  Random random(3);
  int num_equal = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const Random before = random;
    const Tree a = RandomTree(random, 3);
    // Half of the time made of the same numbers, but for some that are drawn anew.
    Random again = trial % 2 == 0 ? before : random;
    Tree b = RandomTree(again, 3);
    const TreeComparison comparison = CompareTrees(a.value, b.value);
    ASSERT_EQ(comparison.verdict() == Verdict::kEqual, a.text == b.text) << a.text << "\n" << b.text;
    ASSERT_EQ(CompareTrees(b.value, a.value).verdict() == Verdict::kEqual, a.text == b.text);
    num_equal += a.text == b.text ? 1 : 0;
  }
  EXPECT_GT(num_equal, 1000);
  EXPECT_LT(num_equal, 1900);
}

// A dump of which one byte was changed, or the end cut off, is an error, differs, or reads as the same.
TEST(CompareDumps, OfADamagedFileIsEqualOnlyIfWhatIsReadIsTheSame) {
  Random random(4);
  const std::string dir = testing::TempDir() + "/damaged";
  int num_seen = 0;
  for (const DumpFormat format :
       {DumpFormat::kBinary, DumpFormat::kNpy, DumpFormat::kSafetensors, DumpFormat::kJson}) {
    std::filesystem::remove_all(dir);
    const Value tree = ValueMap{{"weights", TensorView(Numbers(), {4, 5})},
                                {"rate", 0.25},
                                {"note", "text"},
                                {"b", TensorView(Numbers(), {3})}};
    DumpContents contents;
    contents.tensors.tree = &tree;
    contents.tensors.format = [format](std::string_view) { return format; };
    ASSERT_TRUE(WriteDump(dir + "/good", contents).ok());
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(dir + "/good"))
      files.push_back(entry.path().filename());
    std::sort(files.begin(), files.end());
    for (int trial = 0; trial < 150; ++trial) {
      std::filesystem::remove_all(dir + "/bad");
      std::filesystem::copy(dir + "/good", dir + "/bad");
      const std::string path = dir + "/bad/" + files[random() % files.size()];
      std::string bytes = *ReadFile(path);
      const size_t at = random() % bytes.size();
      if (trial % 3 == 0) {
        bytes.resize(at);
      } else {
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      }
      ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
      const TreeComparison comparison = CompareDumps(dir + "/good", dir + "/bad");
      if (comparison.verdict() != Verdict::kEqual) {
        ++num_seen;
        continue;
      }
      const absl::StatusOr<Dump> dump = ReadDump(dir + "/bad");
      ASSERT_TRUE(dump.ok()) << path << " at " << at << ": " << dump.status();
      CompareOptions exact;
      exact.tensors.tolerance.bitwise = true;
      ASSERT_EQ(CompareTrees(tree, dump->tensors, exact).verdict(), Verdict::kEqual) << path << " at " << at;
    }
  }
  EXPECT_GT(num_seen, 400);
}

}  // namespace
}  // namespace ott
