// Random comparisons, tables and runs against their definitions.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "ott/core/base/file.h"
#include "ott/core/base/text_table.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/faster_answer.h"
#include "ott/questions/faster/read_samples.h"
#include "ott/questions/faster/report.h"

namespace ott::faster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}

  size_t Below(size_t end) { return random_() % end; }
  bool Coin() { return random_() % 2 == 0; }
  // From a hundredth to one.
  double Number() { return static_cast<double>(1 + random_() % 99) / 100; }
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    std::shuffle(values.begin(), values.end(), random_);
  }

 private:
  std::mt19937_64 random_;
};

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
  comparison.margin = 0.02;
  comparison.plotted = "iteration";
  comparison.notes = {"a note"};
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

std::vector<Result> AllOf(const Comparison& comparison) {
  std::vector<Result> all = {comparison.answer};
  all.insert(all.end(), comparison.measurements.begin(), comparison.measurements.end());
  return all;
}

std::string Percents(double low, double high) {
  return absl::StrFormat("%+.1f to %+.1f %%", (low - 1) * 100, (high - 1) * 100);
}

// Returns the sentence about the primary measurement, by its definition.
std::string Sentence(const Comparison& comparison) {
  const Result& answer = comparison.answer;
  const double change = (*answer.ratio - 1) * 100;
  const size_t a = comparison.num_a, b = comparison.num_b;
  const std::string runs = a != b ? absl::StrCat(a, " and ", b, " runs")
                                  : absl::StrCat(a, a == 1 ? " run a side" : " runs a side");
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
  return std::min(a, b) < 2 ? absl::StrCat(text, "; at least ", *answer.runs_needed, " a side are needed")
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
  for (const Result& result : by_size) {
    if (changed(result) && parts.size() < 3) parts.push_back(text_of(result.name, result.seconds_added));
  }
  if (parts.empty() && changed(comparison.answer) && !by_size.empty())
    parts.push_back("as an estimate, " + text_of(by_size[0].name, by_size[0].seconds_added));
  if (parts.empty()) return "";
  return absl::StrCat("what changed: ", absl::StrJoin(parts, ", "), ", of ",
                      text_of("", comparison.answer.seconds_added), " in all\n");
}

TEST(Report, AllFormatsSayWhatTheComparisonHolds) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Chance chance(seed);
    const auto [comparison, samples] = RandomComparison(chance);
    const std::vector<Result> all = AllOf(comparison);

    EXPECT_EQ(DescribeAnswer(comparison), Sentence(comparison));
    std::string text = absl::StrCat(Sentence(comparison), "\n", WhatChanged(comparison));
    TextTable table({"measurement", "A", "B", "change", "interval", "verdict"}, TextTable::LastColumn::kLeft);
    std::string csv = "measurement,verdict,ratio,low,high,runs_needed,seconds_a,seconds_b,runs_a,runs_b\n";
    std::vector<std::string> cases;
    size_t num_slower = 0, num_unknown = 0;
    for (const Result& result : all) {
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
                              all.size(), num_slower, num_unknown, absl::StrJoin(cases, "")));

    const AbVerdict evidence = EvidenceOf(comparison);
    ASSERT_EQ(static_cast<size_t>(evidence.measurements_size()) + 1, all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const AbResult& proto = i == 0 ? evidence.answer() : evidence.measurements(static_cast<int>(i) - 1);
      EXPECT_EQ(proto.measurement(), all[i].name);
      EXPECT_EQ(proto.verdict(), all[i].verdict);
      EXPECT_EQ(proto.ratio(), *all[i].ratio);
      EXPECT_EQ(proto.has_low() && proto.has_high(), all[i].low.has_value());
      EXPECT_EQ(proto.low(), all[i].low.value_or(0));
      EXPECT_EQ(proto.high(), all[i].high.value_or(0));
      EXPECT_EQ(proto.has_runs_needed(), all[i].runs_needed.has_value());
      EXPECT_EQ(proto.runs_needed(), static_cast<int64_t>(all[i].runs_needed.value_or(0)));
      EXPECT_EQ(proto.seconds_a(), all[i].seconds_a);
      EXPECT_EQ(proto.seconds_b(), all[i].seconds_b);
    }
    EXPECT_EQ(evidence.confidence(), 0.95);
    EXPECT_EQ(evidence.margin(), 0.02);
    EXPECT_EQ(evidence.num_a(), static_cast<int64_t>(comparison.num_a));
    EXPECT_EQ(evidence.num_b(), static_cast<int64_t>(comparison.num_b));
    EXPECT_THAT(evidence.notes(), ::testing::ElementsAre("a note"));
    const Answer answer = AnswerFaster(comparison, {"before", "after"});
    EXPECT_EQ(answer.finding(), all[0].verdict == AbResult::SLOWER        ? Answer::BAD
                                : all[0].verdict == AbResult::CANNOT_TELL ? Answer::CANNOT_TELL
                                                                          : Answer::GOOD);
    EXPECT_EQ(answer.how_sure(), absl::StrCat(comparison.num_a, " runs of before and ", comparison.num_b,
                                              " of after; an answer is wrong in 5 % of such comparisons"));

    const auto json = nlohmann::json::parse(ToJson(comparison, samples));
    const auto expect = [](const nlohmann::json& of, const Result& result) {
      const auto or_null = [](const auto& value) {
        return value ? nlohmann::json(*value) : nlohmann::json();
      };
      EXPECT_EQ(of["measurement"], result.name);
      EXPECT_EQ(of["verdict"], Name(result.verdict));
      EXPECT_EQ(of["ratio"], *result.ratio);
      EXPECT_EQ(of["low"], or_null(result.low));
      EXPECT_EQ(of["high"], or_null(result.high));
      EXPECT_EQ(of["runs_needed"], or_null(result.runs_needed));
      EXPECT_EQ(of["seconds_a"], result.seconds_a);
      EXPECT_EQ(of["seconds_b"], result.seconds_b);
    };
    expect(json, comparison.answer);
    EXPECT_EQ(json["answer"], Sentence(comparison));
    EXPECT_EQ(json["confidence"], 0.95);
    EXPECT_EQ(json["margin"], 0.02);
    EXPECT_EQ(json["runs_a"], comparison.num_a);
    EXPECT_EQ(json["runs_b"], comparison.num_b);
    EXPECT_EQ(json["notes"], comparison.notes);
    ASSERT_EQ(json["measurements"].size(), comparison.measurements.size());
    for (size_t i = 0; i < comparison.measurements.size(); ++i)
      expect(json["measurements"][i], comparison.measurements[i]);
    ASSERT_EQ(json["samples"].size(), comparison.num_a + comparison.num_b);
    for (size_t i = 0; i < json["samples"].size(); ++i) {
      const bool is_a = i < comparison.num_a;
      const size_t at = is_a ? i : i - comparison.num_a;
      const Process& process = (is_a ? samples.a : samples.b)[at];
      const ProcessLocation& location = (is_a ? comparison.locations_a : comparison.locations_b)[at];
      const auto& sample = json["samples"][i];
      EXPECT_EQ(sample["side"], is_a ? "A" : "B");
      EXPECT_EQ(sample["process"], process.name);
      EXPECT_EQ(sample["started"], process.started ? nlohmann::json(*process.started) : nlohmann::json());
      EXPECT_EQ(sample["block"], process.block ? nlohmann::json(*process.block) : nlohmann::json());
      EXPECT_EQ(sample["measurements"][0]["seconds"], process.measurements[0].seconds);
      EXPECT_EQ(sample["measurements"][0]["location"], location.seconds);
      EXPECT_EQ(sample["measurements"][0]["warm_up"], location.num_warm_up);
      EXPECT_EQ(sample["measurements"][1]["seconds"], process.measurements[1].seconds);
      EXPECT_FALSE(sample["measurements"][1].contains("location"));
    }
  }
}

// Rows and columns in any order, as CSV of any system and as JSON lines.
TEST(ReadSide, TablesInAnyOrderAreReadByIteration) {
  const std::string path = ::testing::TempDir() + "/random_table";
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Chance chance(seed);
    // Seconds by process, measurement and iteration.
    std::map<std::string, std::map<std::string, std::map<int, double>>> truth;
    struct Row {
      std::string process, measurement;
      int iteration;
      double seconds;
    };
    std::vector<Row> rows;
    for (size_t process = 0, size = 1 + chance.Below(3); process < size; ++process) {
      for (const char* measurement : {"a,b", "c \"d\""}) {
        for (int iteration = 0; iteration < 12; ++iteration) {
          if (chance.Below(4) == 0) continue;
          rows.push_back({absl::StrCat("p", process), measurement, iteration, chance.Number()});
          truth[rows.back().process][measurement][iteration] = rows.back().seconds;
        }
      }
    }
    chance.Shuffle(rows);
    std::string text;
    if (chance.Coin()) {
      for (const Row& row : rows) {
        absl::StrAppend(&text,
                        nlohmann::json({{"process", row.process},
                                        {"measurement", row.measurement},
                                        {"iteration", row.iteration},
                                        {"seconds", row.seconds}})
                            .dump(),
                        chance.Coin() ? "\n" : "\n\n");
      }
    } else {
      std::vector<int> columns = {0, 1, 2, 3};
      chance.Shuffle(columns);
      const std::string end = chance.Coin() ? "\n" : "\r\n";
      const auto line = [&](const std::vector<std::string>& fields) {
        std::vector<std::string> ordered;
        for (const int column : columns) ordered.push_back(fields[static_cast<size_t>(column)]);
        absl::StrAppend(&text, absl::StrJoin(ordered, ","), end, chance.Coin() ? "" : end);
      };
      if (chance.Coin()) text = "\xEF\xBB\xBF";
      line({"process", "measurement", "iteration", "seconds"});
      for (const Row& row : rows) {
        const std::string quoted = absl::StrJoin(absl::StrSplit(row.measurement, '"'), "\"\"");
        line({row.process, absl::StrCat("\"", quoted, "\""), absl::StrCat(row.iteration),
              absl::StrCat(row.seconds)});
      }
    }
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    const auto side = ReadSide({path}, ClockKind::kWall);
    ASSERT_TRUE(side.ok()) << side.status() << text;
    std::map<std::string, std::map<std::string, std::vector<double>>> read;
    for (const Process& process : side->processes) {
      for (const MeasurementSamples& measurement : process.measurements)
        read[process.name][measurement.name] = measurement.seconds;
    }
    std::map<std::string, std::map<std::string, std::vector<double>>> expected;
    for (const auto& [process, measurements] : truth) {
      for (const auto& [measurement, by_iteration] : measurements) {
        for (const auto& [unused, seconds] : by_iteration)
          expected[absl::StrCat(path, ", process ", process)][measurement].push_back(seconds);
      }
    }
    EXPECT_EQ(read, expected) << text;
  }
}

// An iteration of a job begins and ends when all ranks have ended one; a measurement is the mean of those
// that have it.
TEST(ReadSide, RunsOfManyRanksAreReadByTheirDefinition) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Chance chance(seed);
    const std::string run = absl::StrCat(::testing::TempDir(), "/random_run");
    std::filesystem::remove_all(run);
    const size_t num_ranks = 1 + chance.Below(4), num_iterations = 3 + chance.Below(5);
    RunInfo info;
    info.set_world_size(static_cast<int>(num_ranks));
    ASSERT_TRUE(MakeDirectories(run).ok());
    ASSERT_TRUE(WriteRunInfo(run, info).ok());
    std::vector<double> ends(num_iterations + 1);
    std::map<std::string, std::vector<std::vector<float>>> of_measurement;  // of each rank that has it
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      StopwatchStats stats;
      stats.set_rank(static_cast<int>(rank));
      stats.set_num_measured_iters(static_cast<int64_t>(num_iterations));
      stats.mutable_iteration_series()->set_stride(1);
      double end = 0;
      for (size_t i = 0; i < num_iterations; ++i) {
        stats.mutable_iteration_series()->add_seconds(static_cast<float>(chance.Number()));
        end += static_cast<double>(stats.iteration_series().seconds(static_cast<int>(i)));
        ends[i + 1] = std::max(ends[i + 1], end);
      }
      for (const char* name : {"forward", "save", "none"}) {
        if (chance.Below(3) == 0) continue;
        ott::Measurement& measurement = *stats.add_measurements();
        measurement.set_name(name);
        std::vector<float> seconds;
        // Not in all iterations, and not by the end.
        for (size_t i = 0, size = chance.Below(num_iterations + 1); i < size; ++i) {
          const bool runs = name != std::string("none") && chance.Coin();
          seconds.push_back(runs ? static_cast<float>(chance.Number()) : 0);
          measurement.mutable_series()->add_seconds(seconds.back());
        }
        if (!seconds.empty()) of_measurement[name].push_back(seconds);
      }
      const std::string folder = RankDirectory(run, static_cast<int>(rank));
      ASSERT_TRUE(MakeDirectories(folder).ok());
      ASSERT_TRUE(WriteFileAtomically(folder + "/stopwatch.pb", stats.SerializeAsString()).ok());
    }
    const auto side = ReadSide({run}, ClockKind::kWall);
    ASSERT_TRUE(side.ok()) << side.status();
    std::map<std::string, MeasurementSamples> read;
    for (const MeasurementSamples& measurement : side->processes.at(0).measurements)
      read[measurement.name] = measurement;
    ASSERT_EQ(read["iteration"].seconds.size(), num_iterations);
    for (size_t i = 0; i < num_iterations; ++i)
      EXPECT_NEAR(read["iteration"].seconds[i], ends[i + 1] - ends[i], 1e-6);
    size_t num_read = 1;
    for (const auto& [name, of_ranks] : of_measurement) {
      std::vector<double> means;
      size_t longest = 0;
      for (const std::vector<float>& seconds : of_ranks) longest = std::max(longest, seconds.size());
      for (size_t i = 0; i < longest; ++i) {
        double sum = 0;
        for (const std::vector<float>& seconds : of_ranks)
          sum += i < seconds.size() ? static_cast<double>(seconds[i]) : 0;
        if (sum > 0) means.push_back(sum / static_cast<double>(of_ranks.size()));
      }
      EXPECT_EQ(read.count(name), means.empty() ? 0 : 1) << name;
      if (means.empty()) continue;
      ++num_read;
      ASSERT_EQ(read[name].seconds.size(), means.size()) << name;
      for (size_t i = 0; i < means.size(); ++i) EXPECT_NEAR(read[name].seconds[i], means[i], 1e-9) << name;
      EXPECT_DOUBLE_EQ(read[name].share_of_iterations,
                       static_cast<double>(means.size()) / static_cast<double>(longest));
    }
    EXPECT_EQ(read.size(), num_read);
  }
}

TEST(ReadSides, TheAnswerIsAboutWhatIsPrimaryOnBothSides) {
  const std::string folder = ::testing::TempDir();
  const auto write = [&](const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(folder + name, text).ok());
    return std::vector<std::string>{folder + name};
  };
  const auto run = [&](const std::string& name) {
    RunInfo info;
    info.set_world_size(1);
    StopwatchStats stats;
    stats.set_num_measured_iters(2);
    stats.mutable_iteration_series()->set_stride(1);
    for (int i = 0; i < 2; ++i) stats.mutable_iteration_series()->add_seconds(1);
    EXPECT_TRUE(MakeDirectories(RankDirectory(folder + name, 0)).ok());
    EXPECT_TRUE(WriteRunInfo(folder + name, info).ok());
    EXPECT_TRUE(
        WriteFileAtomically(RankDirectory(folder + name, 0) + "/stopwatch.pb", stats.SerializeAsString())
            .ok());
    return std::vector<std::string>{folder + name};
  };
  const auto table = write("table.csv", "process,measurement,seconds\n1,x,1\n");
  const auto a = run("run_a"), b = run("run_b");
  EXPECT_EQ(ReadSides(a, b, ClockKind::kWall)->primary, "iteration");
  EXPECT_EQ(ReadSides(a, table, ClockKind::kWall)->primary, "");
  EXPECT_EQ(ReadSides(table, b, ClockKind::kWall)->primary, "");
}

Samples RandomSamples(Chance& chance, size_t runs) {
  Samples samples;
  samples.primary = "iteration";
  for (auto* side : {&samples.a, &samples.b}) {
    for (size_t run = 0; run < runs; ++run) {
      Process& process = side->emplace_back();
      process.measurements = {{"iteration", {}}};
      const double middle = 1 + 0.02 * chance.Number();
      for (int i = 0; i < 8; ++i) process.measurements[0].seconds.push_back(middle + 0.001 * chance.Number());
    }
  }
  return samples;
}

// A condition that no run of one side shares with one of the other voids the answer; one that differs is
// noted.
TEST(Conditions, ThatDifferAreVoidOrNotedByTheValuesOfBothSides) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Chance chance(seed);
    Samples samples = RandomSamples(chance, 4);
    std::map<std::string, std::set<std::string>> values[2];
    FasterOptions options;
    if (chance.Coin()) options.accepted = {"CPU"};
    for (const char* name : {"CPU", "machine"}) {
      for (const int side : {0, 1}) {
        if (chance.Below(5) == 0) continue;
        const size_t first = chance.Below(2), size = 1 + chance.Below(5);
        for (Process& process : side == 0 ? samples.a : samples.b) {
          const std::string value = absl::StrCat("v", first + chance.Below(size));
          process.conditions[name] = value;
          values[side][name].insert(value);
        }
      }
    }
    std::vector<std::string> voids, notes;
    for (const auto& [name, a] : values[0]) {
      if (values[1].count(name) == 0) continue;
      const std::set<std::string>& b = values[1][name];
      if (a.size() == 1 && a == b) continue;
      const auto list = [](const std::set<std::string>& of) {
        std::vector<std::string> listed(of.begin(), of.end());
        if (listed.size() > 3)
          listed = {listed[0], listed[1], listed[2], absl::StrCat(listed.size() - 3, " more")};
        return absl::StrJoin(listed, ", ");
      };
      std::vector<std::string> both;
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
      const std::string text = absl::StrCat(name, " of A: ", list(a), "; of B: ", list(b));
      const bool is_void = both.empty() && options.accepted.count(name) == 0;
      (is_void ? voids : notes)
          .push_back(is_void ? absl::StrCat(text, ": that may be the difference; --accept ", name,
                                            " compares them nevertheless")
                             : text);
    }
    const auto comparison = Compare(samples, options);
    ASSERT_TRUE(comparison.ok());
    EXPECT_EQ(comparison->voids, voids) << seed;
    for (const std::string& note : notes) EXPECT_THAT(comparison->notes, Contains(note)) << seed;
    const auto is_of_conditions = [](const std::string& note) { return note.find(" of A: v") != note.npos; };
    EXPECT_EQ(std::count_if(comparison->notes.begin(), comparison->notes.end(), is_of_conditions),
              static_cast<int64_t>(notes.size()))
        << seed;
    EXPECT_TRUE(voids.empty() || comparison->answer.verdict == AbResult::CANNOT_TELL) << seed;
  }
}

TEST(Conditions, TimesThatAreAllTheSameAreDoubtedIfBothSidesHaveThem) {
  constexpr char kDoubt[] = "took the same time to the last digit";
  for (const bool a_varies : {false, true}) {
    for (const bool b_varies : {false, true}) {
      for (const size_t runs : {1, 4}) {
        Samples samples;
        samples.primary = "iteration";
        for (size_t run = 0; run < runs; ++run) {
          const double later = 0.01 * static_cast<double>(run);
          samples.a.emplace_back().measurements = {{"iteration", {1 + (a_varies ? later : 0)}}};
          samples.b.emplace_back().measurements = {{"iteration", {2 + (b_varies ? later : 0)}}};
        }
        const auto comparison = Compare(samples, {});
        ASSERT_TRUE(comparison.ok());
        if (runs > 1 && !a_varies && !b_varies) {
          EXPECT_THAT(comparison->notes, Contains(HasSubstr(kDoubt)));
        } else {
          EXPECT_THAT(comparison->notes, Not(Contains(HasSubstr(kDoubt)))) << a_varies << b_varies << runs;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ott::faster
