#include "ott/questions/hang/recorder_exchange.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/no_threads_for_test.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/local_communicator.h"

namespace ott {
namespace {

double ProcessCpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The address at which this process listens.
sockaddr_storage ListeningAddress() {
  sockaddr_storage address{};
  for (int fd = 0; fd < 1000; ++fd) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    size = sizeof(address);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  }
  return address;
}

TEST(RecorderExchange, TurnsAreAnsweredAndVerdictsArrive) {
  const std::unique_ptr<Communicator> ranks = CreateLocalCommunicator();
  std::atomic<bool> may = true;
  std::vector<std::string> verdicts;
  RecorderExchange::Answers answers;
  answers.take_turn = [&] { return may.load(); };
  answers.set_verdict = [&](const std::string& verdict) { verdicts.push_back(verdict); };
  answers.recorder = [] { return absl::NotFoundError("there is none"); };
  const auto soon = [] { return Deadline::After(std::chrono::seconds(10)); };
  {
    const auto exchange = RecorderExchange::Start(*ranks, std::move(answers), soon());
    ASSERT_TRUE(exchange.ok()) << exchange.status();
    for (const bool turn : {true, false, true}) {
      may = turn;
      EXPECT_EQ((*exchange)->AskForTurn(0, soon()).value(), turn);
    }
    EXPECT_FALSE((*exchange)->AskForRecorder(0, soon()).ok());
    for (const char* verdict : {"rank 3 stands", ""}) {
      EXPECT_TRUE((*exchange)->SendVerdict(0, verdict, soon()).ok());
    }
  }
  EXPECT_EQ(verdicts, (std::vector<std::string>{"rank 3 stands", ""}));
}

TEST(RecorderExchange, WhoIsOfNoRankOrSaysTooMuchGetsNoAnswer) {
  const std::unique_ptr<Communicator> ranks = CreateLocalCommunicator();
  int num_asked = 0;
  RecorderExchange::Answers answers;
  answers.recorder = [&] { return absl::StrCat(++num_asked); };
  answers.take_turn = [&] { return ++num_asked > 0; };
  answers.set_verdict = [&](const std::string& /*verdict*/) { ++num_asked; };
  const auto soon = [] { return Deadline::After(std::chrono::seconds(10)); };
  const auto exchange = RecorderExchange::Start(*ranks, std::move(answers), soon());
  ASSERT_TRUE(exchange.ok()) << exchange.status();
  const sockaddr_storage address = ListeningAddress();
  for (const uint64_t kind : {'r', 't', 'v'}) {
    const int stranger = socket(address.ss_family, SOCK_STREAM, 0);
    ASSERT_EQ(connect(stranger, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    const uint64_t question[] = {/*token=*/1, kind, /*num_bytes=*/0};
    ASSERT_EQ(send(stranger, question, sizeof(question), 0), sizeof(question));
    char answer = 0;
    EXPECT_EQ(recv(stranger, &answer, 1, 0), 0);
    close(stranger);
  }
  EXPECT_FALSE((*exchange)->SendVerdict(0, std::string((64 << 20) + 1, 'x'), soon()).ok());
  EXPECT_EQ(num_asked, 0);
  EXPECT_TRUE((*exchange)->SendVerdict(0, std::string(64 << 20, 'x'), soon()).ok());
  EXPECT_EQ(num_asked, 1);
}

TEST(RecorderExchange, WithoutAThreadItSaysThatItDoesNotListen) {
  const NoThreads no_threads;
  const std::unique_ptr<Communicator> ranks = CreateLocalCommunicator();
  const auto exchange = RecorderExchange::Start(*ranks, {}, Deadline::After(std::chrono::seconds(10)));
  ASSERT_TRUE(exchange.ok()) << exchange.status();
  EXPECT_NE((*exchange)
                ->AskForTurn(0, Deadline::After(std::chrono::seconds(10)))
                .status()
                .message()
                .find("does not listen"),
            std::string::npos);
}

TEST(RecorderExchange, WithoutFreeFilesItWaitsAndThenAnswers) {
  std::unique_ptr<Communicator> ranks = CreateLocalCommunicator();
  RecorderExchange::Answers answers;
  answers.recorder = [] { return std::string("what this rank did"); };
  const auto exchange =
      RecorderExchange::Start(*ranks, std::move(answers), Deadline::After(std::chrono::seconds(10)));
  ASSERT_TRUE(exchange.ok()) << exchange.status();

  const sockaddr_storage address = ListeningAddress();
  const int stranger = socket(address.ss_family, SOCK_STREAM, 0);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{static_cast<rlim_t>(stranger) + 1, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  ASSERT_EQ(connect(stranger, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const double before = ProcessCpuSeconds();
  poll(nullptr, 0, /*milliseconds=*/500);
  EXPECT_LT(ProcessCpuSeconds() - before, 0.25);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  close(stranger);

  const absl::StatusOr<std::string> answer =
      (*exchange)->AskForRecorder(0, Deadline::After(std::chrono::seconds(10)));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, "what this rank did");
}

}  // namespace
}  // namespace ott
