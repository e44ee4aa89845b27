#include "ott/core/tensor/copy_stream.h"

#include <map>
#include <mutex>

#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/cuda_status.h"

namespace ott::internal {

absl::StatusOr<cudaStream_t> CopyStream(int ordinal) {
  static std::mutex mutex;
  static auto* const streams = new std::map<int, cudaStream_t>;
  const std::lock_guard lock(mutex);
  if (const auto found = streams->find(ordinal); found != streams->end()) return found->second;
  cudaStream_t stream = nullptr;
  OTT_RETURN_IF_ERROR(
      FromCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
  streams->emplace(ordinal, stream);
  return stream;
}

}  // namespace ott::internal
