#include "ott/dist/comm/socket.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

struct Connection {
  Connection() : listener(*Socket::Listen(AF_INET, 0)) {
    SocketAddress address = *ResolveAddress("127.0.0.1", listener.LocalPort());
    client = *Socket::Connect(address, Deadline::After(seconds(10)));
    while (!server.is_open()) server = *listener.Accept();
  }

  Socket listener;
  Socket client;
  Socket server;
};

TEST(Socket, MovesMoreBytesThanItsBuffersHold) {
  Connection connection;
  const std::string bytes(16 << 20, 'x');
  std::thread sender(
      [&] { EXPECT_TRUE(connection.client.SendAll(bytes, Deadline::After(seconds(30))).ok()); });
  EXPECT_EQ(connection.server.ReceiveExactly(bytes.size(), Deadline::After(seconds(30))).value(), bytes);
  sender.join();
}

TEST(Socket, NothingIsSentAtOnceWhateverFailedBefore) {
  const Connection connection;
  errno = ENOENT;
  EXPECT_TRUE(connection.client.SendAll("", Deadline::Now()).ok());
}

TEST(Socket, GivesUpAtTheDeadline) {
  Connection connection;
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      connection.server.ReceiveExactly(1, Deadline::After(milliseconds(20))).status()));
  // Nobody takes it.
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      connection.client.SendAll(std::string(64 << 20, 'x'), Deadline::After(milliseconds(20)))));
}

TEST(Socket, WhoeverFindsNoPlaceInTheQueueOfAListenerIsNotConnected) {
  const Socket listener = *Socket::Listen(AF_INET, 0);
  ASSERT_EQ(listen(listener.fd(), 0), 0);
  const SocketAddress address = *ResolveAddress("127.0.0.1", listener.LocalPort());
  std::vector<Socket> connected;
  absl::Status status;
  while (status.ok() && connected.size() < 10) {
    absl::StatusOr<Socket> client = Socket::Connect(address, Deadline::After(milliseconds(100)));
    status = client.status();
    if (client.ok()) connected.push_back(*std::move(client));
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  for (const Socket& client : connected) EXPECT_TRUE(client.Peer().ok());
}

TEST(Socket, WithoutAFileLeftAcceptSaysSoInsteadOfWaiting) {
  const Socket listener = *Socket::Listen(AF_INET, 0);
  SocketAddress address = *ResolveAddress("127.0.0.1", listener.LocalPort());
  const Socket client = *Socket::Connect(address, Deadline::After(seconds(30)));
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(client.fd()) + 1;
  setrlimit(RLIMIT_NOFILE, &none);
  // Until the connection has come.
  absl::Status status;
  while (status.ok()) status = listener.Accept().status();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ulimit -n"));
}

TEST(Socket, AddressesAreShownWithTheirPort) {
  EXPECT_EQ(ResolveAddress("127.0.0.1", 80)->ToString(), "127.0.0.1:80");
  EXPECT_EQ(ResolveAddress("::1", 80)->ToString(), "[::1]:80");
  for (const char* const host : {"127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1", "10.127.0.1",
                                 "128.0.0.1", "126.0.0.1", "::2", "1::1", "::ffff:10.127.0.1"}) {
    const SocketAddress address = *ResolveAddress(host, 65535);
    EXPECT_EQ(address.Port(), 65535);
    EXPECT_EQ(address.IsLoopback(), host == std::string("::1") ||
                                        std::string(host).find("127.0.0.1") != std::string::npos ||
                                        host == std::string("127.9.8.7"))
        << host;
  }
  const absl::Status status = ResolveAddress("no such host", 80).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no such host"));
}

}  // namespace
}  // namespace ott
