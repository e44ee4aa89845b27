#include "ott/dist/comm/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/cuda_status.h"
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

ncclRedOp_t ToNccl(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMin:
      return ncclMin;
    case Reduction::kMax:
      return ncclMax;
    case Reduction::kSum:
      break;
  }
  return ncclSum;
}

class NcclCommunicatorImpl final : public NcclCommunicator {
 public:
  NcclCommunicatorImpl(std::shared_ptr<Communicator> control, int device)
      : control_(std::move(control)), device_(device) {}
  ~NcclCommunicatorImpl() override {
    End();
    const internal::CudaDeviceScope scope(device_);
    if (words_ != nullptr) cudaFree(words_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  absl::Status Connect(Deadline deadline) {
    OTT_RETURN_IF_ERROR(AgreeThatAllHaveDevices(deadline));
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
    return Finish("ncclCommInitRankConfig", ncclCommInitRankConfig(&comm_, size(), id, rank(), &config),
                  deadline);
  }

  absl::StatusOr<bool> AreEqual(absl::Span<const uint64_t> words, Deadline deadline) override {
    OTT_CHECK(words.size() <= kMaxWords) << words.size() << " words";
    const std::lock_guard lock(mutex_);
    OTT_RETURN_IF_ERROR(CheckConnected("AreEqual"));
    const internal::CudaDeviceScope scope(device_);
    OTT_RETURN_IF_ERROR(scope.status());
    OTT_RETURN_IF_ERROR(PrepareWords());
    // The largest of a word and the largest of its complement belong together where all are the same.
    std::vector<uint64_t> mine(words.begin(), words.end());
    for (const uint64_t word : words) mine.push_back(~word);
    const size_t num_bytes = mine.size() * sizeof(uint64_t);
    OTT_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(words_, mine.data(), num_bytes, cudaMemcpyHostToDevice, stream_));
    OTT_RETURN_IF_ERROR(OnStream(
        "ncclAllReduce", stream_,
        [&](cudaStream_t s) {
          return ncclAllReduce(words_, words_, mine.size(), ncclUint64, ncclMax, comm_, s);
        },
        deadline));
    std::vector<uint64_t> largest(mine.size());
    OTT_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(largest.data(), words_, num_bytes, cudaMemcpyDeviceToHost, stream_));
    OTT_RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_));
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
    return OnStream(
        "ncclAllReduce", stream,
        [&](cudaStream_t s) {
          return ncclAllReduce(values, values, count, *type, ToNccl(reduction), comm_, s);
        },
        deadline);
  }

  absl::Status BroadcastOnDevice(int root, void* bytes, int64_t num_bytes, void* stream,
                                 Deadline deadline) override {
    const std::lock_guard lock(mutex_);
    return OnStream(
        "ncclBroadcast", stream,
        [&](cudaStream_t s) { return ncclBroadcast(bytes, bytes, num_bytes, ncclUint8, root, comm_, s); },
        deadline);
  }

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  const std::string& host(int rank) const override { return control_->host(rank); }
  absl::Status Post(int to, int tag, std::string_view bytes) override {
    return control_->Post(to, tag, bytes);
  }
  absl::Status Flush(int tag, Deadline deadline) override { return control_->Flush(tag, deadline); }
  absl::Status Send(int to, int tag, std::string_view bytes, Deadline deadline) override {
    return control_->Send(to, tag, bytes, deadline);
  }
  absl::StatusOr<std::string> Receive(int from, int tag, Deadline deadline) override {
    return control_->Receive(from, tag, deadline);
  }
  absl::Status Broadcast(int root, std::string* bytes, Deadline deadline) override {
    return control_->Broadcast(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<std::string>> Gather(int root, std::string_view bytes,
                                                  Deadline deadline) override {
    return control_->Gather(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GatherAvailable(int root, std::string_view bytes,
                                                                           Deadline deadline) override {
    return control_->GatherAvailable(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes, Deadline deadline) override {
    return control_->AllGather(bytes, deadline);
  }
  absl::Status AllReduce(const Merge& merge, std::string* bytes, Deadline deadline) override {
    return control_->AllReduce(merge, bytes, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<double> values, Deadline deadline) override {
    return control_->AllReduce(reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<float> values, Deadline deadline) override {
    return control_->AllReduce(reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<int64_t> values, Deadline deadline) override {
    return control_->AllReduce(reduction, values, deadline);
  }
  absl::Status Barrier(Deadline deadline) override { return control_->Barrier(deadline); }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    return control_->Split(color, key, deadline);
  }

 private:
  absl::Status Error(absl::StatusCode code, std::string_view call, std::string_view what) const {
    return absl::Status(code, absl::StrCat(FormatRank(rank(), host(rank())), ": ", std::string(call), ": ",
                                           std::string(what)));
  }

  absl::Status CheckDevice() const {
    OTT_RETURN_IF_CUDA_ERROR(cudaSetDevice(device_));
    OTT_RETURN_IF_CUDA_ERROR(cudaFree(nullptr));
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
      if (deadline.Passed()) return Fail(absl::StatusCode::kDeadlineExceeded, call, Late(deadline));
      Pause();
      if (const ncclResult_t poll = ncclCommGetAsyncError(comm_, &result); poll != ncclSuccess) result = poll;
    }
    if (result == ncclSuccess) return absl::OkStatus();
    return Fail(absl::StatusCode::kUnavailable, call, ncclGetErrorString(result));
  }

  template <typename Start>
  absl::Status OnStream(std::string_view call, void* stream, Start start, Deadline deadline) {
    OTT_RETURN_IF_ERROR(CheckConnected(call));
    const internal::CudaDeviceScope scope(device_);
    OTT_RETURN_IF_ERROR(scope.status());
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    OTT_RETURN_IF_ERROR(Finish(call, start(cuda_stream), deadline));
    cudaError_t state = cudaStreamQuery(cuda_stream);
    for (; state == cudaErrorNotReady; state = cudaStreamQuery(cuda_stream)) {
      ncclResult_t result = ncclSuccess;
      ncclCommGetAsyncError(comm_, &result);
      if (result != ncclSuccess && result != ncclInProgress) {
        return Fail(absl::StatusCode::kUnavailable, call, ncclGetErrorString(result));
      }
      if (deadline.Passed()) return Fail(absl::StatusCode::kDeadlineExceeded, call, Late(deadline));
      Pause();
    }
    if (state == cudaSuccess) return absl::OkStatus();
    return Fail(absl::StatusCode::kUnavailable, call, cudaGetErrorString(state));
  }

  absl::Status CheckConnected(std::string_view call) const {
    if (comm_ != nullptr) return absl::OkStatus();
    return Error(absl::StatusCode::kFailedPrecondition, call,
                 "an earlier device collective failed and ended NCCL's communicator");
  }

  absl::Status PrepareWords() {
    if (stream_ == nullptr) {
      OTT_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
    if (words_ == nullptr) {
      OTT_RETURN_IF_CUDA_ERROR(
          cudaMalloc(reinterpret_cast<void**>(&words_), 2 * kMaxWords * sizeof(uint64_t)));
    }
    return absl::OkStatus();
  }

  static std::string Late(Deadline deadline) {
    return absl::StrCat("not finished within ", deadline.Seconds(), " s; another rank is missing or slow");
  }

  absl::Status Fail(absl::StatusCode code, std::string_view call, std::string_view what) {
    const absl::Status error = Error(code, call, what);
    Abort();
    return error;
  }

  // In good order where nothing failed: NCCL then has what other ranks still read from this one sent.
  void End() {
    if (comm_ == nullptr) return;
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
  std::mutex mutex_;  // NCCL's functions are called by one thread at a time.
  ncclComm_t comm_ = nullptr;
  // Of AreEqual().
  cudaStream_t stream_ = nullptr;
  uint64_t* words_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclCommunicator>> CreateNcclCommunicator(
    std::shared_ptr<Communicator> control, const NcclOptions& options) {
  auto communicator = std::make_unique<NcclCommunicatorImpl>(std::move(control), options.device);
  OTT_RETURN_IF_ERROR(communicator->Connect(Deadline::After(options.timeout)));
  return communicator;
}

}  // namespace ott
