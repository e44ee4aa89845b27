#include "ott/questions/slow/cluster_table.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/questions/waiting/arrival_text.h"

namespace ott {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ClusterStats Stats(const std::string& more) {
  ClusterStats stats;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      world_size: 4 num_ranks: 2 min_measured_iters: 10 max_measured_iters: 10
      ranks { rank: 0 num_measured_iters: 10 }
      ranks { rank: 2 num_measured_iters: 10 }
      iteration {
        name: "iteration" num_ranks: 2 mean: 0.0315 standard_deviation: 0.0005 share_of_iteration: 1
        min { rank: 0 host: "node0" seconds: 0.031 } max { rank: 2 host: "node1" seconds: 0.032 } imbalance: 0.0159
      }
      measurements {
        name: "forward" num_ranks: 2 mean: 0.000012 standard_deviation: 0.000002 share_of_iteration: 0.25
        min { rank: 2 host: "node1" seconds: 0.00001 } max { rank: 0 host: "node0" seconds: 0.000014 } imbalance: 0.1667
      }
      measurements {
        name: "allreduce" num_ranks: 2 collective: true mean: 2 share_of_iteration: 0.5
        min { rank: 2 host: "node1" seconds: 1 } max { rank: 0 host: "node0" seconds: 3 } imbalance: 0.5
      })" + more,
                                                            &stats));
  return stats;
}

TEST(FormatClusterTable, AlignsColumnsAndChoosesUnitsByRow) {
  EXPECT_EQ(FormatClusterTable(Stats("")),
            "2 of 4 ranks, 10 measured iterations; times per iteration, over ranks\n"
            "measurement     share     min    mean     max  stddev      imbalance  max on\n"
            "iteration      100.0%  31.000  31.500  32.000   0.500  ms       1.6%  rank 2 (node1)\n"
            "  forward       25.0%  10.000  12.000  14.000   2.000  us      16.7%  rank 0 (node0)\n"
            "  allreduce *   50.0%   1.000   2.000   3.000   0.000   s      50.0%  rank 0 (node0)\n"
            "* collective: waiting for other ranks counts there, not as work\n");
}

TEST(FormatClusterTable, SaysOfEachPartWhatIsThere) {
  for (const auto& [more, says] : std::vector<std::pair<std::string, testing::Matcher<std::string>>>{
           {R"(measurements { name: "module h.0" sampled: true share_of_iteration: 0.2 }
               measurements { name: "module h.1" sampled: true share_of_iteration: 0.01 }
               measurements { name: "data" share_of_iteration: 0.01 })",
            AllOf(HasSubstr("module h.0"), ContainsRegex("  data +1.0% .* 0.000  ns "),
                  Not(HasSubstr("module h.1")),
                  HasSubstr("and 1 sampled measurements of less than 5% each\n"))},
           {R"(measurements { name: "step" num_ranks: 2 max { seconds: 0.002 } p50: 0.001 p90: 0.0015
                              p99: 0.002 })",
            AllOf(HasSubstr("; percentiles of single intervals on all ranks\n"),
                  HasSubstr("p50    p90    p99  imbalance  max on\n"), HasSubstr("ms  1.000  1.500  2.000"))},
           {R"(measurements { name: "two\nlines" num_ranks: 1 ranks_without: "rank 2" }
               one_time { name: "load" num_ranks: 2 mean: 1.5 max { rank: 0 host: "node0" seconds: 2 } }
               notes: "rank 0: 2 reports added up")",
            AllOf(HasSubstr("note: \"two\\nlines\" is not measured on rank 2\n"),
                  HasSubstr("once: load: mean 1.5 s, max 2 s on rank 0 (node0)\n"),
                  HasSubstr("note: rank 0: 2 reports added up\n"), Not(HasSubstr("INCOMPLETE")))},
           // Nothing is said twice of the first interval.
           {"history { straggler { rank: 2 } num_all_intervals: 1 }", Not(HasSubstr("in a row"))},
           {"history { num_all_intervals: 2 }", Not(HasSubstr("in a row"))},
           {"history { straggler { rank: 2 } num_all_intervals: 2 }",
            AllOf(HasSubstr("; interval 0 in a row"), Not(HasSubstr("most work")))}}) {
    EXPECT_THAT(FormatClusterTable(Stats(more)), says) << more;
  }
}

TEST(FormatClusterTable, ShowsLateRanksGroupsAndHistory) {
  const std::string table = FormatClusterTable(Stats(R"(
      missing_ranks: [1, 3] late_ranks: 2
      groups { dimension: "host" value: "node0" num_ranks: 2 mean_work_seconds: 0.01 slower_by: 0 }
      groups { dimension: "host" value: "node1" num_ranks: 2 mean_work_seconds: 0.015 slower_by: 0.5 }
      groups { dimension: "pipeline" value: "0" num_ranks: 4 mean_work_seconds: 0.01 slower_by: -0.1 }
      history {
        num_iterations: 100 num_intervals: 4 since_iteration: 300 persistent: true num_all_intervals: 9
        straggler { rank: 2 host: "node1" work_seconds: 0.02 median_work_seconds: 0.01 slower_by: 1 slower_by_low: 0.9 slower_by_high: 1.1
                    measurement_excess_seconds: 0.01 }
        slowest { rank: 2 host: "node1" num_intervals: 7 } slowest { rank: 0 host: "node0" num_intervals: 2 }
      })"));
  EXPECT_THAT(table, HasSubstr("INCOMPLETE: nothing from ranks 1, 3\n"
                               "LATE: of an earlier gather are the data of rank 2\n"));
  EXPECT_THAT(table,
              HasSubstr("as work\nwork by host: node0 10 ms (2 ranks, +0.0%), node1 15 ms (2 ranks, +50.0%)\n"
                        "work by pipeline: 0 10 ms (4 ranks, -10.0%)\n"));
  EXPECT_THAT(
      table,
      HasSubstr(
          "last 100 iterations: rank 2 (node1) works 20 ms an iteration, 2.0 times the "
          "others' median of 10 ms (1.9 to 2.1); most of it outside all measurements (+10 ms); persistent, "
          "interval 4 in a row, since iteration 300\n"
          "most work, of 9 intervals: rank 2 (node1) in 7, rank 0 (node0) in 2\n"));
}

TEST(FormatClusterTable, HeadlineAndNotesAreOfWhatIsThere) {
  ClusterStats stats = Stats("");
  stats.set_min_measured_iters(9);
  stats.add_measurements()->set_name(kObserverThreads);
  for (int i = 0; i < 10; ++i) stats.add_notes(absl::StrCat("note ", i));
  EXPECT_THAT(FormatClusterTable(stats), AllOf(StartsWith("2 of 4 ranks, 9 to 10 measured iterations; "),
                                               HasSubstr("\nott's threads: CPU time beside the training's"),
                                               HasSubstr("\nnote: note 9\n"), Not(HasSubstr("more notes"))));
  for (int i = 10; i < 5000; ++i) stats.add_notes("cannot open");
  EXPECT_THAT(FormatClusterTable(stats),
              AllOf(Not(HasSubstr("cannot open")), HasSubstr("note: and 4990 more notes\n")));
  stats.add_arrivals()->set_name("loss");
  EXPECT_THAT(FormatClusterTable(stats), EndsWith("\n" + FormatArrivals(stats)));
  stats.clear_iteration();
  stats.clear_measurements();
  EXPECT_THAT(FormatClusterTable(stats), AllOf(Not(HasSubstr("\niteration")), Not(HasSubstr("collective:")),
                                               Not(HasSubstr("ott's threads"))));
  EXPECT_EQ(FormatClusterTable(ClusterStats()),
            "0 of 0 ranks, 0 measured iterations; times per iteration, over ranks\n"
            "measurement  share  min  mean  max  stddev    imbalance  max on\n");
  stats.mutable_iteration()->set_p50(0.001);
  EXPECT_THAT(FormatClusterTable(stats), HasSubstr("p99  imbalance"));
}

TEST(SlowRankLines, SayWhoIsSlowSinceWhenAndWhyOrWhyNobodyIsNamed) {
  const auto straggler = [](const std::string& more) {
    return absl::StrCat(R"(straggler { rank: 2 host: "node1" work_seconds: 0.02 median_work_seconds: 0.0125
                                       slower_by: 0.6 slower_by_low: 0.58 slower_by_high: 0.62 )",
                        more, " }");
  };
  const std::string forward = R"(measurement: "forward" measurement_excess_seconds: 0.0075 )";
  const std::string works = "slowest rank: rank 2 (node1) works 20 ms an iteration",
                    longer = ", 60.0% more than the others' median of 12.5 ms (58.0 to 62.0%)",
                    in_forward = longer + "; most of it in \"forward\" (+7.5 ms)",
                    in_mean = works + longer +
                              "; most of it outside all measurements (+0 s); not in all iterations alike: in "
                              "the mean it works 2 ms ";
  const std::string cannot_tell = "slowest rank: cannot tell", missing = "missing_ranks: [1, 3] ",
                    too_few =
                        cannot_tell + "; that takes some 40 measured iterations, and ranks that do like work",
                    nothing = cannot_tell + ": nothing from ranks 1, 3",
                    refused = "REFUSED as misuse, so that these times are not all: ";
  for (
      const auto& [more, lines] : std::vector<std::pair<std::string, std::vector<std::string>>>{
          {"", {too_few}},
          {missing, {nothing}},
          {missing + "detectable: 0.05", {nothing + ", and none of the others stands out"}},
          {straggler(forward), {works + in_forward}},
          {straggler(forward + "since_iteration: 140") + R"(
              slow_measurements { name: "step" rank: 1 slower_by: 0.2 since_iteration: 20 until_iteration: 60 }
              slow_measurements { name: "load" rank: 1 slower_by: 1 until_iteration: 60 })",
           {works + " since iteration 140" + in_forward,
            "step: rank 1 () takes 20.0% longer than the others (0.0 to 0.0%) in iterations 20 to 59, 0.0% "
            "of an iteration",
            "load: rank 1 () takes 2.0 times the others' time (1.0 to 1.0) until iteration 59, 0.0% of an "
            "iteration"}},
          {straggler(R"(parts { measurement: "a" excess_seconds: 0.006 }
                         parts { measurement: "b" excess_seconds: 0.004 })"),
           {works + longer + "; in everything: \"a\" (+6 ms), \"b\" (+4 ms)"}},
          {straggler("mean_excess_seconds: 0.002"), {in_mean + "more"}},
          {straggler("mean_excess_seconds: -0.002"), {in_mean + "less"}},
          {straggler("place_is_unknown: true"),
           {works + longer + "; in which measurement is not known, as not all times are kept"}},
          {R"(detectable: 0.0601 cpu_taken { num_watched: 4 num_taken: 1 ranks { rank: 2 host: "vm" share: 0.36 } }
               slow_measurements { name: "attention" rank: 1 host: "vm" slower_by: 0.2 slower_by_low: 0.18
                                   slower_by_high: 0.23 share_of_iteration: 0.25 }
               slow_measurements { name: "norm" slower_by: 1.5 })",
           {"attention: rank 1 (vm) takes 20.0% longer than the others (18.0 to 23.0%), 25.0% of an "
            "iteration",
            "norm: rank 0 () takes 2.5 times the others' time (1.0 to 1.0), 0.0% of an iteration",
            "slowest rank: none stands out (an excess of 7% would have shown)",
            "CPU taken: others had that of rank 2 (vm) for 36% of its work, which counts as nobody's"}},
          {R"(cpu_taken { num_watched: 4 num_taken: 2 ranks { rank: 2 host: "vm" share: 0.41 } ranks { share: 0.2 } })",
           {too_few,
            "overloaded machine: others had the CPU of 2 of 4 ranks for 10% of their work and more (most: "
            "41%, rank 2 (vm)), which counts as nobody's"}},
          {R"(misuses { kind: "End\n" count: 1 ranks: "rank 2" } misuses { kind: "Start" count: 4 ranks: "ranks 1, 3" })",
           {too_few, refused + "End\\n, 1 time on rank 2", refused + "Start, 4 times on ranks 1, 3"}}}) {
    EXPECT_THAT(SlowRankLines(Stats(more)), ElementsAreArray(lines)) << more;
  }
  ClusterStats stats = Stats("");
  stats.set_num_ranks(1);
  EXPECT_THAT(SlowRankLines(stats), ElementsAre("slowest rank: one rank alone has nobody to be slower than"));
  stats.add_missing_ranks(1);
  EXPECT_THAT(SlowRankLines(stats), ElementsAre(cannot_tell + ": nothing from rank 1"));
  stats = Stats("");
  stats.mutable_measurements(1)->set_collective(false);
  EXPECT_THAT(
      SlowRankLines(stats),
      ElementsAre(StartsWith(
          cannot_tell +
          ": no measurement is known in which ranks wait for each other, so that waiting counts as ")));
}

TEST(ClusterStatsToJson, ReadsBackAsTheSameMessage) {
  const ClusterStats stats = Stats("notes: \"with \\\"quotes\\\" and größe\"");
  ClusterStats back;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(ClusterStatsToJson(stats), &back).ok());
  EXPECT_EQ(back.SerializeAsString(), stats.SerializeAsString());
  back.add_notes("\xff\xfe");  // is no UTF-8
  EXPECT_THAT(ClusterStatsToJson(back), HasSubstr("notes"));
}

}  // namespace
}  // namespace ott
