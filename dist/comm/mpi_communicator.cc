#include "ott/dist/comm/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/host_name.h"
#include "ott/dist/comm/mailbox.h"
#include "ott/dist/comm/message_communicator.h"

// Calls MPI and returns an error that says what was called, where and why it failed.
#define OTT_RETURN_IF_MPI_ERROR(rank, call)                                                           \
  do {                                                                                                \
    if (const int ott_code = (call); ott_code != MPI_SUCCESS) return MpiError(rank, #call, ott_code); \
  } while (false)

namespace ott {
namespace {

constexpr int kTag = 0;

absl::Status MpiError(int rank, std::string_view call, int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::UnavailableError(
      absl::StrCat("rank ", rank, ": ", std::string(call), ": ", std::string(text, length)));
}

// Finalises MPI if it was this library that initialised it.
class MpiSession {
 public:
  static absl::StatusOr<std::shared_ptr<MpiSession>> Start() {
    if (Finalized()) {
      return absl::FailedPreconditionError(
          "MPI was finalised already; make the communicator before MPI_Finalize");
    }
    int initialized = 0;
    MPI_Initialized(&initialized);
    int level = MPI_THREAD_SINGLE;
    if (!initialized) {
      if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
          code != MPI_SUCCESS) {
        return MpiError(-1, "MPI_Init_thread", code);
      }
    } else {
      MPI_Query_thread(&level);
    }
    return std::make_shared<MpiSession>(!initialized, level == MPI_THREAD_MULTIPLE);
  }

  MpiSession(bool started_here, bool any_thread) : started_here_(started_here), any_thread_(any_thread) {}
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession() {
    if (started_here_ && !is_abandoned_ && !Finalized()) MPI_Finalize();
  }

  // MPI_Finalize waits for all ranks, and some have not come.
  void Abandon() { is_abandoned_ = true; }

  static bool Finalized() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    return finalized != 0;
  }

  absl::Status CheckThread() const {
    if (any_thread_ || std::this_thread::get_id() == thread_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "MPI was initialised without MPI_THREAD_MULTIPLE, so only the thread that made the communicator may "
        "use it; call MPI_Init_thread(..., MPI_THREAD_MULTIPLE, ...)");
  }

 private:
  const bool started_here_;
  const bool any_thread_;
  bool is_abandoned_ = false;
  const std::thread::id thread_ = std::this_thread::get_id();
};

// Waits in small steps that leave the processor to others: first those that are ready, then everybody.
class Backoff {
 public:
  void Pause() {
    if (++num_pauses_ < 200) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(num_pauses_ < 2000 ? 20 : 200));
    }
  }

 private:
  int num_pauses_ = 0;
};

// A message: the channel, then the bytes. All have one MPI tag; what arrives is sorted by channel in the
// mailbox, so nothing is ever waited for that may not come, and no request has to be cancelled.
class MpiTransport final : public Transport {
 public:
  static absl::StatusOr<std::shared_ptr<MpiTransport>> Create(std::shared_ptr<MpiSession> session,
                                                              MPI_Comm parent, Deadline deadline) {
    int rank = 0;
    int size = 0;
    OTT_RETURN_IF_MPI_ERROR(-1, MPI_Comm_rank(parent, &rank));
    OTT_RETURN_IF_MPI_ERROR(rank, MPI_Comm_size(parent, &size));
    // Outlives this call where the deadline passes first: MPI still writes it then.
    auto comm = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
    MPI_Request request = MPI_REQUEST_NULL;
    OTT_RETURN_IF_MPI_ERROR(rank, MPI_Comm_idup(parent, comm.get(), &request));
    Backoff backoff;
    for (int done = 0;; backoff.Pause()) {
      OTT_RETURN_IF_MPI_ERROR(rank, MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done) break;
      if (deadline.Passed()) {
        comm.release();
        return absl::DeadlineExceededError(absl::StrCat("rank ", rank, " of ", size,
                                                        ": MPI_Comm_idup: not all ranks called it within ",
                                                        deadline.Seconds(), " s"));
      }
    }
    OTT_RETURN_IF_MPI_ERROR(rank, MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN));
    return std::make_shared<MpiTransport>(std::move(session), *comm, rank, size);
  }

  MpiTransport(std::shared_ptr<MpiSession> session, MPI_Comm comm, int rank, int size)
      : session_(std::move(session)), comm_(comm), rank_(rank), size_(size) {}

  ~MpiTransport() override {
    if (MpiSession::Finalized()) return;
    // A rank that takes nothing any more must not keep this one from ending.
    for (const Deadline deadline = Deadline::After(std::chrono::seconds(1));
         Progress().ok() && !leaving_.empty() && !deadline.Passed();) {
      std::this_thread::yield();
    }
    if (leaving_.empty() && arriving_.empty()) {
      MPI_Comm_free(&comm_);
    } else {
      // MPI still reads and writes them.
      new std::list<Leaving>(std::move(leaving_));
      new std::list<Arriving>(std::move(arriving_));
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return HostName(); }

  absl::Status Post(int to, Channel channel, std::string_view bytes) override {
    OTT_RETURN_IF_ERROR(session_->CheckThread());
    if (bytes.size() > INT_MAX - sizeof(Channel)) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank_, ": message of ", bytes.size(),
                                                     " bytes to rank ", to, ": MPI takes less than 2 GiB"));
    }
    Leaving& leaving = leaving_.emplace_back();
    leaving.channel = channel;
    leaving.message.reserve(sizeof(channel) + bytes.size());
    leaving.message.append(reinterpret_cast<const char*>(&channel), sizeof(channel));
    leaving.message.append(bytes);
    const int code = MPI_Isend(leaving.message.data(), static_cast<int>(leaving.message.size()), MPI_BYTE, to,
                               kTag, comm_, &leaving.request);
    if (code != MPI_SUCCESS) {
      leaving_.pop_back();
      return MpiError(rank_, absl::StrCat("MPI_Isend to rank ", to), code);
    }
    return Progress();
  }

  absl::Status Flush(Channel channel, Deadline deadline) override {
    OTT_RETURN_IF_ERROR(session_->CheckThread());
    const auto on_channel = [&](const Leaving& leaving) { return leaving.channel == channel; };
    for (Backoff backoff;; backoff.Pause()) {
      OTT_RETURN_IF_ERROR(Progress());
      if (std::none_of(leaving_.begin(), leaving_.end(), on_channel)) return absl::OkStatus();
      if (deadline.Passed()) return absl::DeadlineExceededError("not sent");
    }
  }

  absl::StatusOr<std::string> Receive(int from, Channel channel, Deadline deadline) override {
    OTT_RETURN_IF_ERROR(session_->CheckThread());
    for (Backoff backoff;; backoff.Pause()) {
      OTT_RETURN_IF_ERROR(Progress());
      if (std::optional<std::string> bytes = mailbox_.Take(from, channel)) return *std::move(bytes);
      if (deadline.Passed()) return absl::DeadlineExceededError("nothing received");
    }
  }

  void DropBefore(Channel channel) override { mailbox_.DropBefore(channel); }

 private:
  struct Leaving {
    Channel channel;
    std::string message;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  struct Arriving {
    int from = 0;
    std::string message;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  // Moves on whatever can move.
  absl::Status Progress() {
    for (auto leaving = leaving_.begin(); leaving != leaving_.end();) {
      int done = 0;
      OTT_RETURN_IF_MPI_ERROR(rank_, MPI_Test(&leaving->request, &done, MPI_STATUS_IGNORE));
      leaving = done ? leaving_.erase(leaving) : std::next(leaving);
    }
    while (true) {
      OTT_ASSIGN_OR_RETURN(const bool started, StartReceiving());
      if (!started) break;
    }
    return Deliver();
  }

  absl::StatusOr<bool> StartReceiving() {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    OTT_RETURN_IF_MPI_ERROR(rank_, MPI_Improbe(MPI_ANY_SOURCE, kTag, comm_, &found, &message, &status));
    if (!found) return false;
    int size = 0;
    OTT_RETURN_IF_MPI_ERROR(rank_, MPI_Get_count(&status, MPI_BYTE, &size));
    Arriving& arriving = arriving_.emplace_back();
    arriving.from = status.MPI_SOURCE;
    arriving.message.resize(size);
    OTT_RETURN_IF_MPI_ERROR(rank_,
                            MPI_Imrecv(arriving.message.data(), size, MPI_BYTE, &message, &arriving.request));
    return true;
  }

  // In order of sending: a short message may have arrived before the long one in front of it.
  absl::Status Deliver() {
    std::vector<int> unfinished;
    for (auto arriving = arriving_.begin(); arriving != arriving_.end();) {
      int done = 0;
      if (std::find(unfinished.begin(), unfinished.end(), arriving->from) == unfinished.end()) {
        OTT_RETURN_IF_MPI_ERROR(rank_, MPI_Test(&arriving->request, &done, MPI_STATUS_IGNORE));
        if (!done) unfinished.push_back(arriving->from);
      }
      if (!done) {
        ++arriving;
        continue;
      }
      Channel channel;
      std::memcpy(&channel, arriving->message.data(), sizeof(channel));
      arriving->message.erase(0, sizeof(channel));
      mailbox_.Put(arriving->from, channel, std::move(arriving->message));
      arriving = arriving_.erase(arriving);
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<MpiSession> session_;
  MPI_Comm comm_;
  const int rank_;
  const int size_;
  std::list<Leaving> leaving_;
  std::list<Arriving> arriving_;  // in the order in which MPI matched them
  Mailbox mailbox_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateMpiCommunicator(const MpiOptions& options) {
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<MpiSession> session, MpiSession::Start());
  const MPI_Comm parent = options.communicator ? MPI_Comm_f2c(*options.communicator) : MPI_COMM_WORLD;
  const Deadline deadline = Deadline::After(options.timeout);
  absl::StatusOr<std::shared_ptr<MpiTransport>> transport = MpiTransport::Create(session, parent, deadline);
  if (!transport.ok()) {
    session->Abandon();
    return transport.status();
  }
  absl::StatusOr<std::unique_ptr<Communicator>> ranks =
      MakeMessageCommunicator(std::shared_ptr<Transport>(*std::move(transport)), deadline);
  if (!ranks.ok()) session->Abandon();
  return ranks;
}

}  // namespace ott
