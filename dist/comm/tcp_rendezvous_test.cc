// Tests what can go wrong before the ranks know each other. Ranks are threads here, each with a communicator
// of its own.

#include "dist/comm/tcp_rendezvous.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/socket.h"
#include "ott/dist/comm/tcp_communicator.h"

namespace ott {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

int FreePort() { return Socket::Listen(AF_INET, 0)->LocalPort(); }

using Ranks = std::vector<absl::StatusOr<std::unique_ptr<Communicator>>>;

// Creates those of a world, by what each is started with, at once.
Ranks Create(const std::vector<TcpOptions>& options) {
  Ranks ranks;
  for (size_t i = 0; i < options.size(); ++i) ranks.emplace_back(absl::UnknownError("not created"));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.size(); ++i) {
    threads.emplace_back([&, i] { ranks[i] = CreateTcpCommunicator(options[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

TcpOptions Options(int port, int rank, int world_size, std::chrono::nanoseconds timeout = seconds(30)) {
  TcpOptions options;
  options.address = "127.0.0.1";
  options.port = port;
  options.rank = rank;
  options.world_size = world_size;
  options.timeout = timeout;
  return options;
}

void ExpectError(const absl::Status& status, absl::StatusCode code,
                 const testing::Matcher<const std::string&>& message) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), message);
}

TEST(TcpRendezvous, MessagesOfAnySizeArriveWhateverFollows) {
  const int port = FreePort();
  const Ranks ranks = Create({Options(port, 0, 2), Options(port, 1, 2)});
  ASSERT_TRUE(ranks[0].ok() && ranks[1].ok()) << ranks[0].status() << ranks[1].status();
  const Deadline deadline = Deadline::After(seconds(30));
  for (const size_t size : {0, 1, 65511, 65512, 65513, 131048, 200000, 262144, 3000001}) {
    for (size_t num_messages = 1; num_messages <= 2; ++num_messages) {
      const std::string message(size, 'x');
      for (size_t i = 0; i < num_messages; ++i) ASSERT_TRUE((*ranks[0])->Post(1, 4, message).ok());
      std::thread sender([&] { EXPECT_TRUE((*ranks[0])->Flush(4, deadline).ok()); });
      for (size_t i = 0; i < num_messages; ++i) {
        const absl::StatusOr<std::string> received = (*ranks[1])->Receive(0, 4, deadline);
        EXPECT_TRUE(received.ok() && *received == message) << size << " bytes: " << received.status();
      }
      sender.join();
    }
  }
}

TEST(TcpRendezvous, ATakenPortIsNamedAndTheWayOut) {
  const Socket listener = *Socket::Listen(AF_INET, 0), silent(socket(AF_INET, SOCK_STREAM, 0));
  const SocketAddress any = *ResolveAddress("127.0.0.1", 0);
  ASSERT_EQ(bind(silent.fd(), reinterpret_cast<const sockaddr*>(&any.storage), any.length), 0);
  for (const int port : {listener.LocalPort(), silent.LocalPort()}) {
    ExpectError(Create({Options(port, 0, 2)})[0].status(), absl::StatusCode::kAlreadyExists,
                AllOf(HasSubstr(absl::StrCat("rank 0 of 2: TCP: port ", port, " is taken")),
                      HasSubstr("OTT_MASTER_PORT")));
  }
}

TEST(TcpRendezvous, NumbersThatFitNoJobAreRefusedAtOnce) {
  const auto expect = [](const TcpOptions& options, const char* message) {
    ExpectError(Create({options})[0].status(), absl::StatusCode::kInvalidArgument, HasSubstr(message));
  };
  expect(Options(FreePort(), 4, 4), "rank 4 of 4: RANK counts from 0");
  for (const int world_size : {0, 16385, 2'000'000'000})
    expect(Options(FreePort(), 0, world_size, milliseconds(100)), "WORLD_SIZE is a number from 1 to 16384");
  expect(Options(70000, 0, 1), "MASTER_PORT is a number from 1");
}

TEST(TcpRendezvous, ARankThatDoesNotComeIsNamedToAll) {
  const int port = FreePort();
  const Ranks ranks = Create({Options(port, 0, 4, seconds(2)), Options(port, 2, 4, seconds(2))});
  for (const int i : {0, 1}) {
    ExpectError(
        ranks[i].status(), absl::StatusCode::kDeadlineExceeded,
        AllOf(HasSubstr(i == 0 ? "rank 0 of 4" : "rank 2 of 4"), HasSubstr("nothing from ranks 1, 3")));
  }
}

TEST(TcpRendezvous, AMissingRankZeroIsNamed) {
  const int port = FreePort();
  ExpectError(Create({Options(port, 1, 2, milliseconds(100))})[0].status(),
              absl::StatusCode::kDeadlineExceeded,
              HasSubstr(absl::StrCat("rank 0: nobody listens at 127.0.0.1:", port, " within 0.1 s (")));
}

TEST(TcpRendezvous, ARankOfAnotherWorldSizeIsToldSoAndTheOthersGoOn) {
  const int port = FreePort();
  std::promise<void> refused;
  std::thread wrong([&] {
    const Ranks ranks = Create({Options(port, 1, 2)});
    ExpectError(ranks[0].status(), absl::StatusCode::kInvalidArgument,
                HasSubstr("rank 1 was started with world size 2, rank 0 with 3"));
    refused.set_value();
  });
  std::thread right([&] {
    refused.get_future().wait();
    const Ranks ranks = Create({Options(port, 1, 3), Options(port, 2, 3)});
    EXPECT_TRUE(ranks[0].ok() && ranks[1].ok()) << ranks[0].status() << ranks[1].status();
  });
  const Ranks ranks = Create({Options(port, 0, 3)});
  EXPECT_TRUE(ranks[0].ok()) << ranks[0].status();
  wrong.join();
  right.join();
}

TEST(TcpRendezvous, ARankThatIsThereTwiceIsNamedWhereOneIsMissing) {
  constexpr int kTimes = 16;
  const int port = FreePort();
  std::vector<TcpOptions> options(kTimes, Options(port, 1, 3, seconds(2)));
  options.push_back(Options(port, 0, 3, seconds(2)));
  const Ranks ranks = Create(options);
  ExpectError(ranks.back().status(), absl::StatusCode::kDeadlineExceeded,
              AllOf(HasSubstr("nothing from rank 2"), HasSubstr("refused: rank 1 is there twice")));
  EXPECT_LT(ranks.back().status().message().size(), 1400u) << "the first ones are enough";
  EXPECT_EQ(std::count_if(ranks.begin(), ranks.end(),
                          [](const auto& rank) { return absl::IsInvalidArgument(rank.status()); }),
            kTimes - 1);
}

TEST(TcpRendezvous, JobsOnOnePortDoNotMix) {
  const int port = FreePort();
  TcpOptions other = Options(port, 1, 2, seconds(2));
  other.job = "another";
  TcpOptions mine[] = {Options(port, 0, 2), Options(port, 1, 2)};
  for (TcpOptions& options : mine) options.job = "mine";
  std::thread first([&] {
    const Ranks ranks = Create({other});
    EXPECT_THAT(std::string(ranks[0].status().message()), HasSubstr("is no rank 0 of this job"));
    EXPECT_TRUE(Create({mine[1]})[0].ok());
  });
  const Ranks ranks = Create({mine[0]});
  EXPECT_TRUE(ranks[0].ok()) << ranks[0].status();
  first.join();
}

// The first message of rank 1, and how a message begins.
struct HelloForTest {
  char magic[8] = {'o', 't', 't', '-', 't', 'c', 'p', '3'};
  uint64_t token = 0;
  int32_t world_size = 2;
  int32_t rank = 1;
  int32_t port = 1;
  int32_t unused = 0;
  ProcessStart start = StartOfThisProcess();

  // A rank of the job "x".
  HelloForTest() {
    token = (0xcbf29ce484222325 ^ 'x') * 0x100000001b3;  // FNV-1a
  }
  // A rank of a job without a name.
  explicit HelloForTest(int port) {
    token = 0xcbf29ce484222325;
    for (const char c : "port " + std::to_string(port))
      token = (token ^ static_cast<uint64_t>(c)) * 0x100000001b3;
  }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(this), sizeof(*this)}; }
};

TEST(TcpRendezvous, AMessageOfASizeThatNoneHasEndsTheConnectionAlone) {
  const int port = FreePort();
  std::thread peer([port] {
    const Deadline deadline = Deadline::After(seconds(30));
    const Socket socket = *Socket::Connect(*ResolveAddress("127.0.0.1", port), deadline);
    const HelloForTest hello;
    EXPECT_TRUE(socket.SendAll(hello.bytes(), deadline).ok());
    const uint64_t header[] = {1, 2, uint64_t{1} << 62};
    EXPECT_TRUE(socket.SendAll({reinterpret_cast<const char*>(header), sizeof(header)}, deadline).ok());
    // Until rank 0 has closed it.
    while (socket.ReceiveExactly(1, deadline).ok()) {
    }
  });
  TcpOptions options = Options(port, 0, 2);
  options.job = "x";
  const Ranks ranks = Create({options});
  EXPECT_TRUE(absl::IsUnavailable(ranks[0].status())) << ranks[0].status();
  peer.join();
}

// Runs f in a process of its own.
template <typename F>
pid_t Fork(F f) {
  const pid_t pid = fork();
  if (pid == 0) _exit(f() ? 0 : 1);
  return pid;
}

bool Succeeds(pid_t pid) {
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool Starts(const TcpOptions& options) {
  const Ranks ranks = Create({options});
  if (!ranks[0].ok()) fprintf(stderr, "rank %d: %s\n", options.rank, ranks[0].status().ToString().c_str());
  return ranks[0].ok();
}

// Rank 0 of a start whose rank 1 comes when go() is called, and a rank of another start, which is this
// process.
class TwoStarts {
 public:
  explicit TwoStarts(int rank = 1) {
    EXPECT_EQ(pipe(go_), 0);
    job_ = Fork([this] {
      const pid_t rank_0 = Fork([this] { return Starts(Options(port_, 0, 2, seconds(8))); });
      const pid_t rank_1 = Fork([this] {
        char byte;
        return read(go_[0], &byte, 1) == 1 && Starts(Options(port_, 1, 2));
      });
      const bool rank_1_started = Succeeds(rank_1);
      return Succeeds(rank_0) && rank_1_started;
    });
    other_ = *Socket::Connect(*ResolveAddress("127.0.0.1", port_), Deadline::After(seconds(30)));
    HelloForTest hello(port_);
    hello.rank = rank;
    EXPECT_TRUE(other_.SendAll(hello.bytes(), Deadline::After(seconds(30))).ok());
  }

  int port() const { return port_; }
  const Socket& other() const { return other_; }
  bool RankOneComesAndAllStart() const { return write(go_[1], "x", 1) == 1 && Succeeds(job_); }

 private:
  const int port_ = FreePort();
  int go_[2];
  pid_t job_;
  Socket other_;
};

TEST(TcpRendezvous, ARankThatComesKeepsItsPlaceBeforeOneOfAnotherStart) {
  constexpr int kNoRank = 1 << 30;
  for (const auto& [rank, is_late] : {std::pair(1, false), {1, true}, {kNoRank, false}}) {
    const TwoStarts starts(rank);
    // The doubt is a fourth of the timeout, 2 s.
    if (is_late) {
      EXPECT_TRUE(
          absl::IsDeadlineExceeded(starts.other().ReceiveExactly(1, Deadline::After(seconds(3))).status()));
    }
    EXPECT_TRUE(starts.RankOneComesAndAllStart());
    EXPECT_THAT(starts.other().ReceiveExactly(100, Deadline::After(seconds(30))).value(),
                HasSubstr(absl::StrCat("rank ", rank, " is there twice")));
  }
}

TEST(TcpRendezvous, ARankWhoseStartHasARankZeroOfItsOwnIsRefusedAtOnce) {
  const TwoStarts starts;
  EXPECT_TRUE(absl::IsAlreadyExists(Create({Options(starts.port(), 0, 2)})[0].status()));
  EXPECT_THAT(starts.other().ReceiveExactly(100, Deadline::After(milliseconds(1500))).value(),
              HasSubstr("rank 1 was started with a rank 0 of its own"));
  EXPECT_TRUE(starts.RankOneComesAndAllStart());
}

TEST(TcpRendezvous, RanksThatWereStartedByHandFindEachOtherToo) {
  for (const std::string job : {"", "x"}) {
    const int port = FreePort();
    const auto options = [&](int rank) {
      TcpOptions of_rank = Options(port, rank, 2, seconds(job.empty() ? 8 : 30));
      of_rank.job = job;
      return of_rank;
    };
    // A fourth of the timeout, 2 s, is enough for those without a name; those of one name are not doubted.
    const Deadline soon = Deadline::After(job.empty() ? seconds(6) : seconds(2));
    const pid_t rank_0 = Fork([&] { return Succeeds(Fork([&] { return Starts(options(0)); })); });
    // One that has ended takes no place.
    const Deadline deadline = Deadline::After(seconds(30));
    if (job.empty()) {
      EXPECT_TRUE(Socket::Connect(*ResolveAddress("127.0.0.1", port), deadline)
                      ->SendAll(HelloForTest(port).bytes(), deadline)
                      .ok());
    }
    EXPECT_TRUE(Starts(options(1)));
    EXPECT_TRUE(Succeeds(rank_0));
    EXPECT_FALSE(soon.Passed()) << job;
  }
}

TEST(TcpRendezvous, WhoHoldsConnectionsAndSaysNothingKeepsNobodyOut) {
  for (const bool is_refused : {false, true}) {
    const int port = FreePort();
    const pid_t rank_0 = Fork([&] {
      const rlimit few = {64, 64};
      return setrlimit(RLIMIT_NOFILE, &few) == 0 && Starts(Options(port, 0, 3));
    });
    const Deadline deadline = Deadline::After(seconds(30));
    std::vector<Socket> held;
    for (int i = 0; i < 100; ++i) {
      held.push_back(*Socket::Connect(*ResolveAddress("127.0.0.1", port), deadline));
      // It is of another world size.
      if (is_refused) held.back().SendAll(HelloForTest(port).bytes(), deadline).IgnoreError();
    }
    const absl::Status oldest = held[0].ReceiveExactly(1000, deadline).status();
    EXPECT_TRUE(absl::IsUnavailable(oldest)) << "it makes room: " << oldest;
    const pid_t rank_1 = Fork([&] { return Starts(Options(port, 1, 3)); });
    const pid_t rank_2 = Fork([&] { return Starts(Options(port, 2, 3)); });
    for (const pid_t rank : {rank_0, rank_1, rank_2}) EXPECT_TRUE(Succeeds(rank));
  }
}

TEST(TcpRendezvous, ForeignBytesOnThePortAreIgnored) {
  const int port = FreePort();
  std::thread stranger([port] {
    const SocketAddress address = *ResolveAddress("127.0.0.1", port);
    const Socket silent = *Socket::Connect(address, Deadline::After(seconds(30)));
    const Socket foreign = *Socket::Connect(address, Deadline::After(seconds(30)));
    EXPECT_TRUE(
        foreign.SendAll("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", Deadline::After(seconds(30))).ok());
    const absl::Status closed = foreign.ReceiveExactly(1, Deadline::After(seconds(30))).status();
    EXPECT_TRUE(absl::IsUnavailable(closed)) << closed;
    // Only now do the others come; the silent one is still there.
    EXPECT_TRUE(Create({Options(port, 1, 2)})[0].ok());
  });
  const Ranks ranks = Create({Options(port, 0, 2)});
  EXPECT_TRUE(ranks[0].ok()) << ranks[0].status();
  stranger.join();
}

// Listens where rank 0 should, and answers with `answer`.
absl::Status ConnectTo(const std::string& answer) {
  const Socket listener = *Socket::Listen(AF_INET, 0);
  std::thread service([&] {
    Socket client;
    while (!client.is_open()) client = *listener.Accept();
    EXPECT_TRUE(client.ReceiveExactly(sizeof(HelloForTest), Deadline::After(seconds(30))).ok());
    client.SendAll(answer, Deadline::After(seconds(30))).IgnoreError();
    if (answer.empty()) (void)client.ReceiveExactly(1000, Deadline::After(milliseconds(500)));
  });
  const Ranks ranks =
      Create({Options(listener.LocalPort(), 1, 2, milliseconds(answer.empty() ? 200 : 30000))});
  service.join();
  return ranks[0].status();
}

TEST(TcpRendezvous, WhateverAnswersAtThePortIsTold) {
  const auto reply = [](absl::StatusCode code, int64_t size, const std::string& payload) {
    const int32_t numbers[] = {static_cast<int32_t>(code), static_cast<int32_t>(size)};
    return absl::StrCat("ott-tcp3", std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)),
                        payload);
  };
  const int64_t table = sizeof(uint64_t) + 2 * sizeof(SocketAddress), most = (1 << 20) + table;
  const auto ok = absl::StatusCode::kOk, full = absl::StatusCode::kResourceExhausted;
  for (const auto& [answer, why] :
       {std::pair(std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), "it says something else"),
        {std::string("short"), "closed the connection"},
        {reply(ok, -1, ""), "it says something else"},
        {reply(ok, most + 1, ""), "it says something else"},
        {reply(ok, table - 1, std::string(table - 1, '.')), "its table is of another world size"}}) {
    ExpectError(ConnectTo(answer), absl::StatusCode::kUnavailable,
                AllOf(HasSubstr("127.0.0.1:"), HasSubstr("is no rank 0 of this job"), HasSubstr(why)));
  }
  ExpectError(ConnectTo(reply(full, most, std::string(most, 'x'))), full,
              AllOf(HasSubstr("rank 0 at 127.0.0.1:"), HasSubstr(": xxx")));
  ExpectError(ConnectTo(""), absl::StatusCode::kDeadlineExceeded, HasSubstr("no answer of rank 0"));
}

TEST(TcpRendezvous, WhoWaitsForARankThatEndedLearnsItAtOnce) {
  const int port = FreePort();
  Ranks ranks = Create({Options(port, 0, 2), Options(port, 1, 2)});
  ASSERT_TRUE(ranks[0].ok() && ranks[1].ok());
  ASSERT_TRUE((*ranks[1])->Post(0, 1, "last words").ok());
  ranks[1]->reset();
  EXPECT_EQ((*ranks[0])->Receive(1, 1, Deadline::After(seconds(30))).value(), "last words");
  ExpectError((*ranks[0])->Receive(1, 1, Deadline::Never()).status(), absl::StatusCode::kUnavailable,
              AllOf(HasSubstr("Receive with tag 1: from rank 1 ("), HasSubstr("the rank has ended")));
  EXPECT_TRUE((*ranks[0])->Post(1, 1, "anybody there?").ok());
  EXPECT_TRUE((*ranks[0])->Flush(1, Deadline::After(seconds(30))).ok());
}

// "address:port rank/size job"
std::string OptionsText() {
  const absl::StatusOr<TcpOptions> options = TcpOptionsFromEnvironment();
  if (!options.ok()) return std::string(options.status().message());
  return absl::StrCat(options->address, ":", options->port, " ", options->rank, "/", options->world_size, " ",
                      options->job);
}

TEST(TcpOptionsFromEnvironment, AreWhatSrunAndTorchrunSet) {
  const auto set = [](const std::vector<std::pair<const char*, const char*>>& variables) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
  };
  set({{"SLURM_JOB_ID", "4711"},
       {"SLURM_STEP_ID", "0"},
       {"SLURM_PROCID", "1"},
       {"SLURM_STEP_NUM_TASKS", "2"},
       {"SLURM_STEP_NODELIST", "node[1-2]"}});
  EXPECT_EQ(OptionsText(), absl::StrCat("node1:", 20000 + 4711 * 31 % 12000, " 1/2 Slurm job 4711.0"));
  set({{"MASTER_PORT", "29500"}, {"MASTER_ADDR", "node1-ib"}});
  EXPECT_EQ(OptionsText(), "node1-ib:29500 1/2 Slurm job 4711.0");
  // torchrun, started by srun.
  set({{"RANK", "5"}, {"WORLD_SIZE", "8"}});
  EXPECT_EQ(OptionsText(), "node1-ib:29500 5/8 4711");
  for (const char* const name :
       {"SLURM_JOB_ID", "SLURM_STEP_ID", "MASTER_PORT", "MASTER_ADDR", "RANK", "WORLD_SIZE"}) {
    unsetenv(name);
  }
  for (const auto& [name, value] :
       {std::pair("MASTER_ADDR", "node0"), {"MASTER_PORT", "29500"}, {"RANK", "3"}, {"WORLD_SIZE", "8"}}) {
    EXPECT_EQ(OptionsText(), absl::StrCat("the environment variable ", name,
                                          " is not set; start the program with torchrun, or set it"));
    set({{name, value}});
  }
  EXPECT_EQ(OptionsText(), "node0:29500 3/8 ");
  set({{"OTT_MASTER_PORT", "29501"}, {"TORCHELASTIC_RUN_ID", "none"}});
  EXPECT_EQ(OptionsText(), "node0:29501 3/8 MASTER_PORT 29500");
  set({{"SLURM_JOB_ID", "4711"}});
  EXPECT_EQ(OptionsText(), "node0:29501 3/8 4711");
  set({{"OTT_JOB_ID", "mine"}});
  EXPECT_EQ(OptionsText(), "node0:29501 3/8 mine");
  set({{"OTT_JOB_ID", ""}});
  EXPECT_EQ(OptionsText(), "node0:29501 3/8 4711");
  for (const char* const wrong : {"three", "-1"}) {
    set({{"RANK", wrong}});
    EXPECT_THAT(OptionsText(), HasSubstr(absl::StrCat("RANK is \"", wrong, "\"")));
  }
}

}  // namespace
}  // namespace ott
