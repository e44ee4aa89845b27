// Does what each function of the stand-in for the CUDA runtime does first.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_CALL_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_CALL_H_

#include <cuda_runtime_api.h>

#include <mutex>

#include "third_party/cuda/testing/stand_in_graph.h"
#include "third_party/cuda/testing/stand_in_machine.h"

namespace ott::cuda_stand_in {

inline thread_local int current_device = 0;
inline thread_local cudaError_t last_error = cudaSuccess;

inline cudaError_t Remember(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

// A function of the API: body(machine, lock) runs with the machine's mutex held.
template <typename Body>
cudaError_t Call(const char* function, Body body, bool is_release = false, int device = current_device) {
  Machine& machine = Machine::Get();
  const TracedCall traced(function);
  cudaError_t error = machine.BeginCall(function, is_release, device);
  // A release releases, whatever the answer.
  if (error != cudaSuccess && !(is_release && machine.num_devices() > 0)) return Remember(error);
  std::unique_lock lock(machine.mutex());
  const cudaError_t own = body(machine, lock);
  return Remember(error != cudaSuccess ? error : own);
}

// takes_capture: whether the function may be called for a stream that is being captured; else that is over.
template <typename Body>
cudaError_t OnStream(const char* function, cudaStream_t handle, Body body, bool takes_capture = false) {
  return Call(function, [&](Machine& machine, std::unique_lock<std::mutex>& lock) {
    Stream* const stream = machine.FindStream(handle, current_device);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr && !takes_capture) {
      stream->capture->is_valid = false;
      return cudaErrorStreamCaptureUnsupported;
    }
    return body(machine, lock, stream);
  });
}

}  // namespace ott::cuda_stand_in

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_CALL_H_
