// The functions of the CUDA runtime that launch kernels, and graphs of launches.

#include <cuda_runtime_api.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "third_party/cuda/testing/stand_in_call.h"
#include "third_party/cuda/testing/stand_in_graph.h"
#include "third_party/cuda/testing/stand_in_kernels.h"
#include "third_party/cuda/testing/stand_in_machine.h"

namespace ott::cuda_stand_in {
namespace {

// Holds what nvcc's code has registered: a function of the host that stands for a kernel, and the kernel's
// name.
std::map<const void*, std::string>& RegisteredKernels() {
  static auto& kernels = *new std::map<const void*, std::string>;
  return kernels;
}

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

void Enqueue(Machine& machine, Stream* stream, const KernelLaunch& launch) {
  machine.Enqueue(stream, [&machine, stream, launch] {
    TracedWork traced(stream, kOttCudaKernel);
    traced->name = launch.name;
    traced->graph_node = launch.node;
    const auto set = [](uint32_t(&to)[3], dim3 from) {
      to[0] = from.x;
      to[1] = from.y;
      to[2] = from.z;
    };
    set(traced->grid, launch.grid);
    set(traced->block, launch.block);
    Arena& arena = machine.device(stream->device).arena;
    for (const void* pointer : launch.body.pointers) {
      if (pointer != nullptr && !arena.IsUsable(pointer, 0) && !machine.pinned().Holds(pointer, 0)) {
        return cudaErrorIllegalAddress;
      }
    }
    arena.BeginKernel();
    const cudaError_t error = RunKernel(launch.body, launch.grid, launch.block, stream->random());
    arena.EndKernel();
    const std::lock_guard lock(machine.mutex());
    ++machine.counts().kernels;
    return error;
  });
}

uint64_t NewNode() {
  static std::atomic<uint64_t> latest{0};
  return ++latest;
}

cudaError_t Launch(const void* function, dim3 grid, dim3 block, void** arguments, cudaStream_t handle) {
  const auto launch = [&](Machine& machine, std::unique_lock<std::mutex>&, Stream* stream) -> cudaError_t {
    const auto found = RegisteredKernels().find(function);
    const CaptureBody capture = found == RegisteredKernels().end() ? nullptr : FindKernel(found->second);
    if (capture == nullptr) return cudaErrorInvalidDeviceFunction;
    if (stream->device != current_device) return cudaErrorInvalidResourceHandle;
    const uint64_t num_threads = uint64_t{block.x} * block.y * block.z;
    if (num_threads == 0 || num_threads > 1024 || uint64_t{grid.x} * grid.y * grid.z == 0 || grid.y > 65535 ||
        grid.z > 65535) {
      return cudaErrorInvalidConfiguration;
    }
    KernelLaunch kernel{found->second.c_str(), grid, block, capture(arguments)};
    if (stream->capture == nullptr) {
      Enqueue(machine, stream, kernel);
      return cudaSuccess;
    }
    kernel.node = NewNode();
    TraceGraphNode(kernel.node, 0);
    stream->capture->launches.push_back(std::move(kernel));
    return cudaSuccess;
  };
  return OnStream("cudaLaunchKernel", handle, launch, /*takes_capture=*/true);
}

// Those that live, captured and executable ones. Guarded by the machine's mutex.
std::set<Graph*>& Graphs() {
  static auto& graphs = *new std::set<Graph*>;
  return graphs;
}

cudaError_t Destroy(const char* function, void* handle) {
  const auto destroy = [&](Machine&, std::unique_lock<std::mutex>&) {
    auto* const graph = static_cast<Graph*>(handle);
    if (Graphs().erase(graph) == 0) return cudaErrorInvalidValue;
    delete graph;
    return cudaSuccess;
  };
  return Call(function, destroy, /*is_release=*/true);
}

}  // namespace
}  // namespace ott::cuda_stand_in

using namespace ott::cuda_stand_in;

using Lock = std::unique_lock<std::mutex>;

extern "C" {

// Kernels

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void**, const char* host_function, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  RegisteredKernels()[host_function] = name;
}

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  const Configuration configuration = configurations.back();
  configurations.pop_back();
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t,
                               cudaStream_t stream) {
  return Launch(kernel, grid, block, arguments, stream);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t,
                             cudaStream_t stream) {
  return Launch(function, grid, block, arguments, stream);
}

// Graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  return OnStream("cudaStreamBeginCapture", handle, [&](Machine& machine, Lock&, Stream* stream) {
    if (stream == machine.device(stream->device).default_stream) return cudaErrorStreamCaptureUnsupported;
    stream->capture = new Graph;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* result) {
  const auto end = [&](Machine&, Lock&, Stream* stream) {
    *result = nullptr;
    std::unique_ptr<Graph> graph(std::exchange(stream->capture, nullptr));
    if (graph == nullptr) return cudaErrorIllegalState;
    if (!graph->is_valid) return cudaErrorStreamCaptureInvalidated;
    Graphs().insert(graph.get());
    *result = reinterpret_cast<cudaGraph_t>(graph.release());
    return cudaSuccess;
  };
  return OnStream("cudaStreamEndCapture", handle, end, /*takes_capture=*/true);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* result, cudaGraph_t handle, unsigned long long) {
  return Call("cudaGraphInstantiate", [&](Machine&, Lock&) {
    auto* const graph = reinterpret_cast<Graph*>(handle);
    if (Graphs().count(graph) == 0) return cudaErrorInvalidValue;
    auto* const executable = new Graph(*graph);
    Graphs().insert(executable);
    for (KernelLaunch& launch : executable->launches) {
      const uint64_t original = std::exchange(launch.node, NewNode());
      TraceGraphNode(launch.node, original);
    }
    *result = reinterpret_cast<cudaGraphExec_t>(executable);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  return OnStream("cudaGraphLaunch", stream_handle, [&](Machine& machine, Lock&, Stream* stream) {
    auto* const graph = reinterpret_cast<Graph*>(handle);
    if (Graphs().count(graph) == 0) return cudaErrorInvalidValue;
    for (const KernelLaunch& launch : graph->launches) Enqueue(machine, stream, launch);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return Destroy("cudaGraphDestroy", graph); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return Destroy("cudaGraphExecDestroy", graph); }
}
