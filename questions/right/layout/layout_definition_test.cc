// Compares verdicts on random runs with their definition.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/tolerance_file.h"
#include "ott/questions/right/crosscheck/run_for_test.h"
#include "ott/questions/right/layout/check_layout.h"
#include "ott/questions/right/layout/layout_text.h"

namespace ott::crosscheck {
namespace {

using testing::HasSubstr;

// Holds a run's tensors, all of two elements, and a text, by rank and name.
struct Side {
  bool is_narrow = false;        // float32 instead of float64
  bool has_text = true;          // or a tensor in its place
  std::vector<bool> has_dtypes;  // by rank, whose dump is JSON alone otherwise
  std::vector<std::map<std::string, std::vector<double>>> ranks;

  bool AreDtypesKnown() const { return std::count(has_dtypes.begin(), has_dtypes.end(), false) == 0; }
  bool IsText(const std::string& name) const { return name == "text" && has_text; }

  void Write(const std::string& run, int iteration, const std::vector<std::string>& order) const {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      std::vector<std::vector<float>> narrow;
      narrow.reserve(ranks[rank].size());
      ValueMap tensors, grads;
      for (const auto& [name, elements] : ranks[rank]) {
        const std::vector<float>& rounded = narrow.emplace_back(elements.begin(), elements.end());
        const Value value = IsText(name) ? Value(std::string(elements.begin(), elements.end()))
                            : is_narrow  ? Value(TensorView(rounded.data(), {2}))
                                         : Value(TensorView(elements.data(), {2}));
        name == "grads.u" ? grads.Insert("u", value) : tensors.Insert(name, value);
      }
      const Value tree = tensors, grads_tree = grads;
      DumpContents contents;
      contents.tensors.tree = &tree;
      contents.tensors.order = &order;
      contents.grads.tree = &grads_tree;
      contents.tensors.format = contents.grads.format = [&](std::string_view) {
        return has_dtypes[rank] ? DumpFormat::kBinary : DumpFormat::kJson;
      };
      const std::string dir = DumpPath(run, static_cast<int>(rank), iteration);
      std::filesystem::create_directories(std::filesystem::path(dir).parent_path());
      ASSERT_TRUE(WriteDump(dir, contents).ok());
      if (!has_dtypes[rank]) std::filesystem::remove(dir + "/manifest.json");
    }
  }
};

Side RandomSide(std::mt19937& random, int num_ranks, int num_choices) {
  Side side;
  side.is_narrow = random() % 3 == 0;
  side.has_text = random() % 12 != 0;
  const bool is_long = random() % 12 == 0, has_json = !side.is_narrow && random() % 4 == 0;
  for (int rank = 0; rank < num_ranks; ++rank) {
    side.has_dtypes.push_back(!has_json || random() % 2 == 0);
    auto& held = side.ranks.emplace_back();
    for (const char* const name : {"u", "v", "text", "grads.u"}) {
      if (side.IsText(name)) {
        held[name] = {'a', random() % 9 == 0 ? 'c' * 1.0 : 'a'};
        if (is_long) held[name].push_back('b');
        continue;
      }
      for (const double number : {1.0, 2.0}) {
        const double choices[] = {number, number + 0.25, number + 0.5, std::nan("")};
        held[name].push_back(random() % 3 == 0 ? choices[random() % num_choices] : number);
      }
    }
  }
  return side;
}

// Returns what is said of these tensors, by the definition.
LayoutVerdict Define(const Side& a, const Side& b, const std::vector<std::string>& order,
                     const std::map<std::string, double>& tolerances) {
  LayoutVerdict verdict;
  for (const std::string& name : order) {
    const std::vector<double>& first = a.ranks[0].at(name);
    const auto size = static_cast<int>(first.size());
    const bool is_text = a.IsText(name);
    const int num_before = verdict.differences_size();
    const auto add = [&] {
      LayoutDifference& difference = *verdict.add_differences();
      difference.set_tensor(name);
      difference.set_dtype(is_text ? "uint8" : a.is_narrow ? "float32" : "float64");
      difference.add_shape(size);
      return &difference;
    };
    const bool are_dtypes_known = is_text || (a.AreDtypesKnown() && b.AreDtypesKnown());
    std::string problem;
    if (is_text != b.IsText(name)) {
      problem = "one of them is a text";
    } else if (first.size() != b.ranks[0].at(name).size()) {
      problem = "the texts differ";
    } else if (!is_text && are_dtypes_known && a.is_narrow != b.is_narrow) {
      problem = a.is_narrow ? "a is float32, b float64" : "a is float64, b float32";
    }
    bool has_other_bits = !problem.empty();
    if (!problem.empty()) add()->set_problem(problem);
    for (const Side* const side : {&a, &b}) {
      if (!problem.empty()) break;
      LayoutDifference found;
      double worst = -1, largest = 0;
      for (size_t rank = side == &a ? 1 : 0; rank < side->ranks.size(); ++rank) {
        const std::vector<double>& elements = side->ranks[rank].at(name);
        int num_mismatched = 0;
        for (int i = 0; i < size; ++i) {
          const double x = first[i], y = elements[i];
          const bool is_same = x == y || (std::isnan(x) && std::isnan(y));
          const double error = std::isnan(x - y) ? std::numeric_limits<double>::infinity() : std::abs(x - y);
          has_other_bits = has_other_bits || !is_same;
          if (is_text || side->is_narrow == a.is_narrow)
            found.set_num_bits_differ(found.num_bits_differ() + !is_same);
          if (std::isfinite(error)) largest = std::max(largest, error);
          const auto tolerance = tolerances.find(name);
          const bool is_within = !is_text && tolerance != tolerances.end() && error <= tolerance->second;
          if (is_same || is_within) continue;
          ++num_mismatched;
          if (error <= worst) continue;
          worst = error;
          found.clear_index();
          found.add_index(i);
          const auto set = [&](LayoutPlace* place, const char* run, size_t of_rank, double value) {
            place->Clear();
            place->set_run(run);
            place->add_ranks(static_cast<int>(of_rank));
            place->set_path(name);
            place->add_index(i);
            place->set_value(std::isnan(value) ? "nan" : absl::StrCat(value));
          };
          set(found.mutable_expected(), "a", 0, x);
          set(found.mutable_found(), side == &a ? "a" : "b", rank, y);
        }
        found.set_num_mismatched(found.num_mismatched() + num_mismatched);
        if (num_mismatched == 0) continue;
        found.add_ranks(static_cast<int>(rank));
        found.set_num_compared(found.num_compared() + size);
      }
      verdict.set_max_abs_error(std::max(verdict.max_abs_error(), largest));
      if (found.num_mismatched() == 0) continue;
      found.set_run(side == &a ? "a" : "b");
      found.set_num_ranks(static_cast<int>(side->ranks.size()));
      found.set_max_abs_error(largest);
      add()->MergeFrom(found);
    }
    verdict.set_num_tensors(verdict.num_tensors() + 1);
    const bool differs = verdict.differences_size() > num_before;
    verdict.set_num_not_bitwise_equal(verdict.num_not_bitwise_equal() + (differs || has_other_bits));
    verdict.set_num_different(verdict.num_different() + differs);
  }
  return verdict;
}

// A file allows a quarter of "u" in iteration 10, and an option a quarter of the others, or nothing does.
TEST(CheckLayout, EachIterationIsJudgedByItsDefinition) {
  std::mt19937 random(1);
  const std::string file = testing::TempDir() + "/layout_tolerances.textproto";
  ASSERT_TRUE(WriteFileAtomically(
                  file, "iterations: 0 iterations: 10 tensors { path: \"u\" atol_at: 0 atol_at: 0.25 }")
                  .ok());
  for (int trial = 0; trial < 60; ++trial) {
    LayoutOptions options;
    const double atol = trial % 5 == 0 ? 3 : 0.25;
    if (trial % 3 > 0) options.tolerance.emplace().atol = atol;
    if (trial % 3 > 1) options.tolerance_file = ToleranceFile::Read(file).value();
    const int num_ranks[2] = {1 + static_cast<int>(random() % 2), 1 + static_cast<int>(random() % 3)};
    const int num_choices = 1 + static_cast<int>(random() % 4);
    const std::string run_a = MakeRunForTest("a", num_ranks[0]), run_b = MakeRunForTest("b", num_ranks[1]);
    std::map<int, LayoutVerdict> expected;
    std::vector<std::string> layouts;
    for (const int iteration : {0, 10, 20}) {
      const Side a = RandomSide(random, num_ranks[0], num_choices);
      Side b = RandomSide(random, num_ranks[1], num_choices);
      std::vector<std::string> order = {"text", "u", "v"};
      if (a.has_dtypes[0]) std::shuffle(order.begin(), order.end(), random);
      a.Write(run_a, iteration, order);
      LayoutVerdict& verdict = expected[iteration];
      const uint64_t lacks = random() % 8;  // 1: b has no dump, 2: it has no v
      if (lacks == 2) {
        for (auto& rank : b.ranks) rank.erase("v");
        order.erase(std::find(order.begin(), order.end(), "v"));
        verdict.add_not_compared("\"v\": a has it, b has not");
      }
      // Each side's number of tensors, and the first of them, are told.
      const char* const first_of_b = !b.has_dtypes[0] ? "text" : lacks == 2 ? "u" : "v";
      layouts.push_back(absl::StrCat(
          order[0], a.ranks[0].at(order[0]).size(), " ", order.size(), " ",
          lacks == 1 ? "" : absl::StrCat(first_of_b, b.ranks[0].at(first_of_b).size(), b.ranks[0].size())));
      order.emplace_back("grads.u");
      if (lacks == 1) {
        verdict.add_not_compared("b: rank 0 has no dump: ");
      } else {
        b.Write(run_b, iteration, {"v", "u", "text"});
        std::map<std::string, double> tolerances;
        if (options.tolerance) tolerances = {{"u", atol}, {"v", atol}, {"text", atol}, {"grads.u", atol}};
        if (options.tolerance_file) tolerances["u"] = iteration == 0 ? 0 : 0.25;
        // Between its iterations a file's tolerance is that of the one before.
        verdict.MergeFrom(Define(a, b, order, tolerances));
      }
      verdict.set_iteration(iteration);
      verdict.set_outcome(verdict.num_different() > 0           ? DIFFERENT
                          : verdict.not_compared_size() > 0     ? NOT_COMPARED
                          : verdict.num_not_bitwise_equal() > 0 ? WITHIN_TOLERANCE
                                                                : BITWISE_EQUAL);
    }
    const std::vector<LayoutVerdict> verdicts = CheckLayout(run_a, run_b, Layout(), options).value();
    ASSERT_EQ(verdicts.size(), 3u);
    for (const int i : {1, 2})
      EXPECT_EQ(verdicts[i].understood().empty(), layouts[i] == layouts[i - 1]) << trial << " " << layouts[i];
    int count[4] = {};  // by outcome
    double largest = 0;
    std::string first;
    for (LayoutVerdict verdict : verdicts) {
      LayoutVerdict& definition = expected.at(static_cast<int>(verdict.iteration()));
      ASSERT_EQ(verdict.not_compared().empty(), definition.not_compared().empty());
      if (!definition.not_compared().empty()) {
        EXPECT_THAT(verdict.not_compared(0), testing::StartsWith(definition.not_compared(0)));
      }
      count[0] += verdict.outcome() == BITWISE_EQUAL;
      count[1] += verdict.outcome() == WITHIN_TOLERANCE;
      count[2] += verdict.outcome() == DIFFERENT;
      count[3] += !verdict.not_compared().empty();
      largest = std::max(largest, definition.max_abs_error());
      if (first.empty() && verdict.num_different() > 0)
        first = absl::StrCat("first divergence: iteration ", verdict.iteration(), ": DIFFER in tensor \"",
                             definition.differences(0).tensor(), "\"");
      verdict.clear_understood();
      verdict.clear_not_compared();
      definition.clear_not_compared();
      for (LayoutDifference& difference : *verdict.mutable_differences()) {
        const bool is_number = difference.dtype() != "uint8" && difference.expected().value() != "nan" &&
                               difference.found().value() != "nan";
        EXPECT_EQ(difference.has_ulp_distance(), is_number && !difference.flipped_bits().empty()) << trial;
        difference.clear_flipped_bits();
        difference.clear_ulp_distance();
      }
      EXPECT_EQ(verdict.DebugString(), definition.DebugString()) << trial;
    }
    const std::string text = LayoutVerdictsToText(verdicts);
    const auto part = [](int number, const char* what) {
      return number > 0 ? absl::StrCat("; ", number, what) : "";
    };
    EXPECT_THAT(text, HasSubstr(absl::StrCat(" tensors compared", part(count[0], " equal bit for bit"),
                                             part(count[1], " within tolerance but not bit for bit"),
                                             part(count[2], " DIFFER"),
                                             part(count[3], " NOT COMPARED, or not in full"),
                                             absl::StrFormat("; max abs error %.3g\n", largest))));
    EXPECT_THAT(text, HasSubstr(first));
    EXPECT_EQ(text.find("first divergence") == text.npos, first.empty());
  }
}

}  // namespace
}  // namespace ott::crosscheck
