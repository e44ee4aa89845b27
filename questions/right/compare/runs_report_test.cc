// Sums up random comparisons, and says what was found, in all forms.

#include "ott/questions/right/compare/runs_report.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "ott/core/compare/report.h"
#include "ott/core/dump/json_writer.h"
#include "ott/questions/right/compare/compare_answer.h"
#include "ott/questions/right/compare/dump_piece.h"

namespace ott::compare {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

NamedComparison Result(const std::string& path, CompareStatus status, double abs_error = 0) {
  NamedComparison result;
  result.path = path;
  result.comparison.status = status;
  if (abs_error > 0) result.comparison.max_abs_error = ErrorAt{abs_error, 0, {}};
  return result;
}

TEST(Summarize, CountsWhatDoesNotPassAndKeepsTheFirstThatDiffers) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    TreeComparison comparison;
    CompareRunsOptions options;
    options.max_failures = static_cast<int>(random() % 4);
    options.keep_results = trial % 2 == 0;
    std::vector<std::string> failures, unknown;
    int64_t first = -1, first_unknown = -1, num_equal = 0;
    std::optional<std::pair<double, std::string>> largest;
    const size_t size = random() % 8;
    int64_t num_parameters = 0, num_parameters_that_differ = 0;
    for (size_t i = 0; i < size; ++i) {
      const auto status = static_cast<CompareStatus>(random() % 13);
      const bool is_parameter = random() % 2 == 0;
      const double error = static_cast<double>(random() % 5);
      const std::string path = absl::StrCat(is_parameter ? "weights." : "other.", i);
      comparison.results.push_back(Result(path, status, error));
      num_parameters += is_parameter;
      const bool is_unknown = status == CompareStatus::kEmpty || status == CompareStatus::kCouldNotCompare;
      num_parameters_that_differ += is_parameter && !Passes(status) && !is_unknown;
      num_equal += status == CompareStatus::kBitwiseEqual;
      if (!Passes(status)) {
        int64_t& place = is_unknown ? first_unknown : first;
        if (place < 0) place = static_cast<int64_t>(i);
        (is_unknown ? unknown : failures).push_back(path);
      } else if (status != CompareStatus::kBitwiseEqual && (!largest || error > largest->first)) {
        largest = {error, path};
      }
    }
    const auto num_different = static_cast<int64_t>(failures.size());
    failures.insert(failures.end(), unknown.begin(), unknown.end());
    if (first < 0) first = first_unknown;
    const Verdict verdict = comparison.verdict();
    const DumpSummary summary = Summarize(comparison, 3, 20, options);
    EXPECT_EQ(summary.rank, 3);
    EXPECT_EQ(summary.iteration, 20);
    EXPECT_EQ(summary.verdict, verdict);
    EXPECT_EQ(summary.num_tensors, size);
    EXPECT_EQ(summary.num_bitwise_equal, num_equal);
    EXPECT_EQ(summary.first_failure, first);
    EXPECT_EQ(summary.num_failures, failures.size());
    EXPECT_EQ(summary.results.results.size(), options.keep_results ? size : 0);
    ASSERT_EQ(summary.failures.size(),
              std::min(failures.size(), static_cast<size_t>(std::max(options.max_failures, 1))));
    for (size_t i = 0; i < summary.failures.size(); ++i) EXPECT_EQ(summary.failures[i].path, failures[i]);
    ASSERT_EQ(summary.largest_difference.has_value(), largest.has_value()) << trial;
    if (largest) {
      EXPECT_EQ(summary.largest_difference->path, largest->second) << trial;
    }
    int64_t num_counted = 0, num_counted_as_different = 0;
    for (const KindCount& count : summary.kinds) {
      num_counted += count.num_tensors();
      num_counted_as_different += count.num_different();
      if (count.kind() != TENSOR_KIND_PARAMETER) continue;
      EXPECT_EQ(count.num_tensors(), num_parameters);
      EXPECT_EQ(count.num_different(), num_parameters_that_differ);
    }
    EXPECT_EQ(num_counted, size);
    EXPECT_EQ(num_counted_as_different, num_different);
  }
}

TEST(RunsComparison, OneDumpThatDiffersDecidesAndTheFirstFailureIsNamed) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 500; ++trial) {
    RunsComparison comparison;
    const size_t num_dumps = random() % 7;
    bool differs = false, is_unknown = num_dumps == 0;
    std::vector<size_t> unknown;
    for (size_t i = 0; i < num_dumps; ++i) {
      DumpSummary& dump = comparison.dumps.emplace_back();
      dump.iteration = 10 * static_cast<int64_t>(i / 3);
      dump.rank = static_cast<int>(i % 3);
      dump.verdict = static_cast<Verdict>(random() % 3);
      if (dump.verdict == Verdict::kCouldNotCompare) unknown.push_back(i);
      differs = differs || dump.verdict == Verdict::kDifferent;
      is_unknown = is_unknown || dump.verdict == Verdict::kCouldNotCompare;
      if (dump.verdict == Verdict::kEqual) continue;
      dump.num_failures = 1;
      dump.failures = {Result("w", CompareStatus::kMismatch)};
      dump.first_failure = static_cast<int64_t>(random() % 3);
    }
    if (random() % 5 == 0) comparison.problems.emplace_back("rank 1 only in the reference");
    is_unknown = is_unknown || !comparison.problems.empty();
    EXPECT_EQ(comparison.verdict(), differs      ? Verdict::kDifferent
                                    : is_unknown ? Verdict::kCouldNotCompare
                                                 : Verdict::kEqual);
    EXPECT_EQ(AnswerCompare(comparison).finding(), differs      ? Answer::BAD
                                                   : is_unknown ? Answer::CANNOT_TELL
                                                                : Answer::GOOD);
    EXPECT_EQ(AnswerCompare(comparison).how_sure().rfind("every element", 0) == 0, !is_unknown);
    const DumpSummary* first = nullptr;
    const auto place = [](const DumpSummary* dump) {
      return std::make_tuple(*dump->iteration, dump->first_failure, *dump->rank);
    };
    for (const DumpSummary& dump : comparison.dumps) {
      if (dump.verdict != Verdict::kDifferent) continue;
      if (first == nullptr || place(&dump) < place(first)) first = &dump;
    }
    EXPECT_EQ(comparison.first_divergence(), first) << trial;
    EXPECT_EQ(comparison.first_not_compared(), unknown.empty() ? nullptr : &comparison.dumps[unknown[0]]);
    const size_t num_more = unknown.size() - 1;
    const std::string more = num_more > 0 ? absl::StrCat("; and ", num_more, " more") : "";
    EXPECT_EQ(DescribeNotCompared(comparison),
              unknown.empty() ? ""
                              : absl::StrCat("iteration ", unknown[0] / 3 * 10, ", rank ", unknown[0] % 3,
                                             ", w: mismatch", more));
  }
}

// Returns two iterations of three ranks; rank 1 differs at 10 in two tensors, rank 2 at 20.
RunsComparison SomeRuns() {
  RunsComparison comparison;
  comparison.reference = "a\t";
  comparison.current = "b\t";
  for (const int64_t iteration : {10, 20}) {
    for (int rank = 0; rank < 3; ++rank) {
      DumpSummary& dump = comparison.dumps.emplace_back();
      dump.iteration = iteration;
      dump.rank = rank;
      dump.num_tensors = 5;
      dump.num_bitwise_equal = 4;
      dump.verdict = Verdict::kEqual;
      if ((iteration == 10) != (rank == 1)) continue;
      if (iteration == 20 && rank != 2) continue;
      dump.verdict = Verdict::kDifferent;
      dump.num_failures = iteration == 10 ? 2 : 1;
      dump.num_bitwise_equal = 3;
      dump.first_failure = 1;
      NamedComparison& failure = dump.failures.emplace_back(Result("w\t", CompareStatus::kMismatch, 0.5));
      failure.comparison.detail = "why\t";
      failure.comparison.num_elements = 6;
      failure.comparison.num_mismatched = 2;
      failure.comparison.num_bits_differ = 3;
      failure.comparison.passing_atol = 0.25;
    }
  }
  return comparison;
}

TEST(ToText, SaysWhatDivergedFirstAndWhere) {
  RunsComparison comparison = SomeRuns();
  const std::string compared =
      "reference a\\t\ncurrent   b\\t\ncompared  30 tensors in 6 dumps: 22 bitwise equal, ";
  const std::string first = "iteration 10, rank 1, w\\t: mismatch: why\\t";
  const std::string figures =
      "2 of 6 elements beyond tolerance, 3 differ in bits; max abs error 0.5; atol 0.25 would pass";
  EXPECT_EQ(DescribeFirstDivergence(comparison), first);
  EXPECT_EQ(ToText(comparison),
            absl::StrCat(compared, "5 within tolerance, 3 not\nfirst divergence: ", first, "\n  ", figures,
                         "\n  and 1 more tensors of this dump\n"
                         "  on rank 1 alone; at this iteration: fails on rank 1; passes on ranks 0, 2\n"
                         "  later: 1 of 3 dumps differ\nverdict: different\n"));
  EXPECT_THAT(AnswerCompare(comparison).sentences(),
              ElementsAre("verdict: different", "first divergence: " + first));
  EXPECT_EQ(AnswerCompare(comparison).how_sure(), "every element of 30 tensors in 6 dumps was compared");
  // Another rank differs first in something else.
  comparison.dumps[2].verdict = Verdict::kDifferent;
  comparison.dumps[2].num_failures = 1;
  comparison.dumps[2].first_failure = 2;
  comparison.dumps[2].failures = {Result("v", CompareStatus::kMissing)};
  EXPECT_THAT(
      ToText(comparison),
      HasSubstr("\n  first on rank 1 alone; at this iteration: fails on ranks 1, 2; passes on rank 0\n"));
  comparison.dumps[2].failures[0].path = "w\t";
  EXPECT_THAT(
      ToText(comparison),
      HasSubstr("\n  on ranks 1, 2 of 3; at this iteration: fails on ranks 1, 2; passes on rank 0\n"));
  // A dump that could not be compared is neither a difference nor a pass, and hides none.
  const DumpSummary differs = comparison.dumps[2];
  for (const int i : {0, 2, 5}) {
    comparison.dumps[i].verdict = Verdict::kCouldNotCompare;
    comparison.dumps[i].num_failures = 1;
    comparison.dumps[i].failures = {Result("v", CompareStatus::kCouldNotCompare)};
  }
  const std::string unknown = "iteration 10, rank 0, v: could not compare; and 2 more";
  EXPECT_THAT(
      ToText(comparison),
      AllOf(HasSubstr(absl::StrCat("\nnot compared: ", unknown, "\nfirst divergence: ", first, "\n")),
            HasSubstr("\n  on rank 1 alone; at this iteration: fails on rank 1; passes on no rank; not "
                      "compared on ranks 0, 2\n  later: 0 of 3 dumps differ, 1 could not be compared\n")));
  EXPECT_THAT(AnswerCompare(comparison).sentences(),
              ElementsAre("verdict: different", "first divergence: " + first, "not compared: " + unknown));
  comparison.dumps[2] = differs;
  // The other failures, and no tolerance that would pass.
  TensorComparison& failure = comparison.dumps[1].failures[0].comparison;
  failure.passing_atol = std::numeric_limits<double>::infinity();
  failure.tolerance.rtol = 0.125;
  comparison.dumps[1].failures.push_back(Result("v", CompareStatus::kShapeDiffers));
  EXPECT_THAT(
      ToText(comparison),
      HasSubstr("2 of 6 elements beyond tolerance (atol 0, rtol 0.125), 3 differ in bits; max abs error "
                "0.5; no tolerance would pass\n  also v: shape differs\n  on ranks"));
  comparison.dumps.erase(comparison.dumps.begin() + 3, comparison.dumps.end());
  EXPECT_THAT(ToText(comparison), Not(HasSubstr("later")));
  // Of single dumps there is no rank.
  comparison.dumps = {comparison.dumps[1]};
  comparison.dumps[0].rank = comparison.dumps[0].iteration = std::nullopt;
  EXPECT_EQ(DescribeFirstDivergence(comparison), "w\\t: mismatch: why\\t");
  EXPECT_THAT(ToText(comparison), Not(HasSubstr("at this iteration")));
  // No iteration is later than a checkpoint beside a series.
  comparison.dumps.push_back(comparison.dumps[0]);
  comparison.dumps[1].iteration = 20;
  EXPECT_THAT(ToText(comparison), Not(HasSubstr("later")));
}

TEST(ToText, SaysTheLargestDifferenceThatPassesAndProblems) {
  RunsComparison comparison = SomeRuns();
  for (DumpSummary& dump : comparison.dumps) {
    dump.num_failures = 0;
    dump.failures.clear();
    dump.verdict = Verdict::kEqual;
    const double error = *dump.iteration == 20 ? *dump.rank == 0 ? 0.25 : 0.5 : 0;
    dump.largest_difference = Result("u\t", CompareStatus::kWithinTolerance, error);
  }
  comparison.notes = {"note\t"};
  EXPECT_THAT(ToText(comparison),
              HasSubstr("8 within tolerance, 0 not\nnote: note\\t\n"
                        "largest difference within tolerance: iteration 20, rank 1, u\\t: 0 of 0 "
                        "elements beyond tolerance, 0 differ in bits; max abs error 0.5; atol 0 "
                        "would pass\nverdict: equal\n"));
  for (int i = 0; i < 20; ++i) comparison.problems.push_back(absl::StrCat("problem\t", i));
  EXPECT_THAT(ToText(comparison),
              AllOf(HasSubstr("\nproblem: problem\\t19\n"), Not(HasSubstr("problem: and"))));
  EXPECT_EQ(AnswerCompare(comparison).sentences(1), "problem: problem\\t0");
  comparison.problems.emplace_back("one more");
  EXPECT_THAT(ToText(comparison),
              HasSubstr("problem\\t19\nproblem: and 1 more, which --format json lists\n"));
}

TEST(ToText, OfCheckpointsSaysWhichStatesDiffer) {
  RunsComparison comparison;
  DumpSummary& dump = comparison.dumps.emplace_back();
  dump.num_tensors = 30;
  dump.num_failures = 12;
  dump.num_bitwise_equal = 18;
  dump.verdict = Verdict::kDifferent;
  dump.failures = {Result("w", CompareStatus::kMissing)};
  dump.states = {{StateKind::kWeights, 12, 0, 0, 0, 0, {}}, {StateKind::kMoments, 6, 2, 0, 0, 0, {}},
                 {StateKind::kStep, 6, 3, 1, 1, 1, {0, 2}}, {StateKind::kRandom, 2, 2, 0, 2, 0, {}},
                 {StateKind::kSchedule, 3, 3, 0, 0, 3, {}}, {StateKind::kOther, 5, 0, 2, 0, 0, {}}};
  EXPECT_THAT(
      ToText(comparison),
      HasSubstr(
          "compared  30 tensors in 1 checkpoint: 18 bitwise equal, 0 within tolerance, 12 not\n"
          "state     weights equal (12), optimizer moments DIFFER (2 of 6), optimizer step DIFFER (3 of "
          "6, 1 missing, 1 only in the current, 1 not compared; of ranks 0, 2), random numbers MISSING in "
          "the current, schedule only in the current, other NOT COMPARED (2 of 5)\n"
          "first divergence: w: missing\n  and 11 more\n"));
  // Of a series, from which step on.
  comparison.dumps.push_back(dump);
  comparison.dumps[0].states = {{StateKind::kWeights, 1, 0, 0, 0, 0, {}},
                                {StateKind::kRandom, 1, 1, 0, 0, 0, {}}};
  comparison.dumps[1].states = {{StateKind::kWeights, 1, 1, 0, 0, 0, {}},
                                {StateKind::kRandom, 1, 1, 0, 0, 0, {}}};
  comparison.dumps[0].iteration = 200;
  comparison.dumps[1].iteration = 300;
  EXPECT_THAT(ToText(comparison),
              HasSubstr("in 2 checkpoints: 36 bitwise equal, 0 within tolerance, 24 not\n"
                        "differ    random numbers from iteration 200 on, weights from iteration 300 on\n"));
  // One beside the series alone.
  DumpSummary beside = comparison.dumps[1];
  beside.iteration = std::nullopt;
  for (DumpSummary& of_series : comparison.dumps) of_series.verdict = Verdict::kEqual;
  comparison.dumps.push_back(std::move(beside));
  EXPECT_THAT(ToText(comparison), HasSubstr("first divergence: w: missing\n  and 11 more\nverdict: "));
}

Json JsonOf(const NamedComparison& named) { return Json::parse(*ott::ToJson(ToValue(named))); }

TEST(ToJson, HasEachFieldOfEachDump) {
  std::mt19937 random(3);
  const auto any = [&] { return static_cast<int64_t>(random() % 1000); };
  for (int trial = 0; trial < 30; ++trial) {
    RunsComparison comparison = SomeRuns();
    comparison.notes = {"note\t"};
    comparison.problems = {"problem\t", "another"};
    if (trial == 0) comparison.dumps.clear();
    Json dumps = Json::array();
    for (DumpSummary& dump : comparison.dumps) {
      if (random() % 4 == 0) dump.iteration = std::nullopt;
      if (random() % 4 == 0) dump.rank = std::nullopt;
      dump.verdict = static_cast<Verdict>(random() % 3);
      dump.num_tensors = any();
      dump.num_bitwise_equal = any();
      if (random() % 2 == 0) dump.largest_difference = Result("u", CompareStatus::kWithinTolerance, 0.5);
      Json kinds = Json::array(), states = Json::array(), failures = Json::array();
      for (size_t i = random() % 3; i > 0; --i) {
        KindCount& kind = *dump.kinds.Add();
        kind.set_kind(random() % 2 == 0 ? TENSOR_KIND_GRADIENT : TENSOR_KIND_PARAMETER);
        kind.set_num_tensors(any());
        kind.set_num_different(any());
        kinds.push_back({{"kind", TensorKind_Name(kind.kind())},
                         {"num_tensors", kind.num_tensors()},
                         {"num_failures", kind.num_different()}});
        StateSummary& state = dump.states.emplace_back();
        state = {random() % 2 == 0 ? StateKind::kWeights : StateKind::kRandom,
                 any(),
                 any(),
                 any(),
                 any(),
                 any(),
                 {}};
        states.push_back({{"kind", std::string(Name(state.kind))},
                          {"num_values", state.num_values},
                          {"num_failures", state.num_failures},
                          {"num_not_compared", state.num_not_compared},
                          {"num_missing", state.num_missing},
                          {"num_extra", state.num_extra}});
      }
      for (const NamedComparison& failure : dump.failures) failures.push_back(JsonOf(failure));
      dumps.push_back(
          {{"iteration", dump.iteration ? Json(*dump.iteration) : Json()},
           {"rank", dump.rank ? Json(*dump.rank) : Json()},
           {"verdict", std::string(Name(dump.verdict))},
           {"num_tensors", dump.num_tensors},
           {"num_bitwise_equal", dump.num_bitwise_equal},
           {"num_failures", dump.num_failures},
           {"kinds", kinds},
           {"states", states},
           {"failures", failures},
           {"largest_difference", dump.largest_difference ? JsonOf(*dump.largest_difference) : Json()}});
    }
    const DumpSummary* const first = comparison.first_divergence();
    const Json expected = {
        {"reference", comparison.reference},
        {"current", comparison.current},
        {"verdict", std::string(Name(comparison.verdict()))},
        {"notes", comparison.notes},
        {"problems", comparison.problems},
        {"first_divergence",
         first == nullptr ? Json() : dumps.at(static_cast<size_t>(first - comparison.dumps.data()))},
        {"dumps", dumps}};
    EXPECT_EQ(Json::parse(ToJson(comparison)), expected) << trial;
  }
}

TEST(ToJUnitXml, NamesEachDumpAndWhatIsMissing) {
  RunsComparison comparison = SomeRuns();
  for (DumpSummary& dump : comparison.dumps)
    dump.results.results = {Result("w", CompareStatus::kBitwiseEqual)};
  const std::string xml = ToJUnitXml(comparison);
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"iteration 20, rank 2\" "));
  EXPECT_THAT(xml, Not(HasSubstr("\"missing\"")));
  comparison.dumps[0].rank = std::nullopt;
  comparison.dumps[1].iteration = comparison.dumps[1].rank = std::nullopt;
  comparison.problems = {"rank 1 only in the reference"};
  EXPECT_THAT(ToJUnitXml(comparison),
              AllOf(HasSubstr("<testsuite name=\"iteration 10\" "), HasSubstr("<testsuite name=\"dump\" "),
                    HasSubstr("<testsuite name=\"missing\" tests=\"2\"")));
  EXPECT_THAT(ToJUnitXml(RunsComparison()), HasSubstr("failures=\"1\""));
  const std::string csv = ToCsv(comparison);
  EXPECT_THAT(csv, AllOf(testing::StartsWith("iteration,rank,"), HasSubstr("\n10,,w,bitwise equal,"),
                         HasSubstr("\n,,w,bitwise equal,"), HasSubstr("\n20,2,w,bitwise equal,"),
                         HasSubstr("\n,,,could not compare,")));
}

}  // namespace
}  // namespace ott::compare
