#include "ott/dist/comm/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dist/comm/nccl_gather_buffer.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/cuda_status.h"
#include "ott/dist/comm/communicator_transport.h"
#include "ott/dist/comm/forwarding_communicator.h"
#include "ott/dist/comm/message_communicator.h"
#include "ott/dist/comm/other_calls.h"
#include "ott/dist/comm/rank_list.h"

#define OTT_RETURN_IF_CUDA_ERROR(call)                                                   \
  do {                                                                                   \
    if (const cudaError_t ott_code = (call); ott_code != cudaSuccess)                    \
      return Error(absl::StatusCode::kUnavailable, #call, cudaGetErrorString(ott_code)); \
  } while (false)

namespace ott {
namespace {

void Pause() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

// A rank that is gone must not keep this one from ending.
constexpr auto kTimeToEnd = std::chrono::seconds(2);

constexpr size_t kBlockBytes = NcclGatherBuffer::kBlockBytes;
// Each rank brings so much to every rank at first: the size, and often all.
constexpr size_t kFirstBlockBytes = 64;

// For what other ranks called, where a collective failed.
constexpr auto kMostPatience = std::chrono::seconds(1);
// The tag, beside those of DescribeCalls, by which ranks hear that another one aborted. Rank 0 passes it on.
constexpr int kNcclEnded = kTagsOfOtherCalls;
// It looks so often whether NCCL has finished before it listens for that, too.
constexpr int kPollsBeforeListening = 50;

std::optional<ncclDataType_t> ToNccl(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat16:
      return ncclFloat16;
    case DType::kBFloat16:
      return ncclBfloat16;
    case DType::kInt8:
      return ncclInt8;
    case DType::kInt32:
      return ncclInt32;
    case DType::kInt64:
      return ncclInt64;
    case DType::kUInt8:
      return ncclUint8;
    case DType::kUInt32:
      return ncclUint32;
    case DType::kUInt64:
      return ncclUint64;
    default:
      return std::nullopt;
  }
}

// By Reduction.
constexpr ncclRedOp_t kOfNccl[] = {ncclSum, ncclMin, ncclMax};
constexpr const char* kReductions[] = {"sum", "minimum", "maximum"};

class NcclCommunicatorImpl final : public ForwardingCommunicator<NcclCommunicator> {
 public:
  NcclCommunicatorImpl(std::shared_ptr<Communicator> control, int device)
      : control_(std::move(control)),
        device_(device),
        self_(std::make_shared<NcclCommunicatorImpl*>(this)),
        gathered_(control_->rank(), control_->size()) {}
  ~NcclCommunicatorImpl() override {
    *self_ = nullptr;
    End();
    const internal::CudaDeviceScope scope(device_);
    // An aborted gather may still write there.
    if (stream_ != nullptr) cudaStreamSynchronize(stream_);
    gathered_.Free();
    if (host_block_ != nullptr) cudaFreeHost(host_block_);
    if (block_ != nullptr) cudaFree(block_);
    if (words_ != nullptr) cudaFree(words_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  absl::Status Connect(Deadline deadline) {
    OTT_RETURN_IF_ERROR(AgreeThatAllHaveDevices(deadline));
    OTT_ASSIGN_OR_RETURN(for_failures_, control_->Split(0, 0, deadline));
    OTT_RETURN_IF_ERROR(MakeGroupOfAll(deadline));
    Count("CreateNcclCommunicator", "");
    const internal::CudaDeviceScope scope(device_);
    OTT_RETURN_IF_ERROR(scope.status());
    ncclUniqueId id{};
    std::string bytes;
    if (rank() == 0) {
      const ncclResult_t result = ncclGetUniqueId(&id);
      // An empty answer tells the others, too.
      if (result == ncclSuccess) bytes.assign(id.internal, sizeof(id.internal));
    }
    OTT_RETURN_IF_ERROR(control_->Broadcast(0, &bytes, deadline));
    if (bytes.size() != sizeof(id.internal)) {
      return Error(absl::StatusCode::kUnavailable, "ncclGetUniqueId",
                   "failed on rank 0; see NCCL_DEBUG=INFO");
    }
    std::memcpy(id.internal, bytes.data(), bytes.size());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    OTT_RETURN_IF_ERROR(Finish("ncclCommInitRankConfig",
                               ncclCommInitRankConfig(&comm_, size(), id, rank(), &config), deadline));
    const std::lock_guard lock(mutex_);
    return GatherEverywhere("", deadline).status();
  }

  absl::StatusOr<bool> AreEqual(absl::Span<const uint64_t> words, Deadline deadline) override {
    OTT_CHECK(words.size() <= kMaxWords) << words.size() << " words";
    const std::lock_guard lock(mutex_);
    OTT_RETURN_IF_ERROR(CheckConnected("AreEqual"));
    Count("AreEqual", absl::StrCat(words.size(), " words"));
    const internal::CudaDeviceScope scope(device_);
    OTT_RETURN_IF_ERROR(scope.status());
    OTT_RETURN_IF_ERROR(Prepare());
    // The largest of a word and the largest of its complement belong together where all are the same.
    std::vector<uint64_t> largest(words.begin(), words.end());
    for (const uint64_t word : words) largest.push_back(~word);
    const size_t num_bytes = largest.size() * sizeof(uint64_t);
    std::memcpy(host_block_, largest.data(), num_bytes);
    OTT_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(words_, host_block_, num_bytes, cudaMemcpyHostToDevice, stream_));
    OTT_RETURN_IF_ERROR(OnStream(
        "ncclAllReduce", stream_,
        [&](cudaStream_t s) {
          return ncclAllReduce(words_, words_, largest.size(), ncclUint64, ncclMax, comm_, s);
        },
        deadline));
    OTT_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(host_block_, words_, num_bytes, cudaMemcpyDeviceToHost, stream_));
    OTT_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_));
    std::memcpy(largest.data(), host_block_, num_bytes);
    for (size_t i = 0; i < words.size(); ++i) {
      if (largest[i] != ~largest[words.size() + i]) return false;
    }
    return true;
  }

  absl::Status AllReduceOnDevice(Reduction reduction, DType dtype, void* values, int64_t count, void* stream,
                                 Deadline deadline) override {
    const std::optional<ncclDataType_t> type = ToNccl(dtype);
    if (!type) {
      return Error(absl::StatusCode::kInvalidArgument, "AllReduceOnDevice",
                   absl::StrCat("NCCL cannot reduce ", std::string(Name(dtype))));
    }
    if (reduction != Reduction::kSum && IsFloatingPoint(dtype)) {
      return Error(absl::StatusCode::kInvalidArgument, "AllReduceOnDevice",
                   absl::StrCat("NCCL's minimum and maximum of ", std::string(Name(dtype)),
                                " may drop NaN; reduce on the host, or sum"));
    }
    const std::lock_guard lock(mutex_);
    Count("AllReduceOnDevice", absl::StrCat(kReductions[static_cast<int>(reduction)], " of ", count, " ",
                                            std::string(Name(dtype))));
    return OnStream(
        "ncclAllReduce", stream,
        [&](cudaStream_t s) {
          return ncclAllReduce(values, values, count, *type, kOfNccl[static_cast<int>(reduction)], comm_, s);
        },
        deadline);
  }

  absl::Status BroadcastOnDevice(int root, void* bytes, int64_t num_bytes, void* stream,
                                 Deadline deadline) override {
    const std::lock_guard lock(mutex_);
    Count("BroadcastOnDevice", absl::StrCat(num_bytes, " bytes from rank ", root));
    return OnStream(
        "ncclBroadcast", stream,
        [&](cudaStream_t s) { return ncclBroadcast(bytes, bytes, num_bytes, ncclUint8, root, comm_, s); },
        deadline);
  }

  absl::Status BeginGather(std::string_view bytes, bool all_wait, Deadline deadline) override {
    const std::lock_guard lock(mutex_);
    OTT_RETURN_IF_ERROR(CheckConnected("BeginGather"));
    const internal::CudaDeviceScope scope(device_);
    OTT_RETURN_IF_ERROR(scope.status());
    if (std::exchange(gathers_, false)) {
      OTT_RETURN_IF_ERROR(PollGather(deadline, deadline).status());
      gathered_.MakeRoom();
    }
    Count("BeginGather", "");
    mine_.assign(bytes);
    all_wait_ = all_wait;
    absl::Status begun = Prepare();
    if (begun.ok()) begun = EnqueueGather(deadline);
    // Other ranks wait for what this one did not enqueue.
    if (!begun.ok()) GiveUp(begun);
    gathers_ = begun.ok();
    return begun;
  }

  absl::StatusOr<std::optional<std::vector<std::string>>> TakeGathered(Deadline deadline,
                                                                       Deadline last) override {
    const std::lock_guard lock(mutex_);
    OTT_CHECK(gathers_) << "no gather was begun";
    const internal::CudaDeviceScope scope(device_);
    absl::StatusOr<bool> has_come = PollGather(deadline, last);
    // Ranks look at different moments: only where all wait do they all enqueue it again.
    while (has_come.ok() && *has_come && all_wait_ && gathered_.MakeRoom()) {
      const absl::Status again = EnqueueGather(last);
      has_come = again.ok() ? PollGather(deadline, last) : absl::StatusOr<bool>(again);
    }
    if (has_come.ok() && !*has_come) return std::nullopt;
    gathers_ = false;
    if (!has_come.ok()) GiveUp(has_come.status());
    OTT_RETURN_IF_ERROR(has_come.status());
    std::vector<std::string> gathered = gathered_.Gathered();
    gathered_.MakeRoom();
    return gathered;
  }

  absl::StatusOr<std::vector<std::string>> AllGatherByNccl(std::string_view bytes,
                                                           Deadline deadline) override {
    const std::lock_guard lock(mutex_);
    OTT_RETURN_IF_ERROR(CheckConnected("AllGatherByNccl"));
    Count("AllGatherByNccl", "");
    return GatherEverywhere(bytes, deadline);
  }

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  const std::string& host(int rank) const override { return control_->host(rank); }

 private:
  Communicator& To() const override { return *group_; }

  absl::Status Error(absl::StatusCode code, std::string_view call, std::string_view what) const {
    return absl::Status(code, absl::StrCat(FormatRank(rank(), host(rank())), ": ", std::string(call), ": ",
                                           std::string(what)));
  }

  absl::Status CheckDevice() const {
    OTT_RETURN_IF_CUDA_ERROR(cudaSetDevice(device_));
    OTT_RETURN_IF_CUDA_ERROR(cudaFree(nullptr));
    return absl::OkStatus();
  }

  // Its messages are those of control; its collectives are NCCL's, once that is connected and as long as it
  // works and this object lives, which groups may outlive.
  absl::Status MakeGroupOfAll(Deadline deadline) {
    OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> for_messages, control_->Split(0, 0, deadline));
    std::vector<std::string> hosts;
    for (int rank = 0; rank < size(); ++rank) hosts.push_back(host(rank));
    group_ = MakeMessageCommunicator(
        MakeTransportOver(std::move(for_messages)), MakeGroup(std::move(hosts)),
        [self = self_](std::string_view bytes, Deadline until) -> absl::StatusOr<std::vector<std::string>> {
          if (*self == nullptr) return absl::FailedPreconditionError("NCCL's communicator is destroyed");
          return (*self)->AllGatherByNccl(bytes, until);
        });
    return absl::OkStatus();
  }

  // A rank that could not go on would leave the others waiting in NCCL.
  absl::Status AgreeThatAllHaveDevices(Deadline deadline) {
    const absl::Status mine = CheckDevice();
    OTT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                         control_->AllGather(std::string(mine.message()), deadline));
    for (const std::string& problem : all) {
      if (!problem.empty()) {
        return absl::FailedPreconditionError(
            absl::StrCat(problem, "; NCCL needs a usable GPU on every rank"));
      }
    }
    return absl::OkStatus();
  }

  // Polls NCCL's communicator until what was started is no longer in progress.
  absl::Status Finish(std::string_view call, ncclResult_t result, Deadline deadline) {
    while (result == ncclInProgress) {
      if (deadline.Passed()) return Fail(absl::StatusCode::kDeadlineExceeded, call, Late(deadline), deadline);
      Pause();
      if (const ncclResult_t poll = ncclCommGetAsyncError(comm_, &result); poll != ncclSuccess) result = poll;
    }
    if (result == ncclSuccess) return absl::OkStatus();
    return Fail(absl::StatusCode::kUnavailable, call, ncclGetErrorString(result), deadline);
  }

  template <typename Start>
  absl::Status OnStream(std::string_view call, void* stream, Start start, Deadline deadline) {
    OTT_RETURN_IF_ERROR(CheckConnected(call));
    const internal::CudaDeviceScope scope(device_);
    OTT_RETURN_IF_ERROR(scope.status());
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    OTT_RETURN_IF_ERROR(Finish(call, start(cuda_stream), deadline));
    OTT_ASSIGN_OR_RETURN(const bool has_run, Poll(call, cuda_stream, deadline, deadline));
    if (has_run) return absl::OkStatus();
    return Fail(absl::StatusCode::kDeadlineExceeded, call, Late(deadline), deadline);
  }

  // Returns true if the stream's work is done by `deadline`. `last` is the deadline of the whole collective.
  absl::StatusOr<bool> Poll(std::string_view call, cudaStream_t stream, Deadline deadline, Deadline last) {
    cudaError_t state = cudaStreamQuery(stream);
    int num_polls = 0;
    for (; state == cudaErrorNotReady; state = cudaStreamQuery(stream)) {
      ncclResult_t result = ncclSuccess;
      ncclCommGetAsyncError(comm_, &result);
      if (result != ncclSuccess && result != ncclInProgress) {
        return Fail(absl::StatusCode::kUnavailable, call, ncclGetErrorString(result), last);
      }
      if (deadline.Passed()) return false;
      if (listens_ && ++num_polls > kPollsBeforeListening && AnotherRankAborted()) {
        return Fail(absl::StatusCode::kUnavailable, call, "another rank ended NCCL's communicator", last);
      }
      Pause();
    }
    if (state == cudaSuccess) return true;
    return Fail(absl::StatusCode::kUnavailable, call, cudaGetErrorString(state), last);
  }

  absl::Status CheckConnected(std::string_view call) const {
    if (comm_ != nullptr) return absl::OkStatus();
    return Error(absl::StatusCode::kFailedPrecondition, call,
                 absl::StrCat("an earlier collective failed and ended NCCL's communicator: ", ended_by_));
  }

  absl::Status Prepare() {
    if (stream_ == nullptr) {
      OTT_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
    if (words_ == nullptr) {
      OTT_RETURN_IF_CUDA_ERROR(
          cudaMalloc(reinterpret_cast<void**>(&words_), 2 * kMaxWords * sizeof(uint64_t)));
    }
    const size_t num_bytes = (1 + static_cast<size_t>(size())) * kBlockBytes;
    if (block_ == nullptr) {
      OTT_RETURN_IF_CUDA_ERROR(cudaMalloc(reinterpret_cast<void**>(&block_), num_bytes));
    }
    if (host_block_ == nullptr) {
      OTT_RETURN_IF_CUDA_ERROR(
          cudaHostAlloc(reinterpret_cast<void**>(&host_block_), num_bytes, cudaHostAllocDefault));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> GatherEverywhere(std::string_view bytes, Deadline deadline) {
    listens_ = true;
    absl::StatusOr<std::vector<std::string>> all = GatherBlocks(bytes, deadline);
    listens_ = false;
    // Other ranks wait for what this one did not enqueue.
    if (!all.ok()) GiveUp(all.status());
    return all;
  }

  absl::StatusOr<std::vector<std::string>> GatherBlocks(std::string_view bytes, Deadline deadline) {
    const internal::CudaDeviceScope scope(device_);
    OTT_RETURN_IF_ERROR(scope.status());
    OTT_RETURN_IF_ERROR(Prepare());
    const auto num_ranks = static_cast<size_t>(size());
    const uint64_t size = bytes.size();
    constexpr uint64_t kInFirst = kFirstBlockBytes - sizeof(size);
    std::memcpy(host_block_, &size, sizeof(size));
    std::memcpy(host_block_ + sizeof(size), bytes.data(), std::min(size, kInFirst));
    OTT_RETURN_IF_ERROR(GatherBlock(kFirstBlockBytes, deadline));
    std::vector<uint64_t> sizes(num_ranks);
    std::vector<std::string> all(num_ranks);
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      const char* const theirs = host_block_ + kBlockBytes + rank * kFirstBlockBytes;
      std::memcpy(&sizes[rank], theirs, sizeof(uint64_t));
      all[rank].reserve(sizes[rank]);
      all[rank].append(theirs + sizeof(uint64_t), std::min(sizes[rank], kInFirst));
    }
    const uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
    for (uint64_t at = kInFirst; at < largest; at += kBlockBytes) {
      const uint64_t block = std::min<uint64_t>(kBlockBytes, largest - at);
      if (at < size) std::memcpy(host_block_, bytes.data() + at, std::min(block, size - at));
      OTT_RETURN_IF_ERROR(GatherBlock(block, deadline));
      for (size_t rank = 0; rank < num_ranks; ++rank) {
        if (at >= sizes[rank]) continue;
        all[rank].append(host_block_ + kBlockBytes + rank * block, std::min(block, sizes[rank] - at));
      }
    }
    return all;
  }

  // So many bytes at host_block_ of each rank, to behind the block of this rank on every rank.
  absl::Status GatherBlock(size_t num_bytes, Deadline deadline) {
    OTT_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(block_, host_block_, num_bytes, cudaMemcpyHostToDevice, stream_));
    OTT_RETURN_IF_ERROR(OnStream(
        "ncclAllGather", stream_,
        [&](cudaStream_t s) {
          return ncclAllGather(block_, block_ + kBlockBytes, num_bytes, ncclUint8, comm_, s);
        },
        deadline));
    OTT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(host_block_ + kBlockBytes, block_ + kBlockBytes,
                                             num_bytes * static_cast<size_t>(size()), cudaMemcpyDeviceToHost,
                                             stream_));
    OTT_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_));
    return absl::OkStatus();
  }

  // The largest of the ranks' sizes, and as many blocks of each rank as there is room for.
  absl::Status EnqueueGather(Deadline deadline) {
    const internal::CudaDeviceScope scope(device_);
    OTT_RETURN_IF_ERROR(scope.status());
    OTT_RETURN_IF_CUDA_ERROR(gathered_.Allocate());
    gathered_.SetMine(mine_);
    OTT_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(words_, gathered_.size(), sizeof(uint64_t), cudaMemcpyHostToDevice, stream_));
    OTT_RETURN_IF_ERROR(Finish(
        "ncclAllReduce", ncclAllReduce(words_, words_, 1, ncclUint64, ncclMax, comm_, stream_), deadline));
    OTT_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(gathered_.largest(), words_, sizeof(uint64_t), cudaMemcpyDeviceToHost, stream_));
    for (size_t block = 0; block < gathered_.num_blocks(); ++block) {
      OTT_RETURN_IF_CUDA_ERROR(
          cudaMemcpyAsync(block_, gathered_.Mine(block), kBlockBytes, cudaMemcpyHostToDevice, stream_));
      OTT_RETURN_IF_ERROR(Finish(
          "ncclAllGather",
          ncclAllGather(block_, block_ + kBlockBytes, kBlockBytes, ncclUint8, comm_, stream_), deadline));
      if (rank() != 0) continue;
      OTT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(gathered_.All(block), block_ + kBlockBytes,
                                               kBlockBytes * static_cast<size_t>(size()),
                                               cudaMemcpyDeviceToHost, stream_));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> PollGather(Deadline deadline, Deadline last) {
    OTT_RETURN_IF_ERROR(CheckConnected("TakeGathered"));
    const internal::CudaDeviceScope scope(device_);
    OTT_RETURN_IF_ERROR(scope.status());
    const bool ends_here = last.time() <= deadline.time();
    OTT_ASSIGN_OR_RETURN(const bool has_come,
                         Poll("ncclAllGather", stream_, ends_here ? last : deadline, last));
    if (!has_come && last.Passed()) {
      return Fail(absl::StatusCode::kDeadlineExceeded, "ncclAllGather", Late(last), last);
    }
    return has_come;
  }

  static std::string Late(Deadline deadline) {
    return absl::StrCat("not finished within ", deadline.Seconds(), " s");
  }

  // Counts a call, and keeps what this rank says if the collective fails.
  void Count(std::string_view call, std::string_view detail) {
    latest_call_ = absl::StrCat(std::string(call), " #", num_calls_++);
    if (!detail.empty()) absl::StrAppend(&latest_call_, " (", std::string(detail), ")");
  }

  absl::Status Fail(absl::StatusCode code, std::string_view call, std::string_view what, Deadline deadline) {
    GiveUp(Error(code, call, what));
    if (for_failures_ == nullptr) return Error(code, call, what);
    if (listens_) {
      // Messages, which come next, find out who is missing.
      PostCall(*for_failures_, latest_call_);
      return Error(code, call, what);
    }
    const auto patience = std::min<std::chrono::nanoseconds>(
        kMostPatience, std::chrono::nanoseconds(static_cast<int64_t>(deadline.Seconds() * 1e9 / 4)));
    return Error(
        code, call,
        absl::StrCat(std::string(what), "; ", DescribeCalls(*for_failures_, latest_call_, patience)));
  }

  void GiveUp(const absl::Status& why) {
    if (comm_ == nullptr) return;
    Abort();
    ended_by_ = std::string(why.message());
    if (for_failures_ == nullptr) return;
    const int end = rank() == 0 ? size() : 1;
    for (int to = rank() == 0 ? 1 : 0; to < end; ++to) for_failures_->Post(to, kNcclEnded, "").IgnoreError();
  }

  // Looks at one other rank a time, as there may be many.
  bool AnotherRankAborted() {
    if (for_failures_ == nullptr || size() == 1) return false;
    listens_to_ = rank() == 0 ? 1 + listens_to_ % (size() - 1) : 0;
    return for_failures_->Receive(listens_to_, kNcclEnded, Deadline::Now()).ok();
  }

  // In good order where nothing failed: NCCL then has what other ranks still read from this one sent.
  void End() {
    if (comm_ == nullptr) return;
    for_failures_ = nullptr;  // nobody is to hear of it
    const Deadline deadline = Deadline::After(kTimeToEnd);
    if (!Finish("ncclCommFinalize", ncclCommFinalize(comm_), deadline).ok()) return;  // and aborted
    ncclCommDestroy(comm_);
    comm_ = nullptr;
  }

  void Abort() {
    if (comm_ != nullptr) ncclCommAbort(comm_);
    comm_ = nullptr;
  }

  const std::shared_ptr<Communicator> control_;
  const int device_;
  const std::shared_ptr<NcclCommunicatorImpl*> self_;  // null once it is destroyed
  std::unique_ptr<Communicator> group_;
  std::mutex mutex_;  // NCCL's functions are called by one thread at a time.
  ncclComm_t comm_ = nullptr;
  std::unique_ptr<Communicator> for_failures_;
  int64_t num_calls_ = 0;
  std::string latest_call_;
  std::string ended_by_;
  // True if the collective that is under way ends when another rank has ended NCCL.
  bool listens_ = false;
  int listens_to_ = 0;
  // Used by AreEqual() and gathers.
  cudaStream_t stream_ = nullptr;
  uint64_t* words_ = nullptr;
  char* block_ = nullptr;       // this rank's, then those of all ranks
  char* host_block_ = nullptr;  // the same, in pinned memory, of what has come when a call returns
  // Used by gathers at rank 0.
  bool gathers_ = false;
  bool all_wait_ = false;
  std::string mine_;
  NcclGatherBuffer gathered_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> CreateNcclCommunicator(
    std::shared_ptr<Communicator> control, const NcclOptions& options) {
  auto communicator = std::make_unique<NcclCommunicatorImpl>(std::move(control), options.device);
  OTT_RETURN_IF_ERROR(communicator->Connect(Deadline::After(options.timeout)));
  return communicator;
}

}  // namespace ott
