// Compares what is printed of random comparisons with its definition.

#include "ott/questions/faster/report.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/base/text_table.h"
#include "ott/questions/answer/display_text.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/faster/comparison_picture.h"
#include "ott/questions/faster/faster_answer.h"
#include "ott/questions/faster/faster_question.h"
#include "ott/questions/faster/runs_directory.h"
#include "ott/questions/faster/samples_for_test.h"

namespace ott::faster {
namespace {

Result RandomResult(Chance& chance, const std::string& name) {
  Result result;
  result.name = name;
  result.verdict = std::vector<AbResult::Verdict>{AbResult::CANNOT_TELL, AbResult::FASTER, AbResult::SLOWER,
                                                  AbResult::SAME}[chance.Below(4)];
  result.ratio = 0.5 + chance.Number();
  if (result.verdict != AbResult::CANNOT_TELL || chance.Coin()) {
    result.low = *result.ratio * 0.9;
    result.high = *result.ratio * 1.2;
  }
  if (result.verdict == AbResult::CANNOT_TELL && chance.Coin()) result.runs_needed = 7 + chance.Below(9);
  result.error = 0.05;
  result.seconds_a = chance.Number();
  result.seconds_b = result.seconds_a * *result.ratio;
  result.seconds_added = (chance.Coin() ? 1 : -1) * chance.Number();
  return result;
}

struct Compared {
  Comparison comparison;
  Samples samples;
};

Compared RandomComparison(Chance& chance) {
  Compared compared;
  Comparison& comparison = compared.comparison;
  comparison.answer = RandomResult(chance, "iteration");
  for (const char* name : {"forward", "loss", "backward", "step", "data", "save"}) {
    if (chance.Coin()) comparison.measurements.push_back(RandomResult(chance, name));
  }
  // All measurements may count alike.
  if (comparison.measurements.size() > 1 && chance.Coin()) {
    comparison.answer = Result();
    comparison.answer.error = 0.05;
    comparison.answer.verdict = comparison.measurements[0].verdict;
  }
  comparison.margin = 0.02;
  comparison.plotted = "iteration";
  comparison.notes = {"a note"};
  if (chance.Coin()) comparison.voids = {"other machines", "other ranks"};
  for (auto* side : {&compared.samples.a, &compared.samples.b}) {
    const bool is_a = side == &compared.samples.a;
    for (size_t run = 0, runs = 1 + chance.Below(5); run < runs; ++run) {
      Process& process = side->emplace_back();
      process.name = absl::StrCat(is_a ? "a" : "b", run);
      if (chance.Coin()) process.started = chance.Number();
      if (chance.Coin()) process.block = run / 2;
      process.measurements = {{"iteration", {chance.Number(), chance.Number()}}, {"x", {chance.Number()}}};
      (is_a ? comparison.locations_a : comparison.locations_b).push_back({chance.Number(), chance.Below(3)});
    }
  }
  comparison.num_a = compared.samples.a.size();
  comparison.num_b = compared.samples.b.size();
  return compared;
}

std::string Percents(double low, double high) {
  return absl::StrFormat("%+.1f to %+.1f %%", (low - 1) * 100, (high - 1) * 100);
}

std::string RunsOf(const Comparison& comparison) {
  const size_t a = comparison.num_a, b = comparison.num_b;
  return a != b ? absl::StrCat(a, " and ", b, " runs")
                : absl::StrCat(a, a == 1 ? " run a side" : " runs a side");
}

// Returns the sentence about the primary measurement, by its definition.
std::string Sentence(const Comparison& comparison) {
  const Result& answer = comparison.answer;
  if (answer.verdict == AbResult::CANNOT_TELL && !comparison.voids.empty())
    return "cannot tell: other machines";
  if (answer.name.empty()) return DescribeAnswer(comparison);
  const double change = (*answer.ratio - 1) * 100;
  const std::string runs = RunsOf(comparison);
  if (answer.verdict == AbResult::SAME) {
    return absl::StrCat("B is the same within 2 % (95 %: ", Percents(*answer.low, *answer.high), ")");
  }
  if (answer.verdict == AbResult::FASTER) {
    return absl::StrFormat("B is faster by %.1f %% (95 %%: %.1f to %.1f %%)", -change,
                           (1 - *answer.high) * 100, (1 - *answer.low) * 100);
  }
  if (answer.verdict == AbResult::SLOWER) {
    return absl::StrFormat("B is slower by %.1f %% (95 %%: %.1f to %.1f %%)", change, (*answer.low - 1) * 100,
                           (*answer.high - 1) * 100);
  }
  std::string text =
      answer.low ? absl::StrFormat("cannot tell: between %+.1f %% and %+.1f %% after %s",
                                   (*answer.low - 1) * 100, (*answer.high - 1) * 100, runs)
                 : absl::StrFormat("cannot tell: %s (B / A %+.1f %%) are too few for 95 %%", runs, change);
  if (!answer.runs_needed) return text;
  return std::min(comparison.num_a, comparison.num_b) < 2
             ? absl::StrCat(text, "; at least ", *answer.runs_needed, " a side are needed")
             : absl::StrCat(text, "; some ", *answer.runs_needed, " a side would tell 2 %");
}

// Names the three that surely changed most; if none did and the whole did, the largest.
std::string WhatChanged(const Comparison& comparison) {
  const auto changed = [](const Result& result) {
    return result.verdict == AbResult::FASTER || result.verdict == AbResult::SLOWER;
  };
  const auto text_of = [](const std::string& name, double seconds) {
    return absl::StrCat(name, name.empty() ? "" : " ", seconds < 0 ? "-" : "+",
                        FormatSeconds(std::abs(seconds)));
  };
  std::vector<Result> by_size = comparison.measurements;
  std::stable_sort(by_size.begin(), by_size.end(), [](const Result& a, const Result& b) {
    return std::abs(a.seconds_added) > std::abs(b.seconds_added);
  });
  std::vector<std::string> parts;
  if (comparison.answer.name.empty()) return "";
  for (const Result& result : by_size) {
    if (changed(result) && parts.size() < 3) parts.push_back(text_of(result.name, result.seconds_added));
  }
  if (parts.empty() && changed(comparison.answer) && !by_size.empty())
    parts.push_back("as an estimate, " + text_of(by_size[0].name, by_size[0].seconds_added));
  if (parts.empty()) return "";
  return absl::StrCat("what changed: ", absl::StrJoin(parts, ", "), ", of ",
                      text_of("", comparison.answer.seconds_added), " in all\n");
}

template <typename Number>
Json OrNull(const std::optional<Number>& number) {
  return number ? Json(*number) : Json();
}

// Returns a result as JSON says it, or as a picture draws it.
Json JsonOf(const Result& result, bool is_drawn) {
  const auto rounded = [&](double number) { return is_drawn ? Rounded(number) : number; };
  const auto or_null = [&](const auto& number) { return number ? Json(rounded(*number)) : Json(); };
  const bool has_name = is_drawn || !result.name.empty();
  return {{"measurement", has_name ? Json(result.name) : Json()},
          {"verdict", is_drawn ? AbResult::Verdict_Name(result.verdict) : Name(result.verdict)},
          {"ratio", or_null(result.ratio)},
          {"low", or_null(result.low)},
          {"high", or_null(result.high)},
          {"runs_needed", OrNull(result.runs_needed)},
          {"seconds_a", has_name ? Json(rounded(result.seconds_a)) : Json()},
          {"seconds_b", has_name ? Json(rounded(result.seconds_b)) : Json()}};
}

TEST(Report, AllFormatsSayWhatTheComparisonHolds) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Chance chance(seed);
    const auto [comparison, samples] = RandomComparison(chance);
    std::vector<Result> all = {comparison.answer};
    all.insert(all.end(), comparison.measurements.begin(), comparison.measurements.end());

    EXPECT_EQ(DescribeAnswer(comparison), Sentence(comparison));
    const Result& first = comparison.answer;
    EXPECT_EQ(DescribeProgress(comparison),
              first.name.empty()
                  ? absl::StrCat(RunsOf(comparison), ": ", Name(first.verdict))
                  : absl::StrFormat("%s: B / A %+.1f %% (%s)", RunsOf(comparison), (*first.ratio - 1) * 100,
                                    first.low ? Percents(*first.low, *first.high) : "too few to tell"));
    std::string text =
        absl::StrCat(Sentence(comparison), "\n", comparison.voids.empty() ? "" : "also: other ranks\n",
                     WhatChanged(comparison));
    TextTable table({"measurement", "A", "B", "change", "interval", "verdict"}, TextTable::LastColumn::kLeft);
    std::string csv = "measurement,verdict,ratio,low,high,runs_needed,seconds_a,seconds_b,runs_a,runs_b\n";
    std::vector<std::string> cases;
    size_t num_slower = 0, num_unknown = 0;
    for (const Result& result : all) {
      if (result.name.empty()) continue;
      const std::string interval = result.low ? Percents(*result.low, *result.high) : "";
      const std::string change = absl::StrFormat("%+.1f %%", (*result.ratio - 1) * 100);
      table.AddRow({result.name, FormatSecondsCell(result.seconds_a), FormatSecondsCell(result.seconds_b),
                    change, interval, Name(result.verdict)});
      absl::StrAppendFormat(&csv, "%s,%s,%.9g,", result.name, Name(result.verdict), *result.ratio);
      absl::StrAppend(&csv, result.low ? absl::StrFormat("%.9g,%.9g", *result.low, *result.high) : ",", ",",
                      result.runs_needed ? absl::StrCat(*result.runs_needed) : "");
      absl::StrAppendFormat(&csv, ",%.9g,%.9g,%d,%d\n", result.seconds_a, result.seconds_b, comparison.num_a,
                            comparison.num_b);
      const std::string message =
          absl::StrCat(&result == &all[0] ? Sentence(comparison) : Name(result.verdict), "; B / A ", change,
                       " (", interval, ")");
      const bool is_slower = result.verdict == AbResult::SLOWER,
                 is_open = result.verdict == AbResult::CANNOT_TELL;
      num_slower += is_slower;
      num_unknown += is_open;
      cases.push_back(
          absl::StrFormat("  <testcase classname=\"ott.ab\" name=\"%s\" time=\"%.9g\">%s</testcase>\n",
                          result.name, result.seconds_b,
                          is_slower ? absl::StrCat("<failure message=\"", message, "\"/>")
                          : is_open ? absl::StrCat("<error message=\"", message, "\"/>")
                                    : ""));
    }
    absl::StrAppend(&text, table.ToString(), "A is ", comparison.num_a, " and B ", comparison.num_b,
                    " processes; intervals hold with 95 %",
                    comparison.measurements.size() > 1 ? ", those of all measurements together" : "",
                    "\nnote: a note\n");
    EXPECT_EQ(ToText(comparison), text);
    EXPECT_EQ(ToCsv(comparison), csv);
    EXPECT_EQ(ToJUnitXml(comparison),
              absl::StrFormat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"ott ab\" "
                              "tests=\"%d\" failures=\"%d\" errors=\"%d\">\n%s</testsuite>\n",
                              cases.size(), num_slower, num_unknown, absl::StrJoin(cases, "")));

    const AbVerdict evidence = EvidenceOf(comparison);
    Json measurements = Json::array(), drawn = Json::array(), printed_samples = Json::array();
    for (size_t i = 1; i < all.size(); ++i) {
      measurements.push_back(JsonOf(all[i], /*is_drawn=*/false));
      drawn.push_back(JsonOf(all[i], /*is_drawn=*/true));
    }
    EXPECT_EQ(DrawMessage(evidence), Json({{"answer", JsonOf(all[0], /*is_drawn=*/true)},
                                           {"measurements", drawn},
                                           {"confidence", 0.95},
                                           {"margin", 0.02},
                                           {"num_a", comparison.num_a},
                                           {"num_b", comparison.num_b},
                                           {"voids", comparison.voids},
                                           {"notes", comparison.notes}}));
    const Answer answer = AnswerFaster(comparison, {"before", "after"});
    EXPECT_EQ(answer.evidence(), evidence.SerializeAsString());
    EXPECT_THAT(answer.pictures(), ::testing::ElementsAre("comparison"));
    EXPECT_EQ(answer.finding(), all[0].verdict == AbResult::SLOWER        ? Answer::BAD
                                : all[0].verdict == AbResult::CANNOT_TELL ? Answer::CANNOT_TELL
                                                                          : Answer::GOOD);
    EXPECT_EQ(answer.how_sure(), absl::StrCat(comparison.num_a, " runs of before and ", comparison.num_b,
                                              " of after; an answer is wrong in 5 % of such comparisons"));

    for (const auto* side : {&samples.a, &samples.b}) {
      const bool is_a = side == &samples.a;
      for (size_t run = 0; run < side->size(); ++run) {
        const Process& process = (*side)[run];
        const ProcessLocation& location = (is_a ? comparison.locations_a : comparison.locations_b)[run];
        printed_samples.push_back({{"side", is_a ? "A" : "B"},
                                   {"process", process.name},
                                   {"started", OrNull(process.started)},
                                   {"block", OrNull(process.block)},
                                   {"measurements",
                                    {{{"measurement", "iteration"},
                                      {"seconds", process.measurements[0].seconds},
                                      {"location", location.seconds},
                                      {"warm_up", location.num_warm_up}},
                                     {{"measurement", "x"}, {"seconds", process.measurements[1].seconds}}}}});
      }
    }
    Json json = JsonOf(all[0], /*is_drawn=*/false);
    json.update({{"answer", Sentence(comparison)},
                 {"confidence", 0.95},
                 {"margin", 0.02},
                 {"runs_a", comparison.num_a},
                 {"runs_b", comparison.num_b},
                 {"voids", comparison.voids},
                 {"notes", comparison.notes},
                 {"measurements", measurements},
                 {"samples", printed_samples}});
    EXPECT_EQ(Json::parse(ToJson(comparison, samples)), json);
  }
}

TEST(Report, ThePageHasTheAnswerAllMeasurementsAndAPictureOfSome) {
  for (const size_t num_measurements : {3, 32, 33}) {
    Chance chance(num_measurements);
    Comparison comparison = RandomComparison(chance).comparison;
    comparison.measurements.clear();
    for (size_t i = 0; i < num_measurements; ++i)
      comparison.measurements.push_back(RandomResult(chance, absl::StrCat("m", i)));
    comparison.locations_a.resize(201, {0.25, 0});
    comparison.voids = {"another machine"};
    const Document document = DocumentOf(comparison, "A: old; B: new");
    EXPECT_EQ(document.title, "ott ab");
    EXPECT_EQ(document.subject, "A: old; B: new");
    ASSERT_EQ(document.answers.size(), 1u);
    EXPECT_EQ(document.answers[0].sentences(0), DescribeAnswer(comparison));
    EXPECT_EQ(document.problems, comparison.voids);
    ASSERT_EQ(document.details.size(), 1u);
    EXPECT_EQ(document.details[0].text, ToText(comparison));
    EXPECT_EQ(document.thinned.size(), num_measurements > 32 ? 1u : 0u);
    const Json& picture = document.pictures.at("comparison");
    EXPECT_EQ(picture.at("sides"), Json({"A", "B"}));
    EXPECT_EQ(picture.at("measurement"), "iteration");
    EXPECT_EQ(picture.at("seconds_a").size(), 200u);
    EXPECT_EQ(picture.at("seconds_b").size(), comparison.num_b);
    EXPECT_EQ(picture.at("seconds_b").at(0), comparison.locations_b[0].seconds);
    EXPECT_EQ(picture.at("verdict").at("measurements").size(), std::min<size_t>(num_measurements, 32));
    for (const char* without : {"notes", "voids"})
      EXPECT_TRUE(picture.at("verdict").at(without).empty()) << without;
  }
}

TEST(FasterQuestion, ComparesWithRunsBefore) {
  // A file of six processes, each of its own name.
  const auto times_of = [](const std::string& name, double seconds) {
    std::string text = "process,seconds\n";
    for (int run = 0; run < 6; ++run) absl::StrAppend(&text, run, ",", seconds * (1 + 0.01 * run), "\n");
    const std::string path = ::testing::TempDir() + name;
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  };
  AskedRun run;
  run.run_dir = "out";
  run.runs = {times_of("now", 1)};
  EXPECT_TRUE(FasterQuestion().ask(run)->answers.empty()) << "there were none before";
  run.before = {::testing::TempDir() + "none"};
  EXPECT_EQ(FasterQuestion().ask(run).status().message(),
            "--before, as by `ott ab`: " + run.before[0] + ": No such file or directory");
  for (const auto& [before, finding] : {std::pair(2.0, Answer::GOOD), {0.5, Answer::BAD}}) {
    run.before = {times_of("before", before)};
    const Findings findings = *FasterQuestion().ask(run);
    EXPECT_EQ(findings.answers.at(0).finding(), finding);
    EXPECT_EQ(absl::StrJoin(findings.answers[0].next(), ";"), finding == Answer::BAD ? "ott whatif out" : "");
    EXPECT_THAT(findings.details.at(0).text, ::testing::HasSubstr(findings.answers[0].sentences(0)));
    Document document;
    findings.draw({}, &document);
    EXPECT_EQ(document.pictures.at("comparison").at("sides"), Json({"before", "after"}));
    EXPECT_EQ(document.pictures["comparison"]["seconds_b"].at(0), 1);
  }
}

TEST(ParseMaxTime, IsSecondsOrADuration) {
  for (const auto& [text, seconds] : std::vector<std::pair<std::string, double>>{
           {"5", 5}, {"0.25", 0.25}, {"1h30m", 5400}, {"90s", 90}, {"250ms", 0.25}, {"99999999", 99999999}}) {
    ASSERT_TRUE(ParseMaxTime(text).ok()) << text;
    EXPECT_EQ(*ParseMaxTime(text), seconds) << text;
  }
  EXPECT_EQ(*ParseMaxTime(""), std::nullopt);
  for (const char* text : {"0", "-1", "nan", "inf", "100000000", "-5s", "soon", "5 apples"}) {
    EXPECT_EQ(ParseMaxTime(text).status().message(),
              absl::StrCat("--max-time ", text, ": needs seconds, or as in 1h30m"));
  }
}

TEST(Report, NamesAreEscapedInEachFormat) {
  Chance chance(18);
  Comparison comparison;
  comparison.answer = RandomResult(chance, "iteration");
  comparison.measurements = {RandomResult(chance, "<\"data\">\n")};
  EXPECT_THAT(ToCsv(comparison), ::testing::HasSubstr("\n\"<\"\"data\"\">\n\","));
  comparison.notes = {"größer"};
  EXPECT_THAT(ToJson(comparison, Samples()), ::testing::HasSubstr("größer"));
  EXPECT_THAT(ToJUnitXml(comparison), ::testing::HasSubstr("name=\"&lt;&quot;data&quot;&gt;\\n\" time="));
}

}  // namespace
}  // namespace ott::faster
