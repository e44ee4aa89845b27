#include "ott/questions/hang/recorder_exchange.h"

#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

constexpr uint64_t kRecorder = 'r';
constexpr uint64_t kTurn = 't';
constexpr uint64_t kVerdict = 'v';
// Limits a verdict, which lists ranks.
constexpr uint64_t kMaxVerdictBytes = uint64_t{64} << 20;
// The thread sees within this time that it is to end.
constexpr std::chrono::milliseconds kPoll(200);

struct Query {
  uint64_t token;
  uint64_t kind;
  uint64_t num_bytes;
};

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

template <typename T>
absl::StatusOr<T> ReceiveValue(const Socket& socket, Deadline deadline) {
  OTT_ASSIGN_OR_RETURN(const std::string bytes, socket.ReceiveExactly(sizeof(T), deadline));
  T value;
  if (bytes.size() != sizeof(value)) return absl::DataLossError("it said too little");
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

absl::StatusOr<uint64_t> NewToken(Communicator& ranks, Deadline deadline) {
  std::string bytes(sizeof(uint64_t), '\0');
  if (ranks.rank() == 0) {
    std::random_device random;
    const uint64_t token = uint64_t{random()} << 32 | random();
    std::memcpy(bytes.data(), &token, sizeof(token));
  }
  OTT_RETURN_IF_ERROR(ranks.Broadcast(0, &bytes, deadline));
  uint64_t token = 0;
  if (bytes.size() == sizeof(token)) std::memcpy(&token, bytes.data(), sizeof(token));
  return token;
}

}  // namespace

RecorderExchange::RecorderExchange(Socket listener, Answers answers)
    : listener_(std::move(listener)), answers_(std::move(answers)) {}

absl::StatusOr<std::unique_ptr<RecorderExchange>> RecorderExchange::Start(Communicator& ranks,
                                                                          Answers answers,
                                                                          Deadline deadline) {
  // Hosts may have IPv4 alone. A rank that cannot listen, or has no thread to answer, can still ask.
  absl::StatusOr<Socket> listener = Socket::Listen(AF_INET6, 0);
  if (!listener.ok()) listener = Socket::Listen(AF_INET, 0);
  int port = listener.ok() ? listener->LocalPort() : 0;
  std::unique_ptr<RecorderExchange> exchange(
      new RecorderExchange(listener.ok() ? *std::move(listener) : Socket(), std::move(answers)));
  OTT_ASSIGN_OR_RETURN(exchange->token_, NewToken(ranks, deadline));
  if (port > 0 && !exchange->thread_.Start([exchange = exchange.get()] { exchange->Serve(); })) port = 0;
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> ports, ranks.AllGather(absl::StrCat(port), deadline));
  for (int rank = 0; rank < ranks.size(); ++rank) {
    Peer& peer = exchange->peers_.emplace_back();
    // The name of a host may be known to itself alone.
    peer.host = ranks.host(rank) == ranks.host(ranks.rank()) ? "127.0.0.1" : ranks.host(rank);
    if (!absl::SimpleAtoi(ports[rank], &peer.port)) peer.port = 0;
  }
  exchange->rank_ = ranks.rank();
  return exchange;
}

RecorderExchange::~RecorderExchange() {
  ends_ = true;
  thread_.Join();
}

void RecorderExchange::Serve() {
  while (!ends_) {
    std::vector<pollfd> sockets = {{listener_.fd(), POLLIN, 0}};
    Wait(sockets, Deadline::After(kPoll));
    const absl::StatusOr<Socket> socket = listener_.Accept();
    if (!socket.ok()) {
      // Accepting failed: the connection waits, and would wake this thread at once.
      std::vector<pollfd> none;
      Wait(none, Deadline::After(kPoll));
    } else if (socket->is_open()) {
      AnswerOne(*socket);
    }
  }
}

void RecorderExchange::AnswerOne(const Socket& socket) const {
  const Deadline deadline = Deadline::After(kTimeToAnswer);
  const absl::StatusOr<Query> question = ReceiveValue<Query>(socket, deadline);
  if (!question.ok() || question->token != token_ || question->num_bytes > kMaxVerdictBytes) return;
  const absl::StatusOr<std::string> contents = socket.ReceiveExactly(question->num_bytes, deadline);
  if (!contents.ok()) return;
  std::string answer;
  if (question->kind == kRecorder) {
    absl::StatusOr<std::string> recorder = answers_.recorder();
    if (!recorder.ok()) return;
    answer = *std::move(recorder);
  } else if (question->kind == kTurn) {
    answer = answers_.take_turn() ? "1" : "0";
  } else if (question->kind == kVerdict) {
    answers_.set_verdict(*contents);
  }
  const uint64_t size = answer.size();
  if (socket.SendAll(BytesOf(size), deadline).ok()) socket.SendAll(answer, deadline).IgnoreError();
}

absl::StatusOr<std::string> RecorderExchange::Ask(int rank, uint64_t kind, const std::string& contents,
                                                  Deadline deadline) const {
  const Peer& peer = peers_[rank];
  const auto ask = [&]() -> absl::StatusOr<std::string> {
    if (peer.port == 0) return absl::UnavailableError("does not listen");
    OTT_ASSIGN_OR_RETURN(const SocketAddress address, ResolveAddress(peer.host, peer.port));
    OTT_ASSIGN_OR_RETURN(const Socket socket, Socket::Connect(address, deadline));
    const Query question{token_, kind, contents.size()};
    OTT_RETURN_IF_ERROR(socket.SendAll(BytesOf(question), deadline));
    OTT_RETURN_IF_ERROR(socket.SendAll(contents, deadline));
    OTT_ASSIGN_OR_RETURN(const auto size, ReceiveValue<uint64_t>(socket, deadline));
    if (size > FlightRecorder::kMaxBytes) return absl::DataLossError("its answer is no recorder");
    return socket.ReceiveExactly(size, deadline);
  };
  absl::StatusOr<std::string> answer = ask();
  if (answer.ok()) return answer;
  return absl::Status(answer.status().code(),
                      absl::StrCat(FormatRank(rank, peer.host), " at port ", peer.port, ": ",
                                   std::string(answer.status().message())));
}

absl::StatusOr<std::string> RecorderExchange::AskForRecorder(int rank, Deadline deadline) const {
  return Ask(rank, kRecorder, "", deadline);
}

absl::StatusOr<bool> RecorderExchange::AskForTurn(int rank, Deadline deadline) const {
  OTT_ASSIGN_OR_RETURN(const std::string answer, Ask(rank, kTurn, "", deadline));
  return answer == "1";
}

absl::Status RecorderExchange::SendVerdict(int rank, const std::string& verdict, Deadline deadline) const {
  return Ask(rank, kVerdict, verdict, deadline).status();
}

}  // namespace ott
