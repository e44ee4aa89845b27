#include "ott/dist/share/processes.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/tensor/parallel_for.h"
#include "ott/dist/comm/simulated_communicator.h"
#include "ott/dist/comm/socket.h"
#include "ott/dist/comm/tcp_communicator.h"

namespace ott {
namespace {

absl::StatusOr<std::string> Double(const std::string& argument, int) {
  if (argument == "bad") return absl::DataLossError("bad: cannot be doubled");
  return argument + argument;
}

absl::StatusOr<std::string> FirstLetter(const std::string& path, int) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  return text->substr(0, 1);
}

constexpr ShareTask kDouble = {"double", &Double};
constexpr ShareTask kFirstLetter = {"first_letter", &FirstLetter};

Processes::Options Patience(std::chrono::milliseconds patience) {
  Processes::Options options;
  options.patience = patience;
  options.num_threads = 2;
  return options;
}

// The first process, and others on threads that serve in folders of their own.
class Job {
 public:
  // folders: of each other process, in which its paths begin; "": none, and it never says anything.
  Job(const std::vector<std::string>& folders, std::chrono::milliseconds patience) {
    std::vector<std::string> hosts = {"node0"};
    for (size_t i = 0; i < folders.size(); ++i) hosts.push_back(absl::StrCat("node", i + 1));
    all_ = CreateSimulatedCommunicators(hosts);
    for (size_t i = 0; i < folders.size(); ++i) {
      if (folders[i].empty()) continue;
      others_.emplace_back([this, i, folder = folders[i], patience] {
        EXPECT_EQ(unshare(CLONE_FS), 0);
        EXPECT_EQ(chdir(folder.c_str()), 0);
        const auto processes = Connect(i + 1, patience);
        EXPECT_EQ(processes->Serve(), absl::OkStatus());
        EXPECT_TRUE(processes->Finish());
      });
    }
    first_ = Connect(0, patience);
  }
  ~Job() {
    first_.reset();
    for (std::thread& other : others_) other.join();
  }

  Processes* operator->() { return first_.get(); }

 private:
  std::unique_ptr<Processes> Connect(size_t rank, std::chrono::milliseconds patience) {
    return *Processes::Start([this, rank] { return std::move(all_[rank]); }, {kDouble, kFirstLetter},
                             Patience(patience));
  }

  std::vector<std::unique_ptr<Communicator>> all_;
  std::vector<std::thread> others_;
  std::unique_ptr<Processes> first_;
};

constexpr auto kLong = std::chrono::minutes(1);
constexpr auto kShort = std::chrono::milliseconds(300);

class ProcessesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    for (const char* host : {"a", "b", "c"})
      ASSERT_EQ(MakeDirectories(Host(host) + "/run"), absl::OkStatus());
    ASSERT_EQ(unshare(CLONE_FS), 0);
    ASSERT_EQ(chdir(Host("a").c_str()), 0);
  }

  std::string Host(const std::string& name) const { return root_ + "/" + name; }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_EQ(MakeDirectories(path.substr(0, path.rfind('/'))), absl::OkStatus());
    ASSERT_EQ(WriteFileAtomically(path, text), absl::OkStatus());
  }

  std::string root_;
};

TEST_F(ProcessesTest, ResultsAreInTheOrderOfThePiecesWhoeverWorks) {
  for (const size_t num_others : {0, 1, 2}) {
    Job job(std::vector<std::string>(num_others, Host("a")), kLong);
    job->FindFiles({"run"});
    std::vector<SharePiece> pieces;
    for (int i = 0; i < 100; ++i) pieces.push_back({absl::StrCat(i, "."), {}, i % 7});
    pieces.push_back({"bad", {}, 0});
    const auto results = job->Run(kDouble, pieces);
    ASSERT_EQ(results.size(), 101u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(*results[i], absl::StrCat(i, ".", i, "."));
    EXPECT_EQ(results[100].status(), absl::DataLossError("bad: cannot be doubled"));
    EXPECT_TRUE(job->Lost().empty());
    EXPECT_TRUE(job->Finish());
  }
}

TEST_F(ProcessesTest, FilesOfOtherHostsAreReadThere) {
  Write("run/rank_00000/x", "own");
  Write(Host("b") + "/run/rank_00001/x", "bee");
  Write(Host("c") + "/run/rank_00002/x", "sea");
  Write(Host("c") + "/run/rank_00002/dumps/7/tensors.json", "{}");
  Job job({Host("b"), Host("c")}, kLong);
  job->FindFiles({"run"});
  EXPECT_EQ(*ListDirectory("run"), (std::vector<std::string>{"rank_00000", "rank_00001", "rank_00002"}));
  EXPECT_EQ(*ListDirectory("run/rank_00002/dumps"), std::vector<std::string>{"7"});
  EXPECT_EQ(*ListDirectory("run/rank_00002/dumps/7"), std::vector<std::string>());
  EXPECT_EQ(*ReadFile("run/rank_00000/x"), "own");
  EXPECT_EQ(*ReadFile("./run//rank_00002/x"), "sea");
  EXPECT_EQ(ReadFile("run/rank_00002/x", 2).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadFile("run/rank_00003/x").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(IsDirectory("run/rank_00001"));
  EXPECT_TRUE(IsRegularFile("run/rank_00001/x"));
  EXPECT_FALSE(PathExists("run/rank_00001/y"));
  EXPECT_EQ(
      MappedFile::Open("run/rank_00001/x").status(),
      absl::FailedPreconditionError("run/rank_00001/x: is on node1, and files of its kind are read where "
                                    "they are; ask there"));
  std::vector<SharePiece> pieces;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string path = absl::StrCat("run/rank_0000", rank, "/x");
    pieces.push_back({path, {path}, 0});
  }
  const auto results = job->Run(kFirstLetter, pieces);
  EXPECT_EQ(*results[0], "o");
  EXPECT_EQ(*results[1], "b");
  EXPECT_EQ(*results[2], "s");
  EXPECT_EQ(results[3].status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ProcessesTest, OfASilentProcessOthersTakeWhatTheyHaveAndTheRestIsNamed) {
  Write("run/rank_00000/x", "own");
  Write(Host("b") + "/run/rank_00001/x", "bee");
  Job job({Host("b"), ""}, kShort);
  job->FindFiles({"run"});
  ASSERT_EQ(job->Lost(), std::vector<std::string>{"process 2 (node2): no sign of life for 0.3 s"});
  const auto results = job->Run(kFirstLetter, {{"run/rank_00000/x", {"run/rank_00000/x"}, 0},
                                               {"run/rank_00001/x", {"run/rank_00001/x"}, 0}});
  EXPECT_EQ(*results[0], "o");
  EXPECT_EQ(*results[1], "b");
  EXPECT_FALSE(job->Finish());
}

TEST_F(ProcessesTest, WhoServesIsToldThatTheFirstIsGone) {
  auto all = CreateSimulatedCommunicators({"node0", "node1"});
  const auto other = *Processes::Start([&] { return std::move(all[1]); }, {}, Patience(kShort));
  EXPECT_NE(*all[0]->Receive(1, 0, Deadline::After(kLong)), "");
  EXPECT_EQ(*all[0]->Receive(1, 0, Deadline::After(kLong)), "")
      << "a sign of life after how many threads it has";
  EXPECT_EQ(other->Serve(), absl::UnavailableError("process 0 (node0): no sign of life for 0.3 s"));
  EXPECT_FALSE(other->Finish());
}

// Over TCP, whoever has ended is gone at once.
TEST_F(ProcessesTest, WhoIsDoneEndsWellThoughTheFirstIsGoneBefore) {
  for (const bool is_done : {true, false}) {
    const int port = Socket::Listen(AF_INET, 0)->LocalPort();
    const auto connect = [port](int rank) {
      return *CreateTcpCommunicator({"127.0.0.1", port, rank, 2, "job", std::chrono::seconds(60)});
    };
    std::thread first([&] {
      const std::unique_ptr<Communicator> all = connect(0);
      internal::ShareRequest done;
      done.set_done(is_done);
      EXPECT_EQ(all->Post(1, 0, done.SerializeAsString()), absl::OkStatus());
      EXPECT_EQ(all->Flush(0, Deadline::Never()), absl::OkStatus());
    });
    std::unique_ptr<Communicator> all = connect(1);
    first.join();
    const auto other = *Processes::Start([&] { return std::move(all); }, {}, Patience(kLong));
    const absl::Status status = other->Serve();
    EXPECT_EQ(status.ok(), is_done);
    EXPECT_EQ(status.message().find("the rank has ended") != status.message().npos, !is_done) << status;
    EXPECT_EQ(other->Finish(), is_done);
  }
}

// Processes that say what a test tells them to. Process 1 has the files "x" and "only1", the others likewise.
class Script {
 public:
  explicit Script(int num_threads, bool (*is_ending)() = nullptr,
                  const std::vector<std::string>& hosts = {"node0", "node1"})
      : all_(CreateSimulatedCommunicators(hosts)) {
    Processes::Options options = Patience(kLong);
    options.is_ending = is_ending;
    first_ = *Processes::Start([this] { return std::move(all_[0]); }, {kDouble}, options);
    internal::ShareReply hello;
    hello.set_num_threads(num_threads);
    Say(hello);
  }

  // is_same: they have all files that the first process has.
  void FindFiles(bool is_same = false) {
    std::thread finder([this] { first_->FindFiles({"folder"}); });
    for (int process = 1; process < first_->size(); ++process) {
      internal::Listing listing;
      listing.set_is_same(is_same);
      listing.add_entries()->set_path("x");
      listing.add_entries()->set_path(absl::StrCat("only", process));
      Reply(Hear(process), listing.SerializeAsString(), absl::OkStatus(), process);
    }
    finder.join();
  }
  // The next request.
  internal::ShareRequest Hear(int process = 1) {
    internal::ShareRequest request;
    while (request.piece() == 0 && !request.done()) {
      EXPECT_TRUE(request.ParseFromString(*all_[process]->Receive(0, 0, Deadline::After(kLong))));
    }
    return request;
  }
  // True if no piece comes; signs of life may.
  bool HearsNothing() {
    const Deadline deadline = Deadline::After(std::chrono::milliseconds(50));
    internal::ShareRequest request;
    while (request.piece() == 0) {
      const absl::StatusOr<std::string> bytes = all_[1]->Receive(0, 0, deadline);
      if (!bytes.ok()) return absl::IsDeadlineExceeded(bytes.status());
      EXPECT_TRUE(request.ParseFromString(*bytes));
    }
    return false;
  }
  void SayBytes(const std::string& bytes, int process = 1) {
    num_bytes_ += bytes.size();
    EXPECT_TRUE(all_[process]->Post(0, 0, bytes).ok());
  }
  void Say(const internal::ShareReply& reply, int process = 1) {
    SayBytes(reply.SerializeAsString(), process);
  }
  void Reply(const internal::ShareRequest& to, const std::string& result,
             const absl::Status& status = absl::OkStatus(), int process = 1) {
    internal::ShareReply reply;
    reply.set_piece(to.piece());
    reply.set_code(static_cast<int>(status.code()));
    reply.set_error(std::string(status.message()));
    reply.set_result(result);
    Say(reply, process);
  }
  // Waits until all is known that was said.
  void WaitUntilHeard() {
    const std::string all = absl::StrCat("and ", num_bytes_, " bytes came");
    while (first_->Describe().find(all) == std::string::npos) std::this_thread::yield();
  }
  // Says what is no message, and waits until that is known.
  void Lose(int process) {
    SayBytes("\xff\xff", process);
    WaitUntilHeard();
  }
  void EndWell() {
    std::thread finisher([this] { EXPECT_TRUE(first_->Finish()); });
    while (!Hear().done()) {
    }
    internal::ShareReply goodbye;
    goodbye.set_done(true);
    Say(goodbye);
    finisher.join();
  }
  Processes* operator->() { return first_.get(); }
  size_t num_bytes() const { return num_bytes_; }

 private:
  std::vector<std::unique_ptr<Communicator>> all_;
  std::unique_ptr<Processes> first_;
  size_t num_bytes_ = 0;
};

TEST_F(ProcessesTest, TheHeaviestPiecesAreBegunFirstAsManyAtATimeAsThereAreThreads) {
  Script script(3);
  script.FindFiles();
  std::vector<SharePiece> pieces;
  for (const int64_t weight : {1, 5, 3, 5, 2, 4}) {
    pieces.push_back({absl::StrCat(pieces.size()), {"x"}, weight});
  }
  std::vector<absl::StatusOr<std::string>> results;
  std::thread runner([&] { results = script->Run(kDouble, pieces); });
  std::vector<internal::ShareRequest> heard;
  for (int i = 0; i < 3; ++i) heard.push_back(script.Hear());
  EXPECT_TRUE(script.HearsNothing());
  const std::vector<std::string> order = {"1", "3", "5", "2", "4", "0"};
  std::vector<absl::Status> answers(6);
  answers[5] = absl::DataLossError("cut");
  answers[2] = absl::NotFoundError("gone");  // nobody else has it
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(heard[i].argument(), order[i]);
    EXPECT_EQ(heard[i].task(), "double");
    EXPECT_EQ(heard[i].num_threads(), 1);
    EXPECT_EQ(heard[i].piece(), 2 + std::stoi(order[i])) << "the listing was the first";
    // Answers of none of these pieces change nothing, nor do second answers.
    internal::ShareRequest none;
    none.set_piece(heard[i].piece() + (int64_t{1} << 40));
    if (i < 2) script.Reply(i == 0 ? none : heard[0], "none");
    if (i < 2) heard.push_back(script.Hear());
    script.Reply(heard[i], "of " + order[i], answers[std::stoul(order[i])]);
    if (heard.size() < order.size()) heard.push_back(script.Hear());
  }
  runner.join();
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(results[i].status(), answers[i]);
    if (answers[i].ok()) {
      EXPECT_EQ(*results[i], absl::StrCat("of ", i));
    }
  }
  EXPECT_EQ(script->Describe(),
            absl::StrCat("2 processes on 2 hosts: 5 of 7 pieces of work were done by others "
                         "than the first, and ",
                         script.num_bytes(), " bytes came from them"));
  script.EndWell();
}

TEST_F(ProcessesTest, OnlyAPieceWhoseFileIsMissingIsTriedElsewhere) {
  Write("run/x", "own");
  ASSERT_EQ(MakeDirectories(Host("b") + "/run/x"), absl::OkStatus());
  Job job({Host("b")}, kLong);
  job->FindFiles({"run"});
  const auto results = job->Run(kFirstLetter, std::vector<SharePiece>(4, {"run/x", {"run/x"}, 0}));
  EXPECT_TRUE(std::any_of(results.begin(), results.end(), [](const auto& result) { return !result.ok(); }));
}

TEST_F(ProcessesTest, WhoSeesTheFilesOfTheFirstWorksOnThem) {
  Write("run/y", "own");
  for (const auto& [is_same, is_gone] : {std::pair(false, false), {true, false}, {true, true}}) {
    Script script(1);
    script.FindFiles(is_same);
    std::vector<absl::StatusOr<std::string>> results;
    std::thread runner([&] {
      results = script->Run(kDouble, {{"a", {"run/y"}, 0}, {"b", {"run/y", "z"}, 0}});
    });
    // If it does not find them, the first takes the piece.
    if (is_same)
      script.Reply(script.Hear(), "of process 1",
                   absl::Status(is_gone ? absl::StatusCode::kNotFound : absl::StatusCode::kOk, ""));
    runner.join();
    EXPECT_EQ(*results[0], is_same && !is_gone ? "of process 1" : "aa");
    EXPECT_EQ(*results[1], "bb") << "nobody has z, and the first says so";
    script.EndWell();
  }
}

TEST_F(ProcessesTest, FewPiecesShareTheThreads) {
  for (const int num_threads : {5, 1}) {
    Script script(num_threads);
    script.FindFiles();
    std::thread runner([&] { script->Run(kDouble, {{"a", {"x"}, 0}, {"b", {"x"}, 0}, {"c", {"x"}, 0}}); });
    for (int i = 0; i < 3; ++i) {
      const internal::ShareRequest request = script.Hear();
      EXPECT_EQ(request.num_threads(), num_threads == 5 ? 2 : 1) << "two of three pieces at a time";
      EXPECT_TRUE(num_threads == 5 || script.HearsNothing());
      script.Reply(request, "");
    }
    runner.join();
    // An answer when nothing is asked changes nothing.
    internal::ShareRequest none;
    none.set_piece(3);
    script.Reply(none, "late");
    script.EndWell();
  }
}

TEST_F(ProcessesTest, WhatALostProcessDidIsKeptAndTheRestIsOfWhoeverHasTheFilesOrAnError) {
  const absl::Status lost = absl::UnavailableError("process 1 (node1): sent what is no reply");
  for (const int losing : {0, 1, 2}) {
    const bool is_first_done = losing > 0;
    Script script(1, nullptr, {"node0", "node1", "node2"});
    script.FindFiles();
    std::vector<absl::StatusOr<std::string>> results;
    std::thread runner([&] {
      results = script->Run(kDouble, {{"a", {"only1"}}, {"b", {"x"}}, {"c", {"x"}}});
    });
    const internal::ShareRequest a = script.Hear(1), b = script.Hear(2);
    if (is_first_done) {
      script.Reply(a, "of process 1");
      EXPECT_EQ(script.Hear(1).argument(), "c");
    }
    if (losing == 1) script.Lose(1);
    // Process 1 has the file, but it works or is lost.
    script.Reply(b, "", absl::NotFoundError("gone"), 2);
    script.WaitUntilHeard();
    if (losing == 2) script.Lose(1);
    const internal::ShareRequest c = script.Hear(2);
    if (losing == 0) script.Lose(1);
    script.Reply(c, "of process 2", absl::OkStatus(), 2);
    runner.join();
    EXPECT_EQ(results[0].status(), is_first_done ? absl::OkStatus() : lost);
    EXPECT_EQ(results[0].value_or(""), is_first_done ? "of process 1" : "");
    EXPECT_EQ(results[1].status(), lost);
    EXPECT_EQ(*results[2], "of process 2");
    EXPECT_EQ(ReadFile("only1").status(), lost);
    // Nor does a process end well that is lost before it says that it has ended.
    std::thread finisher([&] { EXPECT_FALSE(script->Finish()); });
    EXPECT_TRUE(script.Hear(2).done());
    script.Lose(2);
    finisher.join();
  }
}

TEST_F(ProcessesTest, NobodyIsWaitedForWhereTheLauncherEndsTheJob) {
  static std::atomic<bool> ends;
  ends = false;
  Script script(1, [] { return ends.load(); });
  script.FindFiles();
  std::thread runner([&] { script->Run(kDouble, {{"a", {"x"}, 0}}); });
  script.Hear();
  ends = true;
  runner.join();
  EXPECT_EQ(script->Lost(), std::vector<std::string>{"process 1 (node1): the launcher ended the job"});
  EXPECT_FALSE(script->Finish());
}

TEST_F(ProcessesTest, WhoServesAnswersWithWhatItCannotDo) {
  auto all = CreateSimulatedCommunicators({"node0", "node1"});
  const auto other = *Processes::Start([&] { return std::move(all[1]); }, {kDouble}, Patience(kLong));
  std::thread server([&] { EXPECT_EQ(other->Serve(), absl::OkStatus()); });
  const auto hear = [&] {
    std::string bytes;
    while (bytes.empty()) bytes = *all[0]->Receive(1, 0, Deadline::After(kLong));  // but for signs of life
    internal::ShareReply reply;
    EXPECT_TRUE(reply.ParseFromString(bytes));
    return reply;
  };
  EXPECT_EQ(hear().num_threads(), 2);
  const std::tuple<const char*, const char*, absl::Status> cases[] = {
      {"triple", "",
       absl::UnimplementedError("triple: not known here; the processes are of different versions")},
      {"list", "\xff\xff", absl::InternalError("no ListingRequest")},
      {"read", "\xff\xff", absl::InternalError("no FileRequest")},
      {"double", "bad", absl::DataLossError("bad: cannot be doubled")}};
  for (const auto& [task, argument, status] : cases) {
    internal::ShareRequest request;
    request.set_piece(9);
    request.set_task(task);
    request.set_argument(argument);
    ASSERT_TRUE(all[0]->Post(1, 0, request.SerializeAsString()).ok());
    const internal::ShareReply reply = hear();
    EXPECT_EQ(reply.piece(), 9);
    EXPECT_EQ(absl::Status(static_cast<absl::StatusCode>(reply.code()), reply.error()), status);
  }
  internal::ShareRequest done;
  done.set_done(true);
  ASSERT_TRUE(all[0]->Post(1, 0, done.SerializeAsString()).ok());
  EXPECT_TRUE(hear().done());
  server.join();
  EXPECT_TRUE(other->Finish());
}

absl::StatusOr<std::string> Threads(const std::string&, int num_threads) { return absl::StrCat(num_threads); }
constexpr ShareTask kThreads = {"threads", &Threads};

absl::StatusOr<std::string> Nested(const std::string&, int) { return RunShared(kThreads, {{"", {}, 0}})[0]; }
constexpr ShareTask kNested = {"nested", &Nested};

TEST_F(ProcessesTest, APieceAsksForNoOther) {
  Job job({}, kLong);
  EXPECT_EQ(NumProcesses(), 1);
  SetProcesses(job.operator->());
  EXPECT_EQ(*RunShared(kThreads, {{"", {}, 0}})[0], "2");
  EXPECT_EQ(*RunShared(kThreads, {{"", {}, 0}, {"", {}, 0}, {"", {}, 0}})[2], "1");
  EXPECT_EQ(RunShared(kNested, {{"", {}, 0}})[0].status(),
            absl::FailedPreconditionError("asked for by another piece of work"));
  SetProcesses(nullptr);
  {
    Job three(std::vector<std::string>(2, Host("a")), kLong);
    SetProcesses(three.operator->());
    { const Job of_itself({}, kLong); }
    EXPECT_EQ(NumProcesses(), 3);
  }
  EXPECT_EQ(NumProcesses(), 1);
}

// Takes a while, so that each thread gets a piece.
absl::StatusOr<std::string> NameThread(const std::string&, int) {
  for (const Deadline end = Deadline::After(std::chrono::milliseconds(1)); !end.Passed();)
    std::this_thread::yield();
  return absl::StrCat(std::hash<std::thread::id>()(std::this_thread::get_id()));
}
constexpr ShareTask kNameThread = {"name_thread", &NameThread};

TEST_F(ProcessesTest, AsManyThreadsWorkAsAreGiven) {
  Job job({}, kLong);
  std::set<std::string> threads;
  for (const auto& thread : job->Run(kNameThread, std::vector<SharePiece>(100))) threads.insert(*thread);
  EXPECT_EQ(threads.size(), 2u);
}

TEST(Processes, AnErrorOfAnyKindEndsTheStart) {
  const auto connect = []() -> absl::StatusOr<std::unique_ptr<Communicator>> {
    return absl::UnknownError("no wire");
  };
  EXPECT_EQ(Processes::Start(connect, {}, Processes::Options()).status(), absl::UnknownError("no wire"));
}

TEST(RunShared, WorksWithoutOtherProcesses) {
  const auto results = RunShared(kDouble, {{"a", {}, 0}, {"b", {}, 0}});
  EXPECT_EQ(*results[0], "aa");
  EXPECT_EQ(*results[1], "bb");
  EXPECT_TRUE(RunShared(kDouble, {}).empty());
  EXPECT_EQ(*RunShared(kThreads, {{"", {}, 0}})[0], absl::StrCat(NumThreads(0)));
  EXPECT_EQ(*RunShared(kThreads, std::vector<SharePiece>(NumThreads(0)))[0], "1");
}

}  // namespace
}  // namespace ott
