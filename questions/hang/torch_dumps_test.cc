#include "ott/questions/hang/torch_dumps.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/hang/diagnosis.h"
#include "questions/hang/dump_for_test.h"

namespace ott::hang {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

using Dumps = std::map<int, DumpForTest>;

HangVerdict Diagnose(const std::map<int, std::string>& bytes) {
  const absl::StatusOr<JobState> job = ParseTorchDumps(bytes);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? DiagnoseHang(*job, HangOptions()) : HangVerdict();
}

// Returns the verdict, which is the same of JSON and of pickles.
HangVerdict Diagnose(const Dumps& dumps) {
  std::map<int, std::string> json, pickles;
  for (const auto& [rank, dump] : dumps) {
    json[rank] = dump.Json();
    pickles[rank] = dump.Pickle();
  }
  const HangVerdict verdict = Diagnose(json);
  EXPECT_EQ(Diagnose(pickles).DebugString(), verdict.DebugString());
  return verdict;
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

// Operations may not tell when they start, if none has started yet.
TEST(TorchDumps, AHostThatStandsNeverCame) {
  for (const int last_started : {-1, 0}) {
    Dumps dumps = HostStands();
    for (auto& [rank, dump] : dumps) dump.Started(last_started);
    const HangVerdict verdict = Diagnose(dumps);
    EXPECT_EQ(verdict.verdict(),
              "rank 2 never came to all_reduce #12 of group 7 (dp), where ranks 0, 1, 3 have waited");
    EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  }
}

TEST(TorchDumps, ADeviceThatSleepsNeverBegan) {
  Dumps dumps;
  for (int rank = 0; rank < 4; ++rank) {
    dumps[rank].Enqueued(12).Completed(11).Started(rank == 3 ? 11 : 12);
    dumps[rank].Entry(12, "all_reduce", rank == 3 ? "scheduled" : "started");
  }
  const HangVerdict verdict = Diagnose(dumps);
  EXPECT_THAT(verdict.culprits(), ElementsAre(3));
  EXPECT_EQ(verdict.causes(0).kind(), HangCause::DEVICE_STANDS);
}

TEST(TorchDumps, SendsAndReceivesAreFollowedToTheirPeers) {
  for (const bool called_together : {false, true}) {
    Dumps dumps;
    dumps[0].PointToPoint(5, "send 0->1", "scheduled");
    dumps[1].PointToPoint(called_together ? 5 : 4, "recv 1<-2", "scheduled");
    dumps[1].PointToPoint(5, "recv 1<-0", "scheduled");
    dumps[2].PointToPoint(9, "recv 2<-3", "scheduled");
    dumps[3].PointToPoint(9, "send 3->2", "completed");
    const HangVerdict verdict = Diagnose(dumps);
    EXPECT_THAT(verdict.culprits(), ElementsAre(3)) << verdict.verdict();
    // Rank 1 is ready to receive from rank 0 as well, which then waits for nobody.
    EXPECT_EQ(verdict.held_up_size(), called_together ? 0 : 2);
  }
}

TEST(TorchDumps, ACountOfMessagesIsNoCountOfCollectives) {
  Dumps dumps = HostStands();
  dumps[2].PointToPoint(50, "send 2->1", "completed").Completed(50);
  const HangVerdict verdict = Diagnose(dumps);
  EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL) << verdict.verdict();
  EXPECT_THAT(verdict.unknown(), ElementsAre(2));
}

TEST(TorchDumps, DumpsWithoutOperationsTellNothing) {
  Dumps dumps;
  for (int rank = 0; rank < 4; ++rank) dumps[rank];
  HangVerdict verdict = Diagnose(dumps);
  EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL);
  EXPECT_THAT(verdict.verdict(), HasSubstr("ranks 0-3 cannot: its dump holds no operation"));
  // A rank that called nothing where others wait for it is another matter.
  for (int rank = 0; rank < 3; ++rank) dumps[rank].Entry(1, "all_reduce", "scheduled");
  verdict = Diagnose(dumps);
  EXPECT_THAT(verdict.culprits(), ElementsAre(3)) << verdict.verdict();
}

// Fields that are missing, or not what they are to be, are not known; what is no entry is left out.
TEST(OneDump, IsReadAsFarAsItsFieldsAreWhatTheyAreToBe) {
  const auto entry = [](const std::string& fields) {
    return absl::StrCat(R"({"process_group": ["7", "dp"], "pg_id": 5)", fields, "}");
  };
  const auto all_reduce = [&](const std::string& fields) {
    return entry(R"(, "collective_seq_id": 12, "state": "completed", "profiling_name": "nccl:all_reduce")" +
                 fields);
  };
  const auto read = [](const std::string& entries, const std::string& more = "") {
    const absl::StatusOr<JobState> job =
        ParseTorchDumps({{2, absl::StrCat(R"({"version": "2.1", "entries": [)", entries, "]", more, "}")}});
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *job : JobState();
  };
  const auto operation = [&](const std::string& text) {
    const JobState job = read(text);
    EXPECT_EQ(job.ranks[2].operations.size(), 1) << text;
    return job.ranks[2].operations.empty() ? JobOperation() : job.ranks[2].operations[0];
  };
  EXPECT_TRUE(read("1, [], \"x\", null").ranks[2].operations.empty());
  EXPECT_EQ(read(R"({"collective_seq_id": 3})").ranks[2].operations.size(), 1);
  EXPECT_EQ(read(all_reduce(""), R"(, "pg_config": {"7": {"desc": "dp"}})").ranks.size(), 3);
  EXPECT_EQ(read("7, " + all_reduce("")).ranks[2].operations.size(), 1);
  for (const auto& [sizes, size] : {std::pair("[[3, 4]]", 12),
                                    {"[[]]", 1},
                                    {"[[0, 4]]", 0},
                                    {"[[3, \"x\"]]", 0},
                                    {"[[3], [4]]", -1},
                                    {"[]", -1},
                                    {"[7]", -1},
                                    {"7", -1},
                                    {"[[4611686018427387904, 4]]", -1}}) {
    EXPECT_EQ(operation(all_reduce(absl::StrCat(", \"input_sizes\": ", sizes))).size, size) << sizes;
  }
  // Only where all ranks are to give as much are sizes compared.
  for (const auto& [name, size] : {std::pair("all_reduce", 12),
                                   {"broadcast", 12},
                                   {"reduce", 12},
                                   {"_all_gather_base", 12},
                                   {"_reduce_scatter_base", 12},
                                   {"ALL_TO_ALL", -1},
                                   {"all_gather", -1},
                                   {"all_to_all", -1},
                                   {"barrier", -1},
                                   {"gather", -1},
                                   {"reduce_scatter", -1},
                                   {"scatter", -1}}) {
    EXPECT_EQ(
        operation(entry(absl::StrCat(R"(, "input_sizes": [[3, 4]], "profiling_name": "nccl:)", name, "\"")))
            .size,
        size)
        << name;
  }
  for (const auto& [number, sequence] :
       {std::pair("3", 3), {"-5", 0}, {"-9223372036854775808", 4}, {"\"x\"", 4}, {"null", 4}}) {
    EXPECT_EQ(operation(entry(absl::StrCat(R"(, "seq_id": 4, "profiling_name": "nccl:all_reduce", )",
                                           R"("state": "started", "collective_seq_id": )", number)))
                  .sequence,
              sequence)
        << number;
  }
  // Operations complete in their order.
  for (const auto& [state, progress] : {std::pair("completed", JobOperation::Progress::kCompleted),
                                        {"started", JobOperation::Progress::kEntered}}) {
    const JobState job =
        read(all_reduce("") + "," +
             entry(absl::StrCat(R"(, "collective_seq_id": 14, )",
                                R"("profiling_name": "nccl:broadcast", "state": ")", state, "\"")));
    EXPECT_EQ(job.ranks[2].operations.back().progress, progress);
    const GroupPosition& position = job.ranks[2].positions[0];
    EXPECT_EQ(position.entered, 14);
    EXPECT_EQ(position.completed, progress == JobOperation::Progress::kCompleted ? 14 : 12);
  }
  for (const auto& [name, synchronizes] : {std::pair("all_reduce_barrier", true),
                                           {"_all_gather_base", true},
                                           {"reduce_scatter", true},
                                           {"ALL_TO_ALL", false},
                                           {"all_to_all", true},
                                           {"broadcast", false},
                                           {"reduce", false}}) {
    const JobState job = read(entry(absl::StrCat(R"(, "profiling_name": "nccl:)", name, "\"")));
    EXPECT_EQ(job.ranks[2].operations[0].synchronizes, synchronizes) << name;
    EXPECT_EQ(job.names[job.ranks[2].operations[0].name], name);
  }
  // A message to nobody in the group is left out.
  const std::string groups = R"(, "pg_config": {"7": {"desc": "dp", "ranks": "[2, 5, 9]"}})";
  for (const auto& [name, peer] : {std::pair("send 0->1", 5),
                                   {"recv 0<-2", 9},
                                   {"send 0->3", -1},
                                   {"send 0->", -1},
                                   {"send 0", -1},
                                   {"recv 0<-0", 2}}) {
    const JobState job = read(entry(absl::StrCat(R"(, "profiling_name": "nccl:)", name, "\"")), groups);
    EXPECT_EQ(job.ranks.size(), 10);
    ASSERT_EQ(job.ranks[2].operations.size(), peer >= 0 ? 1 : 0) << name;
    if (peer < 0) continue;
    EXPECT_EQ(job.ranks[2].operations[0].peer, peer) << name;
    EXPECT_EQ(job.ranks[2].operations[0].direction,
              name[0] == 's' ? JobOperation::Direction::kSend : JobOperation::Direction::kReceive);
  }
  // Messages have numbers of their own, unless the version counts all together.
  for (const auto& [numbers, sequence] : {std::pair(R"("collective_seq_id": 3, "p2p_seq_id": 7)", 7),
                                          {R"("collective_seq_id": 3)", 3},
                                          {R"("seq_id": 4)", 4},
                                          {R"("seq_id": 4, "p2p_seq_id": -1)", 0}}) {
    const JobState job =
        read(entry(absl::StrCat(R"(, "profiling_name": "nccl:send 0->1", )", numbers)), groups);
    EXPECT_EQ(job.ranks[2].operations.at(0).sequence, sequence) << numbers;
  }
  for (const auto& [ranks, members] :
       std::vector<std::pair<std::string, std::vector<int>>>{{"\"[9, 2,2 ,11]\"", {2, 9, 11}},
                                                             {"[4, 2, -1, \"x\"]", {2, 4}},
                                                             {"\"2-99999999999999999999\"", {2}}}) {
    const JobState job = read(
        all_reduce(""), absl::StrCat(R"(, "pg_config": {"7": {"desc": "undefined", "ranks": )", ranks, "}}"));
    EXPECT_EQ(job.groups[0].ranks, members) << ranks;
    EXPECT_EQ(job.groups[0].name, "7");
    EXPECT_EQ(job.ranks.size(), members.back() + 1);
    EXPECT_EQ(job.ranks[0].problem, "it left no dump");
  }
  EXPECT_EQ(read(all_reduce(""), groups).groups[0].name, "7 (dp)");
  for (const char* const no_dump :
       {"[]", "{}", R"({"version": "2.1"})", R"({"version": "2.1", "entries": {}})",
        R"({"version": 2, "entries": []})", R"({"version": "12.0", "entries": []})"}) {
    EXPECT_FALSE(ParseTorchDumps({{0, no_dump}}).ok()) << no_dump;
  }
}

// The entries of others say which status is a group's, if they agree and it is not another's.
TEST(TorchDumpStatus, OfAGroupWithoutEntriesIsFoundByItsNumber) {
  const auto dump = [](const std::string& group, int number) {
    return absl::StrFormat(
        R"({"version": "2.9", "pg_config": {"7": {"ranks": "[0, 1, 2]"}, "8": {"ranks": "[0, 1, 2]"}}, )"
        R"("pg_status": {"5": {"last_enqueued_collective": 11, "last_completed_collective": 11}}, )"
        R"("entries": [{"pg_id": %d, "process_group": ["%s"], "profiling_name": "nccl:all_reduce", )"
        R"("collective_seq_id": 12, "state": "scheduled"}]})",
        number, group);
  };
  for (const int of_another_rank : {5, 6}) {
    for (const int of_another_group : {5, 6}) {
      const absl::StatusOr<JobState> job = ParseTorchDumps(
          {{0, dump("7", 5)}, {1, dump("7", of_another_rank)}, {2, dump("8", of_another_group)}});
      ASSERT_TRUE(job.ok()) << job.status();
      const GroupPosition* const position = job->ranks[2].Position(0);
      ASSERT_EQ(job->groups[0].name, "7");
      EXPECT_EQ(position != nullptr && position->completed == 11,
                of_another_rank == 5 && of_another_group == 6);
    }
  }
}

TEST(TorchDumps, AListThatContainsItselfIsReadAsDeepAsAsked) {
  // {"version": "2.1", "entries": a list with itself}
  constexpr char kPickle[] =
      "\x80\x02}(X\x07\0\0\0versionX\x03\0\0\0"
      "2.1X\x07\0\0\0entries]q\x01h\x01"
      "au.";
  const std::string pickle(kPickle, sizeof(kPickle) - 1);
  EXPECT_TRUE(ParseTorchDumps({{0, pickle}}).ok()) << ParseTorchDumps({{0, pickle}}).status();
}

TEST(TorchDumps, TextThatIsNoUtf8StaysOutOfTheVerdict) {
  std::string pickle = DumpForTest().Entry(1, "all_reduce?", "scheduled").Pickle();
  pickle[pickle.find('?')] = '\xff';
  const absl::StatusOr<JobState> job = ParseTorchDumps({{0, pickle}});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->names[job->ranks[0].operations[0].name], "all_reduce\uFFFD");
}

// Gloo leaves its entries as they were scheduled, tells no members of groups, and records no messages.
// Ranks below num_waiting called operation 2, and completed as much as is said; others completed 1.
TEST(GlooDumps, WhatTheStatusSaysIsCompletedThoughItMayLag) {
  struct Case {
    int num_waiting, completed;
    bool are_retired;
    HangVerdict::Answer answer;
    std::vector<int> culprits, suspects;
    std::string says;
  };
  for (const Case& of : std::vector<Case>{{4, 2, false, HangVerdict::NOT_HANGING, {}, {}, ""},
                                          {3,
                                           1,
                                           false,
                                           HangVerdict::HANGING,
                                           {3},
                                           {},
                                           "rank 3 never came to barrier #2 of group 7, where ranks 0-2"},
                                          {4, 0, true, HangVerdict::NOT_HANGING, {}, {}, ""},
                                          {1, 0, false, HangVerdict::CANNOT_TELL, {}, {}, ""},
                                          // One of several that never came may wait for another.
                                          {1,
                                           1,
                                           false,
                                           HangVerdict::CANNOT_TELL,
                                           {},
                                           {1, 2, 3},
                                           "in a send or receive, which Gloo does not record"}}) {
    std::map<int, std::string> bytes;
    for (int rank = 0; rank < 4; ++rank) {
      DumpForTest dump;
      dump.Entry(1, "all_reduce", "scheduled").Completed(rank < of.num_waiting ? of.completed : 1);
      if (rank < of.num_waiting) dump.Entry(2, "barrier", "scheduled");
      const std::string retired = of.are_retired ? R"("retired": true, "is_p2p")" : R"("is_p2p")";
      bytes[rank] = absl::StrReplaceAll(
          dump.Json(), {{"nccl:", "gloo:"}, {"[0, 1, 2, 3]", "[]"}, {R"("is_p2p")", retired}});
    }
    const HangVerdict verdict = Diagnose(bytes);
    EXPECT_EQ(verdict.answer(), of.answer) << verdict.verdict();
    EXPECT_THAT(verdict.culprits(), ElementsAreArray(of.culprits));
    EXPECT_THAT(verdict.suspects(), ElementsAreArray(of.suspects));
    EXPECT_THAT(verdict.verdict(), HasSubstr(of.says));
  }
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
  EXPECT_EQ(ReadTorchDumps(dir_ + "/absent").status(),
            absl::NotFoundError(dir_ + "/absent: No such file or directory"));
  Write("_dump_0", "junk");
  EXPECT_THAT(ReadTorchDumps(dir_).status().message(), HasSubstr("_dump_0: no pickle that can be read"));
  std::filesystem::resize_file(dir_ + "/_dump_0", 1ULL << 40);
  EXPECT_THAT(ReadTorchDumps(dir_).status().message(), HasSubstr("_dump_0: 1099511627776 bytes"));
}

}  // namespace
}  // namespace ott::hang
