#include "tools/report/report_traces.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/kineto/traces_for_test.h"
#include "tools/report/document_text.h"
#include "tools/report/page.h"

namespace ott::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReportTracesTest : public ::testing::Test {
 protected:
  ReportTracesTest() { EXPECT_TRUE(MakeDirectories(directory_).ok()); }

  void Write(const std::string& name, const std::string& trace) const {
    ASSERT_TRUE(WriteFileAtomically(directory_ + name, trace).ok());
  }
  Document Report() const { return ReportTraces(directory_, ListTraces(directory_)).value(); }

  const std::string directory_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ReportTracesTest, TheRankThatIsWaitedForIsNamedOnThePage) {
  Write("/a.json", kineto::RankTraceForTest(0, 0, 3000, 0, 60));
  Write("/b.json", kineto::RankTraceForTest(1, 3000, 3000, 0, 60));
  Write("/other.json", "{\"traceEvents\": []}");
  const Document report = Report();
  EXPECT_EQ(report.finding(), Answer::BAD);
  EXPECT_THAT(report.problems, IsEmpty());
  const std::string verdict = "all wait for rank 1 at \"allreduce of group default_pg\": 3 ms a step";
  EXPECT_THAT(ToText(report, TextStyle()), HasSubstr(verdict));
  EXPECT_THAT(ToText(report, TextStyle()), HasSubstr("mm"));
  EXPECT_THAT(ToPage(report), HasSubstr("all wait for rank 1 at &quot;allreduce"));
  const Json& pictures = report.pictures;
  EXPECT_EQ(pictures.at("device_time").at("ranks").size(), 2u);
  const Json& collective = pictures.at("arrivals").at("collectives").at(0);
  EXPECT_EQ(collective.at("name"), "allreduce");
  EXPECT_EQ(collective.at("last").at(0).at("rank"), 1);
  // 1.9 ms and 4.9 ms of a product of 12 MFLOPs.
  const Json& op = pictures.at("kernels").at("ops").at(0);
  EXPECT_EQ(op.at("name"), "mm");
  EXPECT_GT(op.at("flops_per_byte"), 20);
  // Both did as much, in other times.
  const auto of_rank = [&](const std::string& file) -> Json {
    const Json ops = ReportTraces(directory_, {directory_ + file})->pictures.at("kernels").at("ops");
    return *std::find_if(ops.begin(), ops.end(), [](const Json& of) { return of.at("name") == "mm"; });
  };
  const Json a = of_rank("/a.json"), b = of_rank("/b.json");
  for (const char* const name : {"of_peak", "flops_per_second"})
    EXPECT_NEAR(2 / op.at(name).get<double>() / (1 / a.at(name).get<double>() + 1 / b.at(name).get<double>()),
                1, 1e-3)
        << name;
  EXPECT_NEAR(op.at("flops_per_byte").get<double>(), a.at("flops_per_byte").get<double>(), 1e-3);
  EXPECT_EQ(pictures.at("kernels").at("roofs").at("device"), "H100");
}

TEST_F(ReportTracesTest, RanksThatComeTogetherAreNotBlamed) {
  Write("/a.json", kineto::RankTraceForTest(0, 0, 3, 0, 60));
  Write("/b.json", kineto::RankTraceForTest(1, 3, 3, 0, 60));
  const Document report = Report();
  EXPECT_EQ(report.finding(), Answer::GOOD);
  EXPECT_THAT(ToText(report, TextStyle()), HasSubstr("no rank holds the others up"));
}

TEST_F(ReportTracesTest, WhatIsTruncatedIsSaid) {
  const std::string whole = kineto::RankTraceForTest(0, 0, 500);
  Write("/a.json", whole.substr(0, whole.size() * 3 / 4));
  Write("/b.json", kineto::RankTraceForTest(1, 500, 500));
  const Document report = Report();
  EXPECT_EQ(report.finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(ToText(report, TextStyle()), HasSubstr("a.json: truncated at byte"));
}

TEST_F(ReportTracesTest, RanksWithoutATraceAreNoPass) {
  // Rank 1 was killed while it wrote. In later steps rank 0 meets three others, of which none has a trace
  // either.
  Write("/b.json", "");
  for (const bool meets_others : {false, true}) {
    std::string trace = kineto::RankTraceForTest(0, 0, 3, 0, 60);
    const size_t half = trace.find("ProfilerStep#30");
    if (meets_others) {
      trace = trace.substr(0, half) +
              absl::StrReplaceAll(trace.substr(half),
                                  {{R"("Group size":2)", R"("Group size":4)"},
                                   {R"("Process Group Name":"0")", R"("Process Group Name":"1")"},
                                   {"default_pg", "tp"}});
    }
    Write("/a.json", trace);
    const Document report = Report();
    EXPECT_EQ(report.finding(), Answer::CANNOT_TELL);
    EXPECT_THAT(report.problems,
                ElementsAre(absl::StrCat("traces of 1 of the ", meets_others ? "4" : "2",
                                         " ranks that come to allreduce of group ",
                                         meets_others ? "tp" : "default_pg"),
                            directory_ + "/b.json: empty; was the rank killed while it wrote?"));
  }
}

TEST_F(ReportTracesTest, ATraceThatTellsNoRankTakesThatOfNoOther) {
  std::string late = kineto::RankTraceForTest(1, 3000, 3000, 0, 60);
  late.replace(late.find("distributedInfo"), 15, "noInfo");
  Write("/a.json", late);
  Write("/b.json", kineto::RankTraceForTest(0, 0, 3000, 0, 60));
  const Document report = Report();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(ToText(report, TextStyle()), HasSubstr("all wait for rank 1 at"));
}

TEST_F(ReportTracesTest, KernelsWithoutTheirCallsHaveNoTableOfHostTime) {
  std::string text = kineto::RankTraceForTest(0, 0, 500);
  for (const std::string call : {"cpu_op", "cuda_runtime"}) {
    for (size_t at = text.find(call); at != std::string::npos; at = text.find(call))
      text.replace(at, call.size(), "other");
  }
  Write("/a.json", text);
  const Document report = Report();
  for (const Details& details : report.details) EXPECT_NE(details.text, "") << details.title;
}

TEST_F(ReportTracesTest, AnOpOfTwoKernelsIsMeasuredByBoth) {
  const std::string second = R"("traceEvents":[
      {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":1030,"dur":5,
       "args":{"External id":1,"correlation":5000}},
      {"ph":"X","cat":"kernel","name":"splitKreduce_kernel","pid":0,"tid":7,"ts":3000,"dur":100,
       "args":{"External id":1,"correlation":5000,"device":0,"stream":7}},)";
  const std::string trace =
      absl::StrReplaceAll(kineto::RankTraceForTest(0, 0, 500, 0, 1), {{R"("traceEvents":[)", second}});
  Write("/a.json", trace);
  const Document report = Report();
  const Json& op = report.pictures.at("kernels").at("ops").at(0);
  EXPECT_EQ(op.at("name"), "mm");
  EXPECT_NEAR(op.at("seconds"), 2e-3, 1e-6);
  EXPECT_NEAR(op.at("flops_per_second"), 12e6 / 2e-3, 1e6);
}

TEST_F(ReportTracesTest, OfTwoRunsInOneDirectoryNoRankIsBlamedForTheOther) {
  for (const int rank : {0, 1}) {
    for (const int run : {0, 1}) {
      const std::string trace =
          kineto::RankTraceForTest(rank, run == 1 ? 3000 : 3, run == 1 ? 3000 : 3, 0, 60);
      Write(absl::StrCat("/run", run, "_rank", rank, ".json"), trace);
    }
  }
  const Document report = Report();
  EXPECT_EQ(report.finding(), Answer::CANNOT_TELL) << ToText(report, TextStyle());
  EXPECT_THAT(ToText(report, TextStyle()), HasSubstr("left out, as rank 1 has another trace here"));
}

TEST_F(ReportTracesTest, WindowsOfARunAreTakenTogether) {
  // The 8 steps of one window are too few for a verdict; the 16 of both are enough.
  for (const int window : {0, 1}) {
    for (const int rank : {0, 1}) {
      std::string trace = kineto::RankTraceForTest(rank, 3000 * rank, 3000, window * 10'000'000, 8);
      if (window == 1) {
        trace =
            absl::StrReplaceAll(trace, {{"ProfilerStep#", "ProfilerStep#1"}, {R"("Seq":)", R"("Seq":1)"}});
      }
      Write(absl::StrCat("/", rank, "_", window, ".json"), trace);
    }
    const Document report = Report();
    EXPECT_THAT(report.problems, IsEmpty());
    EXPECT_EQ(report.finding(), window == 0 ? Answer::CANNOT_TELL : Answer::BAD);
    EXPECT_EQ(report.pictures.at("device_time").at("ranks").size(), 2u);
    EXPECT_NEAR(report.pictures.at("device_time").at("ranks").at(0).at("seconds"), 0.08 * (window + 1), 0.02);
    EXPECT_NEAR(report.pictures.at("kernels").at("ops").at(0).at("seconds"), 0.0544 * (window + 1), 0.001);
  }
}

TEST_F(ReportTracesTest, ADirectoryWithoutTracesHasNone) {
  EXPECT_THAT(ListTraces(directory_), IsEmpty());
  EXPECT_THAT(ListTraces("/no/such/directory"), IsEmpty());
}

}  // namespace
}  // namespace ott::report
