// The functions of the CUDA runtime that this project, and code that nvcc makes, call.

#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "third_party/cuda/testing/stand_in_call.h"
#include "third_party/cuda/testing/stand_in_machine.h"

namespace ott::cuda_stand_in {
namespace {

// Returns where the host finds these bytes. Null for device memory that is not usable (any more).
char* Reach(const void* pointer, size_t size) {
  Device* const device = Machine::Get().DeviceOf(pointer);
  if (device == nullptr) return static_cast<char*>(const_cast<void*>(pointer));
  return device->arena.IsUsable(pointer, size) ? device->arena.Alias(pointer) : nullptr;
}

// Returns the ordinal of the device on which it lies; 0 for the host's.
uint32_t OrdinalOf(const void* pointer) {
  Machine& machine = Machine::Get();
  for (int i = 0; i < machine.num_devices(); ++i) {
    if (machine.DeviceOf(pointer) == &machine.device(i)) return static_cast<uint32_t>(i);
  }
  return 0;
}

// On a stream's thread. In two parts, as others see a copy that is under way.
cudaError_t CopyNow(void* to, const void* from, size_t size, bool is_pinned, Stream* stream) {
  Machine& machine = Machine::Get();
  TracedWork traced(stream, kOttCudaCopy);
  traced->bytes = size;
  traced->is_from_device = machine.DeviceOf(from) != nullptr;
  traced->is_to_device = machine.DeviceOf(to) != nullptr;
  traced->is_pinned = is_pinned;
  traced->from_device = OrdinalOf(from);
  traced->to_device = OrdinalOf(to);
  for (const size_t part : {size_t{0}, size_t{1}}) {
    char* const target = Reach(to, size);
    const char* const source = Reach(from, size);
    if (target == nullptr || source == nullptr) return cudaErrorIllegalAddress;
    const size_t half = size / 2;
    if (part == 0) std::memcpy(target, source, half);
    if (part == 1) std::memcpy(target + half, source + half, size - half);
    Dawdle(stream->random);
  }
  const bool is_from_device = machine.DeviceOf(from) != nullptr;
  const bool is_to_device = machine.DeviceOf(to) != nullptr;
  const std::lock_guard lock(machine.mutex());
  if (is_from_device && !is_to_device) machine.counts().bytes_to_host += static_cast<int64_t>(size);
  if (!is_from_device && is_to_device) machine.counts().bytes_to_device += static_cast<int64_t>(size);
  return cudaSuccess;
}

bool Fits(cudaMemcpyKind kind, bool is_from_device, bool is_to_device) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !is_from_device && !is_to_device;
    case cudaMemcpyHostToDevice:
      return !is_from_device && is_to_device;
    case cudaMemcpyDeviceToHost:
      return is_from_device && !is_to_device;
    case cudaMemcpyDeviceToDevice:
      return is_from_device && is_to_device;
    default:
      return true;
  }
}

cudaError_t Copy(Machine& machine, std::unique_lock<std::mutex>& lock, Stream* stream, void* to,
                 const void* from, size_t size, cudaMemcpyKind kind, bool is_async) {
  if (size == 0) return cudaSuccess;
  const bool is_from_device = machine.DeviceOf(from) != nullptr;
  const bool is_to_device = machine.DeviceOf(to) != nullptr;
  if (to == nullptr || from == nullptr || !Fits(kind, is_from_device, is_to_device))
    return cudaErrorInvalidValue;
  const bool is_from_pageable = !is_from_device && !machine.pinned().Holds(from, size);
  const bool is_to_pageable = !is_to_device && !machine.pinned().Holds(to, size);
  if (is_async && (is_from_pageable || is_to_pageable)) ++machine.counts().pageable_copies;

  if (is_from_pageable && is_to_device) {
    // Taken before the call returns, and not a moment earlier than that.
    auto staged = std::make_shared<std::vector<char>>(static_cast<const char*>(from),
                                                      static_cast<const char*>(from) + size);
    const MomentPtr done =
        machine.Enqueue(stream, [=] { return CopyNow(to, staged->data(), size, false, stream); });
    if (!is_async) machine.WaitFor(done, lock);
    return machine.device(stream->device).sticky;
  }
  const auto run = [=]() -> cudaError_t {
    // Pinned memory may have been freed meanwhile.
    const bool is_gone =
        (!is_from_device && !is_from_pageable && !Machine::Get().pinned().Holds(from, size)) ||
        (!is_to_device && !is_to_pageable && !Machine::Get().pinned().Holds(to, size));
    if (is_gone) return cudaErrorIllegalAddress;
    // Whoever reads too early sees this.
    if (!is_to_device) std::memset(to, 0xcb, size);
    Dawdle(stream->random);
    return CopyNow(to, from, size, !is_from_pageable && !is_to_pageable, stream);
  };
  const MomentPtr done = machine.Enqueue(stream, run);
  const bool is_within_device = is_from_device && is_to_device;
  if ((!is_async && !is_within_device) || is_to_pageable) machine.WaitFor(done, lock);
  return machine.device(stream->device).sticky;
}

cudaError_t CopyPeer(const char* function, void* to, int to_device, const void* from, int from_device,
                     size_t size, cudaStream_t handle, bool is_async) {
  return OnStream(
      function, handle, [&](Machine& machine, std::unique_lock<std::mutex>& lock, Stream* stream) {
        const auto is_device = [&](int device) { return device >= 0 && device < machine.num_devices(); };
        if (!is_device(to_device) || !is_device(from_device)) return cudaErrorInvalidDevice;
        if (machine.DeviceOf(to) != &machine.device(to_device) ||
            machine.DeviceOf(from) != &machine.device(from_device)) {
          return cudaErrorInvalidValue;
        }
        return Copy(machine, lock, stream, to, from, size, cudaMemcpyDeviceToDevice, is_async);
      });
}

cudaError_t Set(Machine& machine, Stream* stream, void* memory, int value, size_t size) {
  if (size == 0) return cudaSuccess;
  if (machine.DeviceOf(memory) == nullptr && !machine.pinned().Holds(memory, size))
    return cudaErrorInvalidValue;
  machine.Enqueue(stream, [=] {
    TracedWork traced(stream, kOttCudaSet);
    traced->bytes = size;
    traced->value = value;
    char* const target = Reach(memory, size);
    if (target == nullptr) return cudaErrorIllegalAddress;
    std::memset(target, value, size);
    return cudaSuccess;
  });
  return cudaSuccess;
}

Event* FindEvent(Machine& machine, cudaEvent_t handle) {
  auto* const event = reinterpret_cast<Event*>(handle);
  return machine.events().count(event) > 0 ? event : nullptr;
}

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

const ErrorText& TextOf(cudaError_t error) {
  static const ErrorText kTexts[] = {
      {cudaSuccess, "cudaSuccess", "no error"},
      {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
      {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
      {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
      {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
       "CUDA driver version is insufficient for CUDA runtime version"},
      {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
       "CUDA-capable device(s) is/are busy or unavailable"},
      {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
      {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
      {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
      {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
      {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
      {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
      {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
      {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
      {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
      {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
       "operation not permitted when stream is capturing"},
      {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
       "operation failed due to a previous error during capture"},
      {cudaErrorIllegalState, "cudaErrorIllegalState",
       "the operation cannot be performed in the present state"},
      {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
  };
  for (const ErrorText& text : kTexts) {
    if (text.error == error) return text;
  }
  static const ErrorText unknown = {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  return unknown;
}

}  // namespace
}  // namespace ott::cuda_stand_in

using namespace ott::cuda_stand_in;

using Lock = std::unique_lock<std::mutex>;

extern "C" {

const OttCuda* ottCuda() {
  static const OttCuda hooks = {
      [](uint64_t seed) {
        last_error = cudaSuccess;
        Machine::Get().Reset(seed);
      },
      [] { return Machine::Get().Counts(); },
      [](const char* function, int64_t nth, int error, bool is_sticky) {
        Machine::Get().Fail(function, nth, static_cast<cudaError_t>(error), is_sticky);
      },
  };
  return &hooks;
}

const char* cudaGetErrorName(cudaError_t error) { return TextOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return TextOf(error).text; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return last_error; }

// Devices

cudaError_t cudaGetDeviceCount(int* count) {
  *count = Machine::Get().num_devices();
  return Remember(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  return Call("cudaGetDevice", [&](Machine&, Lock&) {
    *device = current_device;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  const bool is_device = device >= 0 && device < Machine::Get().num_devices();
  const auto set = [&](Machine&, Lock&) {
    if (!is_device) return cudaErrorInvalidDevice;
    current_device = device;
    return cudaSuccess;
  };
  return Call("cudaSetDevice", set, false, is_device ? device : current_device);
}

cudaError_t cudaDeviceSynchronize() {
  return Call("cudaDeviceSynchronize", [&](Machine& machine, Lock& lock) {
    Device& device = machine.device(current_device);
    machine.WaitForDevice(device, lock);
    return device.sticky;
  });
}

// Memory

cudaError_t cudaMalloc(void** memory, size_t size) {
  return Call("cudaMalloc", [&](Machine& machine, Lock&) {
    *memory = nullptr;
    if (size == 0) return cudaSuccess;
    *memory = machine.device(current_device).arena.Allocate(size, true);
    return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}

cudaError_t cudaFree(void* memory) {
  return Call(
      "cudaFree",
      [&](Machine& machine, Lock& lock) {
        if (memory == nullptr) return cudaSuccess;
        Device* const device = machine.DeviceOf(memory);
        if (device == nullptr) return cudaErrorInvalidValue;
        machine.WaitForDevice(*device, lock);
        return device->arena.Free(memory) ? cudaSuccess : cudaErrorInvalidValue;
      },
      true);
}

cudaError_t cudaMallocAsync(void** memory, size_t size, cudaStream_t handle) {
  return OnStream("cudaMallocAsync", handle, [&](Machine& machine, Lock&, Stream* stream) {
    *memory = nullptr;
    if (size == 0) return cudaSuccess;
    Arena& arena = machine.device(stream->device).arena;
    void* const block = arena.Allocate(size, false);
    if (block == nullptr) return cudaErrorMemoryAllocation;
    *memory = block;
    machine.Enqueue(stream, [&arena, block] {
      arena.MakeReady(block);
      return cudaSuccess;
    });
    return cudaSuccess;
  });
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t handle) {
  return Call(
      "cudaFreeAsync",
      [&](Machine& machine, Lock&) {
        if (memory == nullptr) return cudaSuccess;
        Device* const device = machine.DeviceOf(memory);
        Stream* const stream = machine.FindStream(handle, current_device);
        if (device == nullptr || stream == nullptr) return cudaErrorInvalidValue;
        const auto free = [device, memory] {
          return device->arena.Free(memory) ? cudaSuccess : cudaErrorIllegalAddress;
        };
        machine.Enqueue(stream, free, true);
        return device->sticky;
      },
      true);
}

cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned int) {
  return Call("cudaHostAlloc", [&](Machine& machine, Lock&) {
    *memory = machine.pinned().Allocate(size);
    return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* memory) {
  return Call(
      "cudaFreeHost",
      [&](Machine& machine, Lock&) {
        return memory == nullptr || machine.pinned().Free(memory) ? cudaSuccess : cudaErrorInvalidValue;
      },
      true);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  return OnStream("cudaMemcpy", nullptr, [&](Machine& machine, Lock& lock, Stream* stream) {
    return Copy(machine, lock, stream, to, from, size, kind, false);
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  return OnStream("cudaMemcpyAsync", handle, [&](Machine& machine, Lock& lock, Stream* stream) {
    return Copy(machine, lock, stream, to, from, size, kind, true);
  });
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t size) {
  return CopyPeer("cudaMemcpyPeer", to, to_device, from, from_device, size, nullptr, false);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t size,
                                cudaStream_t handle) {
  return CopyPeer("cudaMemcpyPeerAsync", to, to_device, from, from_device, size, handle, true);
}

cudaError_t cudaMemset(void* memory, int value, size_t size) {
  return OnStream("cudaMemset", nullptr, [&](Machine& machine, Lock&, Stream* stream) {
    return Set(machine, stream, memory, value, size);
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t size, cudaStream_t handle) {
  return OnStream("cudaMemsetAsync", handle, [&](Machine& machine, Lock&, Stream* stream) {
    return Set(machine, stream, memory, value, size);
  });
}

// Streams

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned int flags) {
  return Call("cudaStreamCreateWithFlags", [&](Machine& machine, Lock&) {
    Stream* const stream = machine.MakeStream(current_device, flags != cudaStreamNonBlocking);
    machine.device(current_device).streams.insert(stream);
    *handle = reinterpret_cast<cudaStream_t>(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  return cudaStreamCreateWithFlags(handle, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return Call(
      "cudaStreamDestroy",
      [&](Machine& machine, Lock&) {
        Stream* const stream = handle == nullptr ? nullptr : machine.FindStream(handle, current_device);
        if (stream == nullptr) return cudaErrorInvalidResourceHandle;
        machine.DestroyStream(stream);
        return cudaSuccess;
      },
      true);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return OnStream("cudaStreamSynchronize", handle, [&](Machine& machine, Lock& lock, Stream* stream) {
    const int device = stream->device;
    machine.WaitFor(stream->last, lock);
    return machine.device(device).sticky;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return OnStream("cudaStreamQuery", handle, [&](Machine& machine, Lock&, Stream* stream) {
    if (stream->last != nullptr && !stream->last->has_come) return cudaErrorNotReady;
    return machine.device(stream->device).sticky;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned int) {
  return OnStream("cudaStreamWaitEvent", handle, [&](Machine& machine, Lock&, Stream* stream) {
    const Event* const event = FindEvent(machine, event_handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->moment != nullptr) machine.EnqueueWait(stream, event->moment);
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return OnStream("cudaLaunchHostFunc", handle, [&](Machine& machine, Lock&, Stream* stream) {
    machine.Enqueue(stream, [function, data] {
      SetInHostFunction(true);
      function(data);
      SetInHostFunction(false);
      return cudaSuccess;
    });
    return cudaSuccess;
  });
}

// Events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned int flags) {
  return Call("cudaEventCreateWithFlags", [&](Machine& machine, Lock&) {
    auto* const event = new Event{current_device, (flags & cudaEventDisableTiming) == 0, nullptr};
    machine.events().insert(event);
    *handle = reinterpret_cast<cudaEvent_t>(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) {
  return cudaEventCreateWithFlags(handle, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return Call(
      "cudaEventDestroy",
      [&](Machine& machine, Lock&) {
        Event* const event = FindEvent(machine, handle);
        if (event == nullptr) return cudaErrorInvalidResourceHandle;
        machine.events().erase(event);
        delete event;
        return cudaSuccess;
      },
      true);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  return OnStream("cudaEventRecord", stream_handle, [&](Machine& machine, Lock&, Stream* stream) {
    Event* const event = FindEvent(machine, handle);
    if (event == nullptr || event->device != stream->device) return cudaErrorInvalidResourceHandle;
    event->moment = machine.Enqueue(stream, nullptr);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return Call("cudaEventQuery", [&](Machine& machine, Lock&) {
    const Event* const event = FindEvent(machine, handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->moment != nullptr && !event->moment->has_come) return cudaErrorNotReady;
    return machine.device(event->device).sticky;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return Call("cudaEventSynchronize", [&](Machine& machine, Lock& lock) {
    const Event* const event = FindEvent(machine, handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    const int device = event->device;
    const MomentPtr moment = event->moment;
    machine.WaitFor(moment, lock);
    return machine.device(device).sticky;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  return Call("cudaEventElapsedTime", [&](Machine& machine, Lock&) {
    const Event* const start = FindEvent(machine, start_handle);
    const Event* const end = FindEvent(machine, end_handle);
    if (start == nullptr || end == nullptr || start->device != end->device || !start->has_timing ||
        !end->has_timing || start->moment == nullptr || end->moment == nullptr) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!start->moment->has_come || !end->moment->has_come) return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(end->moment->when - start->moment->when).count();
    return cudaSuccess;
  });
}

// For the stand-in for NCCL: work for a stream, and where the host finds device memory (null: it is not
// usable).
int ottCudaEnqueue(void* handle, int (*run)(void*), void* data) {
  return OnStream("ottCudaEnqueue", static_cast<cudaStream_t>(handle),
                  [&](Machine& machine, Lock&, Stream* stream) {
                    machine.Enqueue(stream, [run, data] { return static_cast<cudaError_t>(run(data)); });
                    return cudaSuccess;
                  });
}

void* ottCudaReach(const void* pointer, size_t size) {
  return Machine::Get().DeviceOf(pointer) == nullptr ? nullptr : Reach(pointer, size);
}
}
