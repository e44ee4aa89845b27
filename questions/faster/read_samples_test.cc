// Reads files and folders as others write them, and compares with what was written.

#include "ott/questions/faster/read_samples.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "ott/core/base/file.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/faster/samples_for_test.h"

namespace ott::faster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReadSideTest : public ::testing::Test {
 protected:
  ReadSideTest() {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << text;
    return dir_ + "/" + name;
  }

  static std::string ErrorIn(const std::vector<std::string>& paths, ClockKind clock = ClockKind::kWall) {
    return std::string(ReadSide(paths, clock).status().message());
  }

  // Returns the error that a file of this text makes.
  std::string ErrorOf(const std::string& text) const {
    const std::string error = ErrorIn({Write("file", text)});
    EXPECT_THAT(error, HasSubstr(dir_ + "/file"));
    return error;
  }

  std::string WriteRun(const std::string& name, const std::vector<StopwatchStats>& ranks) const {
    const std::string run = dir_ + "/" + name;
    RunInfo info;
    info.set_world_size(static_cast<int>(ranks.size()));
    if (ranks.size() > 1) info.set_cpu("model");
    info.set_version("1.2");
    info.set_started("2026-01-02T03:04:05+00:00");
    for (const char* host : {"host_b", "host_a", "host_b"}) info.add_hosts(host);
    EXPECT_TRUE(MakeDirectories(run).ok());
    EXPECT_TRUE(WriteRunInfo(run, info).ok());
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::string folder = RankDirectory(run, static_cast<int>(rank));
      EXPECT_TRUE(MakeDirectories(folder).ok());
      EXPECT_TRUE(WriteFileAtomically(folder + "/stopwatch.pb", ranks[rank].SerializeAsString()).ok());
    }
    return run;
  }

  // Ranks whose iterations take so many seconds.
  std::string WriteIterations(const std::string& name, const std::vector<std::vector<float>>& seconds) const {
    std::vector<StopwatchStats> ranks;
    for (const std::vector<float>& of_rank : seconds) {
      StopwatchStats& stats = ranks.emplace_back();
      stats.set_num_measured_iters(static_cast<int64_t>(of_rank.size()));
      stats.mutable_iteration_series()->set_stride(1);
      stats.mutable_iteration_series()->mutable_seconds()->Add(of_rank.begin(), of_rank.end());
    }
    return WriteRun(name, ranks);
  }

  const std::string dir_ =
      ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

SideSamples MustRead(const std::vector<std::string>& paths, ClockKind clock = ClockKind::kWall) {
  return ReadSide(paths, clock).value();
}

TEST_F(ReadSideTest, FoldersGlobsAndStartsOfRunsAreRead) {
  WriteIterations("old_1", {{1, 1}});
  WriteIterations("old_2", {{2, 2}});
  WriteIterations("kept/a_001/run", {{3, 3}});
  EXPECT_EQ(MustRead({dir_ + "/old_*"}).processes.size(), 2);
  EXPECT_EQ(MustRead({dir_ + "/kept"}).processes.size(), 1);
  const std::string run = WriteIterations("run", {{1, 2}});
  const std::string latest = WriteIterations("run/attempt_2", {{3, 4}});
  EXPECT_EQ(MustRead({run}).processes.at(0).name, latest);
  EXPECT_EQ(MustRead({run + "/attempt_1"}).processes.at(0).name, run);
}

TEST_F(ReadSideTest, ARunWithoutARankOrWithAShorterOneIsAnError) {
  const std::string run = WriteIterations("run", {{1, 1}, {1, 1}});
  std::filesystem::remove(RankDirectory(run, 1) + "/stopwatch.pb");
  EXPECT_THAT(ErrorIn({run}), HasSubstr("rank_00001/stopwatch.pb"));
  EXPECT_THAT(ErrorIn({WriteIterations("cut", {{1, 1, 1}, {1, 1}})}),
              HasSubstr("rank 0 measured 3 iterations and rank 1 2"));
  EXPECT_THAT(ErrorIn({WriteIterations("nan", {{1, NAN}})}), HasSubstr("an iteration of nan seconds"));
  EXPECT_THAT(ErrorIn({WriteIterations("zero", {{1, 0}})}), HasSubstr("an iteration of 0 seconds"));
  // It vanishes beside the one before.
  EXPECT_THAT(ErrorIn({WriteIterations("brief", {{1, 1e-30f}})}), HasSubstr("an iteration of 0 seconds"));
  EXPECT_THAT(ErrorIn({WriteIterations("none", {{}})}), HasSubstr("no iteration was measured"));
}

// Seconds by measurement.
using Times = std::map<std::string, std::vector<double>>;

Times TimesOf(const Process& process) {
  Times times;
  for (const MeasurementSamples& measurement : process.measurements)
    times[measurement.name] = measurement.seconds;
  return times;
}

void ExpectTimes(const Process& process, const Times& expected) {
  const Times times = TimesOf(process);
  ASSERT_EQ(times.size(), expected.size());
  for (const auto& [name, seconds] : expected) {
    EXPECT_THAT(times.at(name), ::testing::Pointwise(::testing::DoubleNear(1e-12), seconds)) << name;
  }
}

// Repetitions are iterations; where aggregates alone were written, the median is.
TEST_F(ReadSideTest, GoogleBenchmarksAreReadByTheirDefinition) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Chance chance(seed);
    const bool is_scaled = chance.Coin(), has_context = chance.Coin();
    nlohmann::json context = {{"cpu_scaling_enabled", is_scaled}}, benchmarks;
    std::map<std::string, std::string> conditions;
    if (has_context) {
      context["host_name"] = conditions["machine"] = "host";
      context["num_cpus"] = 3;
      conditions["CPU"] = "3 CPUs";
      context["library_version"] = "v2";
      context["library_build_type"] = "debug";
      conditions["library"] = "Google Benchmark v2 debug";
      context["date"] = "2026-01-02T03:04:05+00:00";
    }
    Times wall, cpu;
    for (const char* name : {"Sort/1", "Find", "Old"}) {
      const std::vector<std::pair<const char*, double>> units = {
          {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
      const auto [unit, scale] = units[chance.Below(4)];
      const bool aggregates_alone = chance.Coin(), is_old = name == std::string("Old");
      const auto add = [&](const std::string& suffix, const std::string& aggregate, bool counts) {
        const double real_time = chance.Number(), cpu_time = chance.Number();
        nlohmann::json& benchmark = benchmarks.emplace_back();
        benchmark = {{"name", name + suffix}, {"real_time", real_time}, {"cpu_time", cpu_time}};
        // Without a unit it is nanoseconds; without a run name the name is that of the run.
        if (scale != 1e-9 || chance.Coin()) benchmark["time_unit"] = unit;
        if (!is_old) benchmark["run_name"] = name;
        benchmark["run_type"] = aggregate.empty() ? "iteration" : "aggregate";
        if (!aggregate.empty()) benchmark["aggregate_name"] = aggregate;
        if (!counts) return;
        wall[name].push_back(real_time * scale);
        cpu[name].push_back(cpu_time * scale);
      };
      for (size_t i = 0, size = 1 + chance.Below(3); i < size && (is_old || !aggregates_alone); ++i)
        add("", "", true);
      if (is_old) continue;
      for (const char* aggregate : {"mean", "median", "stddev"})
        add(absl::StrCat("_", aggregate), aggregate, aggregates_alone && aggregate == std::string("median"));
    }
    if (chance.Coin()) {
      benchmarks.push_back(
          {{"name", "Skipped"}, {"run_type", "iteration"}, {"skipped", true}, {"real_time", 0}});
    }
    const std::string file =
        Write("benchmark.json", nlohmann::json({{"context", context}, {"benchmarks", benchmarks}}).dump());
    const SideSamples side = MustRead({file});
    ASSERT_EQ(side.processes.size(), 1u);
    ExpectTimes(side.processes[0], wall);
    ExpectTimes(MustRead({file}, ClockKind::kCpu).processes[0], cpu);
    EXPECT_EQ(side.processes[0].name, file);
    EXPECT_EQ(side.processes[0].conditions, conditions);
    EXPECT_EQ(side.processes[0].started.value_or(0), has_context ? 1767323045 : 0);
    EXPECT_EQ(side.notes.size(), is_scaled ? 1u : 0u);
    if (is_scaled) {
      EXPECT_THAT(side.notes[0], HasSubstr(file + ": the CPU's frequency was scaled"));
    }
    EXPECT_EQ(side.primary, "");
    EXPECT_FALSE(side.iterations_must_match);
  }
}

// Its times are the samples beside it, else the first mean that the clock has.
TEST_F(ReadSideTest, StatesOfNvbenchAreReadByTheirDefinition) {
  const char* const tags[] = {"nv/cold/time/gpu/mean", "nv/cpu_only/time/cpu/mean", "nv/cold/time/cpu/mean"};
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Chance chance(seed);
    nlohmann::json states;
    Times expected[2];
    for (size_t i = 0, size = 1 + chance.Below(3); i < size; ++i) {
      const std::string name = absl::StrCat("Size=", i);
      nlohmann::json summaries = nlohmann::json::array();
      const bool is_skipped = i > 0 && chance.Below(4) == 0, has_samples = chance.Coin();
      std::vector<double> of_clock[2];
      for (size_t tag = 0; tag < 3; ++tag) {
        if (tag < 2 && chance.Coin()) continue;
        const double mean = chance.Number();
        summaries.push_back(
            {{"tag", tags[tag]}, {"data", {{{"name", "value"}, {"value", absl::StrCat(mean)}}}}});
        if (of_clock[0].empty()) of_clock[0] = {mean};
        if (of_clock[1].empty() && tag > 0) of_clock[1] = {mean};
      }
      if (has_samples) {
        const std::string file = absl::StrCat("samples", i, ".bin");
        const std::vector<float> samples(1 + chance.Below(3), static_cast<float>(chance.Number()));
        Write(file,
              std::string(reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(float)));
        of_clock[0].assign(samples.begin(), samples.end());
        summaries.push_back({{"tag", "nv/json/bin:nv/cold/sample_times"},
                             {"data",
                              {{{"name", "filename"}, {"value", file}},
                               {{"name", "size"}, {"value", absl::StrCat(samples.size())}}}}});
      }
      chance.Shuffle(summaries.get_ref<nlohmann::json::array_t&>());
      states.push_back({{"name", name}, {"is_skipped", is_skipped}, {"summaries", summaries}});
      for (const int clock : {0, 1}) {
        if (!is_skipped) expected[clock]["copy " + name] = of_clock[clock];
      }
    }
    nlohmann::json root = {{"devices", nlohmann::json::array()},
                           {"benchmarks", {{{"name", "copy"}, {"states", states}}}}};
    std::map<std::string, std::string> conditions;
    if (chance.Coin()) {
      root["devices"] = {{{"name", "G1"}}, {{"name", "G2"}}};
      conditions["machine"] = "G1, G2";
    }
    if (chance.Coin()) {
      root["meta"]["version"]["nvbench"]["string"] = "7";
      conditions["library"] = "nvbench 7";
    }
    const std::string file = Write("nvbench.json", root.dump());
    const Process process = MustRead({file}).processes.at(0);
    ExpectTimes(process, expected[0]);
    ExpectTimes(MustRead({file}, ClockKind::kCpu).processes.at(0), expected[1]);
    EXPECT_EQ(process.conditions, conditions);
  }
}

TEST_F(ReadSideTest, SamplesOfNvbenchThatAreNotThereOrOfAnotherSizeAreErrors) {
  const std::string text =
      R"({"devices": [], "benchmarks": [{"name": "copy", "states": [{"name": "x", "summaries": [
      {"tag": "nv/json/bin:nv/cold/sample_times", "data": [{"name": "filename", "value": "samples.bin"},
      {"name": "size", "value": "2"}]}]}]}]})";
  EXPECT_THAT(ErrorOf(text), HasSubstr("samples.bin, are not there"));
  const float values[] = {0.5f, 0.75f, -1};
  const std::string bytes(reinterpret_cast<const char*>(values), sizeof(values));
  // It may stand beside the folder, too.
  std::filesystem::create_directories(dir_ + "/inner");
  Write("samples.bin", bytes.substr(0, 8));
  ExpectTimes(MustRead({Write("inner/file", text)}).processes.at(0), {{"copy x", {0.5, 0.75}}});
  Write("samples.bin", bytes);
  EXPECT_THAT(ErrorIn({Write("file", text)}),
              HasSubstr("samples.bin: 12 bytes, and " + dir_ + "/file says 2 samples of 4 bytes"));
  Write("samples.bin", bytes.substr(4));
  EXPECT_THAT(ErrorIn({dir_ + "/file"}), HasSubstr("sample 1 is -1.0: a time is a positive number"));
}

TEST_F(ReadSideTest, RunsOfHyperfineAreProcesses) {
  for (const size_t num_commands : {1, 2}) {
    nlohmann::json results;
    for (size_t i = 0; i < num_commands; ++i) {
      results.push_back({{"command", absl::StrCat("sleep ", i)},
                         {"times", {1.5 + static_cast<double>(i), 2.5}},
                         {"exit_codes", {0, 0}}});
    }
    const std::string file = Write("hyperfine.json", nlohmann::json({{"results", results}}).dump());
    const SideSamples side = MustRead({file});
    ASSERT_EQ(side.processes.size(), 2u);
    EXPECT_EQ(side.processes[1].name, file + ", run 2");
    if (num_commands == 1) {
      ExpectTimes(side.processes[0], {{"wall time", {1.5}}});
      ExpectTimes(side.processes[1], {{"wall time", {2.5}}});
    } else {
      ExpectTimes(side.processes[0], {{"sleep 0", {1.5}}, {"sleep 1", {2.5}}});
    }
    EXPECT_THAT(ErrorIn({file}, ClockKind::kCpu), HasSubstr("CPU time of all runs"));
  }
}

// Rows and columns in any order, as CSV of any system and as JSON lines.
TEST_F(ReadSideTest, TablesInAnyOrderAreReadByIteration) {
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
    const std::string path = Write("table", text);
    const SideSamples side = MustRead({path});
    std::map<std::string, Times> read;
    for (const Process& process : side.processes) read[process.name] = TimesOf(process);
    EXPECT_TRUE(side.iterations_must_match);
    std::map<std::string, Times> expected;
    for (const auto& [process, measurements] : truth) {
      for (const auto& [measurement, by_iteration] : measurements) {
        for (const auto& [unused, seconds] : by_iteration)
          expected[absl::StrCat(path, ", process ", process)][measurement].push_back(seconds);
      }
    }
    EXPECT_EQ(read, expected) << text;
  }
}

TEST_F(ReadSideTest, RowsStayInTheirOrderWhereAnIterationIsNoNumber) {
  const std::string path = Write("table", "process,iteration,seconds\n1,2,3\n1,nan,2\n1,1,4\n");
  EXPECT_THAT(MustRead({path}).processes[0].measurements[0].seconds, ElementsAre(3, 2, 4));
}

// An iteration of a job begins and ends when all ranks have ended one; a measurement is the mean of those
// that have it.
TEST_F(ReadSideTest, RunsOfManyRanksAreReadByTheirDefinition) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Chance chance(seed);
    const size_t num_ranks = 1 + chance.Below(4), num_iterations = 3 + chance.Below(5);
    const int stride = chance.Coin() ? 1 : 2;
    const bool is_sampled = chance.Coin();
    std::vector<StopwatchStats> ranks(num_ranks);
    std::vector<double> ends(num_iterations + 1);
    std::map<std::string, std::vector<std::vector<float>>> of_measurement;  // of each rank that has it
    std::vector<double> longest_rank;
    double latest = 0;
    for (StopwatchStats& stats : ranks) {
      stats.set_num_measured_iters(stride * static_cast<int64_t>(num_iterations));
      stats.mutable_iteration_series()->set_stride(stride);
      double end = 0;
      for (size_t i = 0; i < num_iterations; ++i) {
        stats.mutable_iteration_series()->add_seconds(static_cast<float>(chance.Number()));
        end += static_cast<double>(stats.iteration_series().seconds(static_cast<int>(i)));
        ends[i + 1] = std::max(ends[i + 1], end);
      }
      if (end > latest) {
        latest = end;
        const auto& seconds = stats.iteration_series().seconds();
        longest_rank.assign(seconds.begin(), seconds.end());
      }
      for (const char* name : {"forward", "save", "none"}) {
        if (chance.Below(3) == 0) continue;
        ott::Measurement& measurement = *stats.add_measurements();
        measurement.set_name(name);
        measurement.set_sampled(is_sampled && name == std::string("forward"));
        std::vector<float> seconds;
        // Not in all iterations, and not by the end.
        for (size_t i = 0, size = chance.Below(num_iterations + 1); i < size; ++i) {
          const bool runs = name != std::string("none") && chance.Coin();
          seconds.push_back(chance.Below(20) == 0 ? INFINITY
                            : runs                ? static_cast<float>(chance.Number())
                                                  : 0);
          measurement.mutable_series()->add_seconds(seconds.back());
        }
        if (!seconds.empty()) of_measurement[name].push_back(seconds);
      }
    }
    const std::string run = WriteRun(absl::StrCat("run", seed), ranks);
    const SideSamples side = MustRead({run});
    EXPECT_EQ(side.primary, "iteration");
    const Process& process = side.processes.at(0);
    EXPECT_EQ(process.name, run);
    std::map<std::string, std::string> conditions = {{"ranks", absl::StrCat(num_ranks)},
                                                     {"machine", "host_a host_b"},
                                                     {"library", "optim_test_tools 1.2"}};
    if (num_ranks > 1) conditions["CPU"] = "model";
    EXPECT_EQ(process.conditions, conditions);
    EXPECT_EQ(process.started, 1767323045);
    std::map<std::string, MeasurementSamples> read;
    for (const MeasurementSamples& measurement : process.measurements) read[measurement.name] = measurement;
    ASSERT_EQ(read["iteration"].seconds.size(), num_iterations);
    EXPECT_EQ(read["iteration"].num_iterations, stride * num_iterations);
    for (size_t i = 0; i < num_iterations; ++i) {
      // With a part of the iterations alone nobody knows when they ended.
      EXPECT_NEAR(read["iteration"].seconds[i], stride == 1 ? ends[i + 1] - ends[i] : longest_rank[i], 1e-6);
    }
    size_t num_read = 1;
    for (const auto& [name, of_ranks] : of_measurement) {
      std::vector<double> means;
      size_t longest = 0;
      for (const std::vector<float>& seconds : of_ranks) longest = std::max(longest, seconds.size());
      for (size_t i = 0; i < longest; ++i) {
        double sum = 0;
        for (const std::vector<float>& seconds : of_ranks)
          sum += i < seconds.size() ? static_cast<double>(seconds[i]) : 0;
        if (sum > 0 && std::isfinite(sum)) means.push_back(sum / static_cast<double>(of_ranks.size()));
      }
      EXPECT_EQ(read.count(name), means.empty() ? 0 : 1) << name;
      if (means.empty()) continue;
      ++num_read;
      ASSERT_EQ(read[name].seconds.size(), means.size()) << name;
      for (size_t i = 0; i < means.size(); ++i) EXPECT_NEAR(read[name].seconds[i], means[i], 1e-9) << name;
      const double share = static_cast<double>(means.size()) / static_cast<double>(longest);
      EXPECT_DOUBLE_EQ(read[name].share_of_iterations, is_sampled && name == "forward" ? 1 : share);
    }
    EXPECT_EQ(read.size(), num_read);
  }
}

TEST_F(ReadSideTest, SidesHaveTheirPrimaryMeasurementAndNoRunInCommon) {
  const std::vector<std::string> table = {Write("table.csv", "process,measurement,seconds\n1,x,1\n")},
                                 a = {WriteIterations("a", {{1, 1}})}, b = {WriteIterations("b", {{2, 2}})},
                                 json = {Write("json", R"({"context": {"cpu_scaling_enabled": true},
                                         "benchmarks": [{"name": "x", "real_time": 1}]})")};
  const auto read = [](const auto& of_a, const auto& of_b) {
    return ReadSides(of_a, of_b, ClockKind::kWall);
  };
  EXPECT_EQ(read(a, b)->primary, "iteration");
  EXPECT_EQ(MustRead({Write("own.csv", "process,measurement,seconds\n1,iteration,1\n")}).primary,
            "iteration");
  ExpectTimes(read(a, b)->a.at(0), {{"iteration", {1, 1}}});
  ExpectTimes(read(a, b)->b.at(0), {{"iteration", {2, 2}}});
  EXPECT_EQ(read(a, table)->primary, "");
  EXPECT_EQ(read(table, b)->primary, "");
  EXPECT_TRUE(read(a, table)->iterations_must_match);
  for (const bool is_b : {false, true}) {
    const auto mixed = read(is_b ? a : json, is_b ? json : a);
    EXPECT_FALSE(mixed->iterations_must_match);
    EXPECT_THAT(mixed->notes, ElementsAre(HasSubstr("frequency was scaled")));
  }
  std::filesystem::create_directory_symlink(a[0], dir_ + "/again");
  for (const std::string& again : {a[0], dir_ + "/again"}) {
    EXPECT_THAT(std::string(read(a, std::vector<std::string>{b[0], again}).status().message()),
                HasSubstr(a[0] + ": is on both sides"));
    EXPECT_THAT(ErrorIn({a[0], b[0], again}), HasSubstr(a[0] + ": is on one side twice"));
  }
}

TEST_F(ReadSideTest, BadFilesGetASentenceThatNamesThem) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "the file is empty"},
           {" \n\n", "the file is empty"},
           {"process,milliseconds\n1,2\n", "another unit"},
           {"process,seconds\n", "no times"},
           {"process,seconds\n1,2,3\n", "file:2: 3 fields, and the first line names 2"},
           {"process,seconds\n1,\"2\n", "a quote is not closed"},
           {"process,seconds,Seconds\n1,2,3\n", "file:1: two columns are named seconds"},
           {"process,seconds\n1,x\n", "\"x\" is no number"},
           {"process,seconds\n1,nan\n", "nan seconds: a time is a positive number"},
           {"process,seconds\n1,1\n1,-1\n", "file:3: -1 seconds"},
           {"process,seconds\n1,0\n", "0 seconds"},
           {"process,seconds\n1,inf\n", "inf seconds"},
           {"process,iteration,seconds\n1,0,1\n1,0,2\n", "process 1 has iteration 0 of \"time\" twice"},
           {"process,measurement,seconds\n1,,2\n", "file: a measurement without a name"},
           {"\x7f\x45LF\x01", "its columns are"},
           {"{\"benchmarks\": [", "no JSON that can be read"},
           {"{}", "JSON of none of"},
           {"[1, 2]", "JSON of none of"},
           {std::string(100000, '['), "no JSON"},
           {"{\"process\": 1, \"seconds\": \"1\"}", "file:1: a line has process and seconds"},
           {"{\"seconds\": 1}", "file:1: a line has process and seconds"},
           {"{\"process\": 1, \"seconds\": 1}\nx\n", "file:2: no JSON object"},
           {R"({"benchmarks": [{"name": "x", "real_time": 1, "time_unit": "parsec"}]})", "parsec"},
           {R"({"benchmarks": [{"name": "x", "real_time": -1, "time_unit": "s"}]})", "is -1"},
           {R"({"benchmarks": [{"name": "x", "time_unit": "s"}]})", "is missing"},
           {R"({"benchmarks": [{"name": "x", "error_occurred": true, "error_message": "boom"}]})",
            "x failed: boom"},
           {R"({"benchmarks": []})", "no benchmark has a time"},
           {R"({"results": [{"command": "x", "times": [1, 2], "exit_codes": [0, -9]}]})",
            "a run of x ended with exit code -9"},
           {R"({"results": [{"command": "x", "times": [1, 0]}]})", "time 2 of wall time is 0"},
           {R"({"results": [{"command": "x", "mean": 1}]})", "no run has a time"},
           {R"({"devices": [], "benchmarks": []})", "no state has a time"}}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr(says));
  }
}

TEST_F(ReadSideTest, WhatIsNoFileIsAnErrorAndNothingHangs) {
  EXPECT_EQ(ErrorIn({dir_ + "/none\n"}), dir_ + "/none\\n: No such file or directory");
  EXPECT_THAT(ErrorIn({dir_}), HasSubstr("neither a run directory"));
  EXPECT_THAT(ErrorIn({"/dev/zero"}), HasSubstr("no regular file"));
  ASSERT_EQ(mkfifo((dir_ + "/fifo").c_str(), 0600), 0);
  EXPECT_THAT(ErrorIn({dir_ + "/fifo"}), HasSubstr("no regular file"));
  EXPECT_THAT(ErrorIn({WriteIterations("run", {{1}})}, ClockKind::kCpu),
              HasSubstr("a run directory has no CPU time"));
  for (const char* table : {"process,seconds\n1,1\n", "{\"process\": 1, \"seconds\": 1}\n"})
    EXPECT_THAT(ErrorIn({Write("table", table)}, ClockKind::kCpu), HasSubstr("a table has one time"));
  Write("huge", "");
  std::filesystem::resize_file(dir_ + "/huge", uintmax_t{1} << 40);
  EXPECT_THAT(ErrorIn({dir_ + "/huge"}), HasSubstr("more than 1 GiB"));
  std::filesystem::create_symlink("loop", dir_ + "/loop");
  EXPECT_FALSE(ReadSide({dir_ + "/loop"}, ClockKind::kWall).ok());
}

}  // namespace
}  // namespace ott::faster
