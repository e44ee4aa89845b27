#include "ott/questions/hang/torch_dumps.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/pickle/pickle.h"
#include "ott/questions/hang/diagnosis.h"
#include "questions/hang/dump_for_test.h"

namespace ott::hang {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Dumps = std::map<int, DumpForTest>;

HangVerdict Diagnose(const Dumps& dumps, bool pickled) {
  std::map<int, std::string> bytes;
  for (const auto& [rank, dump] : dumps) bytes[rank] = pickled ? dump.Pickle() : dump.Json();
  const absl::StatusOr<JobState> job = ParseTorchDumps(bytes);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? DiagnoseHang(*job, HangOptions()) : HangVerdict();
}

// Rank 2 has completed all that it called; the others wait for it.
Dumps HostStands() {
  Dumps dumps;
  for (int rank = 0; rank < 4; ++rank) {
    dumps[rank].Enqueued(11).Completed(11);
    if (rank != 2) dumps[rank].Entry(12, "all_reduce", "scheduled").Entry(13, "all_reduce", "scheduled");
  }
  return dumps;
}

class TorchDumps : public testing::TestWithParam<bool> {};

TEST_P(TorchDumps, AHostThatStandsNeverCame) {
  const HangVerdict verdict = Diagnose(HostStands(), GetParam());
  EXPECT_EQ(verdict.verdict(),
            "rank 2 never came to all_reduce #12 of group 7 (dp), where ranks 0, 1, 3 have waited");
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
}

TEST_P(TorchDumps, ADeviceThatDiedNeverLeft) {
  Dumps dumps;
  for (int rank = 0; rank < 4; ++rank) {
    dumps[rank].Enqueued(14).Completed(rank == 1 ? 10 : 12);
    for (int i = rank == 1 ? 11 : 13; i <= 14; ++i) dumps[rank].Entry(i, "all_reduce", "scheduled");
  }
  const HangVerdict verdict = Diagnose(dumps, GetParam());
  EXPECT_THAT(verdict.culprits(), ElementsAre(1));
  EXPECT_EQ(verdict.verdict(), "rank 1 never left all_reduce #11 of group 7 (dp)");
}

TEST_P(TorchDumps, ADeviceThatSleepsNeverBegan) {
  Dumps dumps;
  for (int rank = 0; rank < 4; ++rank) {
    dumps[rank].Enqueued(12).Completed(11).Started(rank == 3 ? 11 : 12);
    dumps[rank].Entry(12, "all_reduce", rank == 3 ? "scheduled" : "started");
  }
  const HangVerdict verdict = Diagnose(dumps, GetParam());
  EXPECT_THAT(verdict.culprits(), ElementsAre(3));
  EXPECT_EQ(verdict.causes(0).kind(), HangCause::DEVICE_STANDS);
}

TEST_P(TorchDumps, SendsAndReceivesAreFollowedToTheirPeers) {
  Dumps dumps;
  dumps[0].PointToPoint(5, "send 0->1", "scheduled");
  dumps[1].PointToPoint(4, "recv 1<-2", "scheduled").PointToPoint(5, "recv 1<-0", "scheduled");
  dumps[2].PointToPoint(9, "recv 2<-3", "scheduled");
  dumps[3].PointToPoint(9, "send 3->2", "completed");
  const HangVerdict verdict = Diagnose(dumps, GetParam());
  EXPECT_THAT(verdict.culprits(), ElementsAre(3)) << verdict.verdict();
}

TEST_P(TorchDumps, AnotherOperationIsNamed) {
  Dumps dumps;
  for (int rank = 0; rank < 4; ++rank) {
    dumps[rank].Enqueued(11).Completed(11).Entry(12, rank == 0 ? "broadcast" : "all_reduce", "scheduled");
  }
  EXPECT_THAT(Diagnose(dumps, GetParam()).culprits(), ElementsAre(0));
}

TEST_P(TorchDumps, AnotherSizeIsNamed) {
  Dumps dumps;
  for (int rank = 0; rank < 4; ++rank) {
    dumps[rank].Enqueued(11).Completed(11).Entry(12, "all_reduce", "scheduled", rank == 0 ? 16 : 8);
  }
  const HangVerdict verdict = Diagnose(dumps, GetParam());
  EXPECT_THAT(verdict.culprits(), ElementsAre(0));
  EXPECT_THAT(verdict.verdict(), HasSubstr("rank 0 with size 32"));
}

TEST_P(TorchDumps, SizesThatMayDifferAreNotCompared) {
  Dumps dumps = HostStands();
  dumps[0].Entry(14, "all_to_all", "scheduled", 16);
  dumps[1].Entry(14, "all_to_all", "scheduled", 17);
  EXPECT_THAT(Diagnose(dumps, GetParam()).culprits(), ElementsAre(2));
}

TEST_P(TorchDumps, AJobThatRanIsNotHanging) {
  Dumps dumps;
  for (int rank = 0; rank < 4; ++rank) dumps[rank].Entry(1, "all_reduce", "completed").Completed(1);
  EXPECT_EQ(Diagnose(dumps, GetParam()).answer(), HangVerdict::NOT_HANGING);
}

TEST_P(TorchDumps, DumpsWithoutOperationsTellNothing) {
  Dumps dumps;
  for (int rank = 0; rank < 4; ++rank) dumps[rank];
  HangVerdict verdict = Diagnose(dumps, GetParam());
  EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL);
  EXPECT_THAT(verdict.verdict(), HasSubstr("ranks 0-3 cannot: its dump holds no operation"));
  // A rank that called nothing where others wait for it is another matter.
  for (int rank = 0; rank < 3; ++rank) dumps[rank].Entry(1, "all_reduce", "scheduled");
  verdict = Diagnose(dumps, GetParam());
  EXPECT_THAT(verdict.culprits(), ElementsAre(3)) << verdict.verdict();
}

TEST(OneDump, DoesNotSayThatNobodyWaits) {
  const std::string dump =
      R"({"version": "2.1", "entries": [{"record_id": 1, "pg_id": 0, "process_group": ["0", "dp"], )"
      R"("collective_seq_id": 1, "profiling_name": "nccl:all_reduce", "state": "completed"}]})";
  const absl::StatusOr<JobState> job = ParseTorchDumps({{0, dump}});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(DiagnoseHang(*job, HangOptions()).answer(), HangVerdict::CANNOT_TELL);
}

TEST(OneDump, CountsNoOperationBelowZero) {
  const std::string dump =
      R"({"version": "2.1", "entries": [{"record_id": 1, "pg_id": 0, "process_group": ["0", "dp"], )"
      R"("collective_seq_id": -9223372036854775808, "profiling_name": "nccl:all_reduce", "state": "started"}]})";
  const absl::StatusOr<JobState> job = ParseTorchDumps({{0, dump}});
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ(job->ranks[0].operations.size(), 1);
  EXPECT_EQ(job->ranks[0].operations[0].sequence, 0);
}

TEST_P(TorchDumps, WaitsThatLeadToAMissingDumpCannotBeTold) {
  Dumps dumps = HostStands();
  dumps.erase(2);
  const HangVerdict verdict = Diagnose(dumps, GetParam());
  EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL);
  EXPECT_THAT(verdict.unknown(), ElementsAre(2));
}

INSTANTIATE_TEST_SUITE_P(Formats, TorchDumps, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Pickle" : "Json"; });

absl::Status ParseError(const std::string& pickle) {
  PlainData::Index root;
  return ParsePickle(pickle, &root).status();
}

TEST(Pickle, WhatImportsOrCallsIsRefusedByName) {
  EXPECT_THAT(ParseError("\x80\x02"
                         "cos\nsystem\nX\x02\0\0\0id\x85R.")
                  .message(),
              HasSubstr("opcode GLOBAL (0x63) is refused at byte 2"));
  EXPECT_THAT(ParseError(std::string("\x80\x02)R.", 5)).message(),
              HasSubstr("opcode REDUCE (0x52) is refused at byte 3"));
  EXPECT_THAT(ParseError("\x80\x02)\x93.").message(), HasSubstr("STACK_GLOBAL"));
  EXPECT_THAT(ParseError("\x80\x02)\x81.").message(), HasSubstr("NEWOBJ"));
  EXPECT_THAT(ParseError("\x80\x02Q.").message(), HasSubstr("BINPERSID"));
  EXPECT_THAT(ParseError("\x80\x02\x01.").message(), HasSubstr("opcode unknown here (0x01)"));
  EXPECT_THAT(ParseError("\x80\x04.").message(), HasSubstr("protocol 4"));
}

TEST(Pickle, AFileCutAnywhereIsAnErrorThatSaysSo) {
  const std::string whole = HostStands()[0].Pickle();
  for (size_t size = 0; size < whole.size(); ++size) {
    const absl::Status status = ParseError(whole.substr(0, size));
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << size << ": " << status;
  }
  EXPECT_TRUE(ParseError(whole).ok());
}

TEST(Pickle, StacksThatDoNotFitAreErrors) {
  for (const char* const bad :
       {"\x80\x02.", "\x80\x02NN.", "\x80\x02(.",
        "\x80\x02"
        "e.",
        "\x80\x02"
        "Na.",
        "\x80\x02]s.", "\x80\x02}(Nu.", "\x80\x02}(NNe.", "\x80\x02N\x87.", "\x80\x02(N\x86.",
        "\x80\x02h\x07.", "\x80\x02q\x07.", "\x80\x02\x8a\x09NNNNNNNNN."}) {
    EXPECT_EQ(ParseError(bad).code(), absl::StatusCode::kInvalidArgument) << bad + 2;
  }
}

TEST(Pickle, AListThatContainsItselfIsReadAsDeepAsAsked) {
  // {"version": "2.1", "entries": a list with itself}
  constexpr char kPickle[] =
      "\x80\x02}(X\x07\0\0\0versionX\x03\0\0\0"
      "2.1X\x07\0\0\0entries]q\x01h\x01"
      "au.";
  const std::string pickle(kPickle, sizeof(kPickle) - 1);
  EXPECT_TRUE(ParseTorchDumps({{0, pickle}}).ok()) << ParseTorchDumps({{0, pickle}}).status();
}

TEST(Pickle, TextThatIsNoUtf8StaysOutOfTheVerdict) {
  std::string pickle = DumpForTest().Entry(1, "all_reduce?", "scheduled").Pickle();
  pickle[pickle.find('?')] = '\xff';
  const absl::StatusOr<JobState> job = ParseTorchDumps({{0, pickle}});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->names[job->ranks[0].operations[0].name], "all_reduce\uFFFD");
}

TEST(Pickle, IntegersHaveTheirSign) {
  PlainData::Index root = 0;
  const PlainData data =
      *ParsePickle(std::string("\x80\x02(J\xff\xff\xff\xff\x8a\x01\x80\x8a\x02\x00\x01K\xfft.", 19), &root);
  std::vector<int64_t> integers;
  for (const PlainData::Index item : data[root].items) integers.push_back(IntegerOr(&data[item], 0));
  EXPECT_THAT(integers, ElementsAre(-1, -128, 256, 255));
}

class DumpFiles : public testing::Test {
 protected:
  DumpFiles() : dir_(testing::TempDir() + "/dumps") {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }

  void Write(const std::string& name, const std::string& contents) {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << contents;
  }

  void WriteAll(const std::string& stem, const std::string& extension) {
    for (const auto& [rank, dump] : HostStands()) Write(absl::StrCat(stem, rank, extension), dump.Json());
  }

  const std::string dir_;
};

TEST_F(DumpFiles, AreFoundWhateverTheirName) {
  for (const char* const stem : {"_dump_", "nccl_trace_rank_", "rank"}) {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    WriteAll(stem, "");
    Write("train.log", "no dump");
    Write("other_3", "no dump");
    const absl::StatusOr<JobState> job = ReadTorchDumps(dir_);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_THAT(DiagnoseHang(*job, HangOptions()).culprits(), ElementsAre(2));
    EXPECT_THAT(job->notes, ElementsAre("files other_N are ignored"));
  }
}

TEST_F(DumpFiles, ThatCannotBeReadAreNamed) {
  WriteAll("_dump_", ".json");
  std::filesystem::remove(dir_ + "/_dump_2.json");
  ASSERT_EQ(mkfifo((dir_ + "/_dump_2.json").c_str(), 0600), 0);
  absl::StatusOr<JobState> job = ReadTorchDumps(dir_);
  EXPECT_EQ(job->ranks[2].problem, "_dump_2.json: no regular file");
  std::filesystem::remove(dir_ + "/_dump_2.json");
  std::filesystem::create_symlink("_dump_2.json", dir_ + "/_dump_2.json");
  job = ReadTorchDumps(dir_);
  EXPECT_THAT(job->ranks[2].problem, HasSubstr("_dump_2.json: "));
  std::filesystem::remove(dir_ + "/_dump_2.json");
  Write("_dump_2.json", "");
  ASSERT_EQ(truncate((dir_ + "/_dump_2.json").c_str(), off_t{1} << 40), 0);
  job = ReadTorchDumps(dir_);
  EXPECT_THAT(job->ranks[2].problem, HasSubstr("1099511627776 bytes"));
  Write("_dump_2.json", "{\"version\": \"3.0\", \"entries\": []}");
  job = ReadTorchDumps(dir_);
  EXPECT_THAT(job->ranks[2].problem, HasSubstr("version \"3.0\""));
  EXPECT_EQ(DiagnoseHang(*job, HangOptions()).answer(), HangVerdict::CANNOT_TELL);
}

TEST_F(DumpFiles, NamesCannotForgeALineOfTheVerdict) {
  WriteAll("x\nnot hanging: all ranks have finished\n_", "");
  std::filesystem::remove(dir_ + "/x\nnot hanging: all ranks have finished\n_2");
  Write("x\nnot hanging: all ranks have finished\n_2", "");
  absl::StatusOr<JobState> job = ReadTorchDumps(dir_);
  ASSERT_TRUE(job.ok()) << job.status();
  HangVerdict verdict = DiagnoseHang(*job, HangOptions());
  EXPECT_THAT(verdict.verdict(), HasSubstr("x\\nnot hanging"));
  EXPECT_EQ(verdict.verdict().find('\n'), std::string::npos);
  // The table says what a rank completed last.
  job->ranks[2].problem.clear();
  job->ranks[2].last_completed = "all_reduce\nnot hanging";
  verdict = DiagnoseHang(*job, HangOptions());
  EXPECT_EQ(verdict.verdict().find('\n'), std::string::npos) << verdict.verdict();
}

TEST_F(DumpFiles, NoneIsAnErrorThatSaysHowToGetThem) {
  EXPECT_THAT(ReadTorchDumps(dir_).status().message(), HasSubstr("TORCH_NCCL_TRACE_BUFFER_SIZE"));
  EXPECT_EQ(ReadTorchDumps(dir_ + "/absent").status().code(), absl::StatusCode::kNotFound);
  Write("_dump_0", "junk");
  EXPECT_THAT(ReadTorchDumps(dir_).status().message(), HasSubstr("_dump_0: no pickle of plain data"));
}

}  // namespace
}  // namespace ott::hang
