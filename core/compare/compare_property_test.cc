// Random tensors, trees, and damaged files, against oracles that are short and slow.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/compare/compare.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/core/dump/dump_for_test.h"
#include "ott/core/dump/dump_reader.h"
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

// Returns the nearest T; the next towards 0, if it is of integers.
template <typename T>
T As(double number) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(number);
  } else {
    return FromDouble<T>(number);
  }
}

// Counts the floating-point numbers from a to b, by which their bits differ on either side of 0.
template <typename T>
uint64_t UlpsBetween(T a, T b) {
  using Bits =
      std::conditional_t<sizeof(T) == 2, int16_t, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  const auto place = [](T number) {
    Bits bits;
    std::memcpy(&bits, &number, sizeof(T));
    return bits < 0 ? int64_t{std::numeric_limits<Bits>::min()} - bits : int64_t{bits};
  };
  const auto difference = static_cast<uint64_t>(place(a)) - static_cast<uint64_t>(place(b));
  return a < b ? -difference : difference;
}

template <typename T>
Expected Expect(const std::vector<T>& reference, const std::vector<T>& current, const Tolerance& tolerance) {
  Expected expected;
  bool all_equal = true;
  double sum = 0, sum_of_squares = 0, num_finite = 0, products = 0, squares_a = 0, squares_b = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double a = static_cast<double>(reference[i]), b = static_cast<double>(current[i]);
    const bool same_bits = std::memcmp(&reference[i], &current[i], sizeof(T)) == 0;
    expected.num_bits_differ += same_bits ? 0 : 1;
    if (!same_bits && !expected.first_bits) expected.first_bits = i;
    const bool both_nan = std::isnan(a) && std::isnan(b);
    const bool is_equal = a == b || (both_nan && tolerance.nan_equal);
    const bool is_finite = std::isfinite(a) && std::isfinite(b);
    bool matches = tolerance.bitwise ? same_bits || (both_nan && tolerance.nan_equal) : is_equal;
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
  const double smallest = sizeof(T) == 8 ? 5e-324 : sizeof(T) == 4 ? 1e-45 : 6e-8;
  const double specials[] = {0, -0.0, std::nan(""), -std::nan(""), kInfinity, -kInfinity, smallest};
  const double unit = std::is_integral_v<T> ? 1000 : 1;
  for (int trial = 0; trial < num_trials; ++trial) {
    // Around the kernels' blocks, and now and then none.
    const size_t size = random() % 20 == 0 ? 0 : random() % (trial % 3 == 0 ? 20000 : 150);
    Tolerance tolerance;
    tolerance.atol = random() % 3 == 0 ? 0 : 0.01 * unit;
    tolerance.rtol = random() % 3 == 0 ? 0 : 0.1;
    tolerance.nan_equal = random() % 2 == 0;
    tolerance.bitwise = random() % 5 == 0;
    // The kernels take blocks without them.
    const bool has_specials = random() % 4 == 0 && !std::is_integral_v<T>;
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
      double number = unit * size_of_numbers * normal(random);
      if (has_specials && random() % 50 == 0) number = specials[random() % num_specials];
      reference[i] = As<T>(number);
      number = static_cast<double>(reference[i]);
      current[i] = number == 0 && random() % 2 == 0 ? As<T>(-number) : reference[i];
      if (trial % 4 != 0 && random() % 3 == 0) {
        // Errors near rtol, so that the largest one may be within the tolerance.
        const double error =
            trial % 3 == 0 ? most_of_errors * size_of_errors * (number + unit) : 0.004 * unit;
        current[i] = As<T>(number + error * normal(random));
      }
      if (trial % 4 == 2 && !std::is_integral_v<T> && random() % size == 0)
        current[i] = As<T>(specials[random() % std::size(specials)]);
    }
    const Expected expected = Expect(reference, current, tolerance);
    // Now and then each second element of a larger tensor.
    const int64_t stride = 1 + static_cast<int64_t>(random() % 3) / 2;
    std::vector<T> spread(size * stride);
    for (size_t i = 0; i < size; ++i) spread[i * stride] = current[i];
    TensorCompareOptions options;
    options.tolerance = tolerance;
    options.num_worst = random() % 2 == 0 ? 0 : 5;
    // Rows of three elements, where there are whole ones.
    const int64_t columns = size % 3 == 0 ? 3 : 1, rows = static_cast<int64_t>(size) / columns;
    const auto compare = [&] {
      return CompareTensors(
          TensorView(reference.data(), {rows, columns}),
          TensorView(spread.data(), DTypeOf<T>(), {rows, columns}, {columns * stride, stride}), options);
    };
    const TensorComparison result = compare();
    const std::string context = absl::StrCat("trial ", trial, ", ", size, " elements");
    ASSERT_EQ(result.status, expected.status) << context;
    ASSERT_EQ(result.tolerance.atol, tolerance.atol) << context;
    ASSERT_EQ(result.num_bits_differ, expected.num_bits_differ) << context;
    if (!Passes(result.status)) {
      ASSERT_EQ(result.num_mismatched, expected.num_mismatched) << context;
    }
    ASSERT_EQ(result.num_nan_reference, expected.num_nan[0]) << context;
    ASSERT_EQ(result.num_nan_current, expected.num_nan[1]) << context;
    ASSERT_EQ(result.num_inf_reference, expected.num_inf[0]) << context;
    ASSERT_EQ(result.num_inf_current, expected.num_inf[1]) << context;
    ASSERT_EQ(result.max_ulp_distance.value_or(0), std::is_integral_v<T> ? 0 : expected.max_ulp_distance)
        << context;
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
    const T first_reference = reference[*expected.first_bits], first_current = current[*expected.first_bits];
    std::optional<uint64_t> ulps;
    if (!std::is_integral_v<T> && !std::isnan(static_cast<double>(first_reference)) &&
        !std::isnan(static_cast<double>(first_current))) {
      ulps = UlpsBetween(first_reference, first_current);
    }
    ASSERT_EQ(result.first_bit_difference->ulp_distance, ulps) << context;
    T flipped = first_reference;
    for (const int bit : result.first_bit_difference->flipped_bits) {
      reinterpret_cast<unsigned char*>(&flipped)[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    }
    ASSERT_EQ(std::memcmp(&flipped, &first_current, sizeof(T)), 0) << context;
    const size_t num_worst = std::min<size_t>(options.num_worst, expected.worst.size());
    ASSERT_EQ(result.worst.size(), num_worst) << context;
    for (size_t i = 0; i < num_worst; ++i) {
      const ElementDifference& worst = result.worst[i];
      const auto at = static_cast<size_t>(expected.worst[i].second);
      const double a = static_cast<double>(reference[at]), b = static_cast<double>(current[at]);
      ASSERT_EQ(worst.position, at) << context << ", worst " << i;
      ASSERT_EQ(worst.index, Dims({worst.position / columns, worst.position % columns})) << context;
      if (std::isfinite(b - a)) {
        ASSERT_EQ(worst.difference, b - a) << context;
      }
      for (const auto& [text, number] : {std::pair(worst.reference_text, a), {worst.current_text, b}}) {
        const double read = static_cast<double>(As<T>(std::strtod(text.c_str(), nullptr)));
        ASSERT_TRUE(read == number || (std::isnan(read) && std::isnan(number))) << text;
        ASSERT_EQ(std::signbit(read), std::signbit(number)) << text;
      }
    }
    if (tolerance.bitwise) continue;
    ASSERT_THAT(result.passing_atol, IsNearly(expected.passing_atol)) << context;
    ASSERT_THAT(result.passing_rtol, IsNearly(expected.passing_rtol)) << context;
    // They pass, and smaller ones do not.
    for (double Tolerance::*const field : {&Tolerance::atol, &Tolerance::rtol}) {
      const double passing = field == &Tolerance::atol ? result.passing_atol : result.passing_rtol;
      if (!std::isfinite(passing)) continue;
      options.tolerance = tolerance;
      options.tolerance.*field = passing;
      ASSERT_TRUE(Passes(compare().status)) << context;
      options.tolerance.*field = passing * (1 - 1e-11);
      ASSERT_EQ(Passes(compare().status), passing == 0) << context;
    }
  }
}

TEST(CompareTensors, SaysOfRandomFloatsWhatTheDefinitionSays) { CompareRandomTensors<float>(300, 1); }
TEST(CompareTensors, SaysOfRandomDoublesWhatTheDefinitionSays) { CompareRandomTensors<double>(300, 2); }
TEST(CompareTensors, SaysOfRandomHalvesWhatTheDefinitionSays) { CompareRandomTensors<Float16>(150, 5); }
TEST(CompareTensors, SaysOfRandomIntegersWhatTheDefinitionSays) { CompareRandomTensors<int64_t>(150, 6); }

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

template <typename T>
Value TensorOf(std::vector<double> numbers) {
  const auto owner = std::make_shared<const std::vector<T>>(numbers.begin(), numbers.end());
  return Tensor{TensorView(owner->data(), {static_cast<int64_t>(owner->size())}), owner};
}

// Draws the same tree from the same state of `random`, but for what `changes`, if there are any, changes.
Value RandomTree(Random& random, int depth, Random* changes) {
  const auto changed = [&] { return changes != nullptr && (*changes)() % 15 == 0; };
  Random drawn(random());
  if (changed()) drawn.seed((*changes)());
  const uint64_t kind = depth == 3 ? 4 : drawn() % (depth == 0 ? 4 : 7);
  if (kind == 0) return drawn() % 4 == 0 ? Value() : Value(std::string(drawn() % 3, 'x'));
  if (kind < 4) {
    const bool is_wide = (drawn() % 3 == 0) != changed();
    std::vector<double> numbers(kind == 1 ? 1 : drawn() % 3);
    for (double& number : numbers) {
      // A little more is within the tolerance of float32, and not of float64.
      number = 1000 * (1 + static_cast<double>(drawn() % 3) + changed()) * (changed() ? 1 + 0x1p-20 : 1);
    }
    if (kind == 1) return is_wide ? Value(numbers[0]) : Value(static_cast<int64_t>(numbers[0]));
    return is_wide ? TensorOf<double>(numbers) : TensorOf<float>(numbers);
  }
  std::vector<std::string> names(std::begin(kNames), std::end(kNames));
  std::shuffle(names.begin(), names.end(), drawn);
  names.resize(drawn() % 4);
  std::vector<std::pair<std::string, Value>> children;
  for (const std::string& name : names) {
    Value child = RandomTree(drawn, depth - 1, changes);
    if (!changed()) children.emplace_back(name, child);
  }
  const Value added = TensorOf<float>({1000});
  if (changed()) children.insert(children.begin(), {{"new", added}, {"newer", added}});
  if (changed()) std::reverse(children.begin(), children.end());
  ValueMap map;
  Value::List list;
  for (const auto& [name, child] : children) {
    map.Insert(name, child);
    list.push_back(child);
  }
  return kind == 6 ? Value(list) : Value(map);
}

// Returns the result of CompareTrees() by its definition, but for that of two tensors.
struct Definition {
  using Result = std::tuple<std::string, CompareStatus, std::string>;

  const CompareOptions& options;
  std::vector<Result> results = {};
  int64_t num_elements = 0;
  bool left_out = false;

  static bool HasItems(const Value& value) {
    return value.is_list() || (value.is_tensor() && !value.tensor().view.shape().empty());
  }

  static std::vector<std::pair<std::string, Value>> Children(const Value& value) {
    std::vector<std::pair<std::string, Value>> children;
    if (value.is_map()) children.assign(value.map().begin(), value.map().end());
    for (size_t i = 0; value.is_list() && i < value.list().size(); ++i) {
      children.emplace_back(std::to_string(i), value.list()[i]);
    }
    for (int64_t i = 0; value.is_tensor() && HasItems(value) && i < value.tensor().view.shape()[0]; ++i) {
      children.emplace_back(std::to_string(i), ItemOf(value.tensor(), i));
    }
    return children;
  }

  void AddAll(const std::string& path, CompareStatus status, const Value& value) {
    if (value.is_tensor() || Children(value).empty()) {
      results.emplace_back(path, status, absl::StrCat("a ", std::string(Name(value.kind()))));
      return;
    }
    for (const auto& [name, child] : Children(value)) AddAll(JoinPath(path, name), status, child);
  }

  void AddOneSided(const std::string& path, CompareStatus status, const ValueMap& of, const ValueMap& other) {
    const bool is_allowed = status == CompareStatus::kMissing ? options.allow_missing : options.allow_extra;
    for (const auto& [name, child] : of) {
      if (other.Find(name) != nullptr) continue;
      left_out = left_out || is_allowed;
      if (!is_allowed) AddAll(JoinPath(path, name), status, child);
    }
  }

  static std::vector<std::string> Common(const ValueMap& of, const ValueMap& other) {
    std::vector<std::string> names;
    for (const auto& [name, child] : of) {
      if (other.Find(name) != nullptr) names.push_back(name);
    }
    return names;
  }

  void CompareNumbers(const std::string& path, const Value& a, const Value& b) {
    TensorCompareOptions chosen = options.tensors;
    chosen.compare_dtype = chosen.compare_dtype && a.is_tensor() && b.is_tensor();
    if (options.default_tolerances) chosen.tolerance = DefaultTolerance(AsTensor(b)->view.dtype());
    for (const PathTolerance& of_path : options.path_tolerances) {
      const std::string prefix = of_path.glob.substr(0, of_path.glob.size() - 1);
      if (path.rfind(prefix, 0) != 0) continue;
      chosen.tolerance = of_path.tolerance;
      break;
    }
    num_elements += AsTensor(b)->view.num_elements();
    const TensorComparison result = CompareTensors(*AsTensor(a), *AsTensor(b), chosen);
    results.emplace_back(path, result.status, result.detail);
  }

  void Compare(const std::string& path, const Value& a, const Value& b) {
    if (AsTensor(a).has_value() && AsTensor(b).has_value()) return CompareNumbers(path, a, b);
    if (a.is_map() && b.is_map()) {
      for (const auto& [name, child] : a.map()) {
        const Value* const other = b.map().Find(name);
        if (other != nullptr) Compare(JoinPath(path, name), child, *other);
        if (other == nullptr) AddOneSided(path, CompareStatus::kMissing, ValueMap{{name, child}}, b.map());
      }
      AddOneSided(path, CompareStatus::kExtra, b.map(), a.map());
      const std::vector<std::string> names = Common(a.map(), b.map()), others = Common(b.map(), a.map());
      const auto [name, other] = std::mismatch(names.begin(), names.end(), others.begin());
      if (options.compare_order && name != names.end()) {
        results.emplace_back(
            path, CompareStatus::kOrderDiffers,
            absl::StrCat("the reference has \"", *name, "\" where the current has \"", *other, "\""));
      }
    } else if (HasItems(a) && HasItems(b)) {
      const auto of_a = Children(a), of_b = Children(b);
      if (of_a.size() != of_b.size()) {
        results.emplace_back(path, CompareStatus::kLengthDiffers,
                             absl::StrCat("reference ", of_a.size(), " items, current ", of_b.size()));
      }
      for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) {
        Compare(JoinPath(path, of_a[i].first), of_a[i].second, of_b[i].second);
      }
    } else if (a.kind() != b.kind()) {
      results.emplace_back(
          path, CompareStatus::kKindDiffers,
          absl::StrCat("reference ", std::string(Name(a.kind())), ", current ", std::string(Name(b.kind()))));
    } else if (a.kind() == Value::Kind::kString && a.string_value() != b.string_value()) {
      results.emplace_back(
          path, CompareStatus::kMismatch,
          absl::StrCat("reference \"", a.string_value(), "\", current \"", b.string_value(), "\""));
    }
  }
};

TEST(CompareTrees, SaysOfAnyTreesWhatTheDefinitionSays) {
  Random random(3);
  std::map<Verdict, int> verdicts;
  for (int trial = 0; trial < 4000; ++trial) {
    const auto one_in = [&](uint64_t n) { return random() % n == 0; };
    Random again = random;
    const Value a = RandomTree(again, 3, nullptr);
    const Value b = RandomTree(random, 3, trial % 4 == 0 ? nullptr : &again);
    CompareOptions options;
    options.allow_missing = one_in(3);
    options.allow_extra = one_in(3);
    options.allow_empty = one_in(2);
    options.compare_order = one_in(2);
    options.default_tolerances = one_in(3);
    options.tensors.compare_dtype = one_in(2);
    options.tensors.tolerance.atol = one_in(3) ? 1000 : 0;
    for (const auto& [glob, atol] : {std::pair("a*", 0.01), {"*", 1500.0}}) {
      if (!one_in(4)) continue;
      options.path_tolerances.emplace_back().glob = glob;
      options.path_tolerances.back().tolerance.atol = atol;
    }
    Definition expected{options};
    expected.Compare("", a, b);
    const auto passes = [](const auto& of) { return Passes(std::get<CompareStatus>(of)); };
    const bool all_pass = std::all_of(expected.results.begin(), expected.results.end(), passes);
    const bool is_empty = expected.num_elements == 0 && all_pass;
    const bool agree = options.allow_empty && !expected.left_out && is_empty;
    const Verdict verdict = !all_pass            ? Verdict::kDifferent
                            : is_empty && !agree ? Verdict::kCouldNotCompare
                                                 : Verdict::kEqual;
    if (expected.results.empty() && !agree)
      expected.results.emplace_back("", CompareStatus::kEmpty, "there is nothing to compare");
    const TreeComparison comparison = CompareTrees(a, b, options);
    std::vector<Definition::Result> found;
    bool all_bits = true;
    for (const NamedComparison& result : comparison.results) {
      found.emplace_back(result.path, result.comparison.status, result.comparison.detail);
      all_bits = all_bits && result.comparison.status == CompareStatus::kBitwiseEqual;
    }
    ASSERT_EQ(found, expected.results) << trial;
    ASSERT_EQ(comparison.agree_without_elements, agree) << trial;
    ASSERT_EQ(comparison.verdict(), verdict) << trial;
    ASSERT_EQ(comparison.bitwise_equal(), verdict == Verdict::kEqual && all_bits) << trial;
    const auto first = std::find_if_not(found.begin(), found.end(), passes);
    ASSERT_EQ(comparison.first_failure(),
              first == found.end() ? nullptr : &comparison.results[first - found.begin()]);
    ++verdicts[verdict];
  }
  for (const Verdict verdict : {Verdict::kEqual, Verdict::kDifferent, Verdict::kCouldNotCompare}) {
    EXPECT_GT(verdicts[verdict], 200) << Name(verdict);
  }
}

// A dump of which one byte was changed, or the end cut off, is an error, differs, or reads as the same.
TEST(CompareDumps, OfADamagedFileIsEqualOnlyIfWhatIsReadIsTheSame) {
  Random random(4);
  const std::string bad = testing::TempDir() + "/damaged";
  int num_seen = 0;
  for (const DumpFormat format :
       {DumpFormat::kBinary, DumpFormat::kNpy, DumpFormat::kSafetensors, DumpFormat::kJson}) {
    const Value tree = ValueMap{{"weights", TensorView(Numbers(), {4, 5})},
                                {"rate", 0.25},
                                {"note", "text"},
                                {"b", TensorView(Numbers(), {3})}};
    const std::string good = DumpForTest(tree, format);
    const std::set<std::string> names = NamesIn(good);
    const std::vector<std::string> files(names.begin(), names.end());
    for (int trial = 0; trial < 150; ++trial) {
      std::filesystem::remove_all(bad);
      std::filesystem::copy(good, bad);
      const std::string path = bad + "/" + files[random() % files.size()];
      std::string bytes = *ReadFile(path);
      const size_t at = random() % bytes.size();
      if (trial % 3 == 0) {
        bytes.resize(at);
      } else {
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      }
      ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
      const TreeComparison comparison = CompareDumps(good, bad);
      if (comparison.verdict() != Verdict::kEqual) {
        ++num_seen;
        continue;
      }
      const absl::StatusOr<Dump> dump = ReadDump(bad);
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
