// Measures how fast a long message arrives over TCP, beside what a socket can do and what a copy takes, all
// on this machine.
//
//   bazel run //dist/comm:tcp_communicator_benchmark

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ott/core/base/check.h"
#include "ott/dist/comm/socket.h"
#include "ott/dist/comm/tcp_communicator.h"

namespace ott {
namespace {

constexpr int kRepetitions = 3;

Deadline ForAll() { return Deadline::After(std::chrono::seconds(60)); }

// Megabytes a second of the quickest repetition: what disturbs only ever adds.
double Speed(size_t size, const std::function<void()>& f) {
  double seconds = 1e9;
  for (int i = 0; i < kRepetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    seconds = std::min(seconds, taken.count());
  }
  return static_cast<double>(size) / 1e6 / seconds;
}

// Into fresh memory, as a message that arrives is.
double SpeedOfCopy(const std::string& message) {
  return Speed(message.size(), [&] {
    const std::string copy = message;
    OTT_CHECK(copy.back() == message.back()) << "copied";
  });
}

double SpeedOfSocket(const std::string& message) {
  const Socket listener = *Socket::Listen(AF_INET, 0);
  const Socket client = *Socket::Connect(*ResolveAddress("127.0.0.1", listener.LocalPort()), ForAll());
  Socket server;
  while (!server.is_open()) server = *listener.Accept();
  return Speed(message.size(), [&] {
    std::thread sender([&] { OTT_CHECK(client.SendAll(message, ForAll()).ok()) << "sent"; });
    OTT_CHECK(server.ReceiveExactly(message.size(), ForAll()).ok()) << "received";
    sender.join();
  });
}

double SpeedOfCommunicator(const std::string& message) {
  const int port = Socket::Listen(AF_INET, 0)->LocalPort();
  std::vector<std::unique_ptr<Communicator>> ranks(2);
  const auto create = [&](int rank) {
    TcpOptions options;
    options.address = "127.0.0.1";
    options.port = port;
    options.rank = rank;
    options.world_size = 2;
    ranks[rank] = CreateTcpCommunicator(options).value();
  };
  std::thread other(create, 1);
  create(0);
  other.join();
  return Speed(message.size(), [&] {
    std::thread sender([&] { OTT_CHECK(ranks[0]->Send(1, 1, message, ForAll()).ok()) << "sent"; });
    OTT_CHECK(ranks[1]->Receive(0, 1, ForAll()).ok()) << "received";
    sender.join();
  });
}

// Returns true if a long message is about as fast as a short one.
bool Measure() {
  std::printf("%8s  %12s  %12s  %12s\n", "message", "communicator", "socket", "copy");
  double of_socket = 0;
  for (const size_t megabytes : {1, 32, 512}) {
    const std::string message(megabytes << 20, 'x');
    const double speed = SpeedOfCommunicator(message);
    const double socket = SpeedOfSocket(message);
    of_socket = speed / socket;
    std::printf("%5zu MB  %7.0f MB/s  %7.0f MB/s  %7.0f MB/s\n", megabytes, speed, socket,
                SpeedOfCopy(message));
  }
  constexpr double kLeast = 0.25;
  const bool holds = of_socket >= kLeast;
  std::printf("512 MB: %.2f of the socket's speed, at least %.2f: %s\n", of_socket, kLeast,
              holds ? "ok" : "MISSED");
  return holds;
}

}  // namespace
}  // namespace ott

int main() { return ott::Measure() ? 0 : 1; }
