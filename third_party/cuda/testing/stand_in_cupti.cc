// A libcupti.so.13 for tests: activities of the devices of the stand-in for the CUDA runtime. It has the
// functions that `ott profile` calls, and tells of the runtime's calls, kernels, copies, sets and
// synchronisations; not of the driver's own calls. No record is ever dropped.

#include <cupti.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string_view>

#include "third_party/cuda/testing/stand_in_trace.h"

namespace {

// Records of all kinds are as large as the largest.
constexpr size_t kRecordBytes = 512;
struct Record {
  alignas(8) uint8_t bytes[kRecordBytes];
};

std::mutex mutex;
std::set<CUpti_ActivityKind> enabled;  // guarded by mutex
std::deque<Record> records;            // guarded by mutex
std::mutex flush_mutex;
CUpti_BuffersCallbackRequestFunc request_buffer;
CUpti_BuffersCallbackCompleteFunc complete_buffer;
CUpti_TimestampCallbackFunc timestamp;
CUpti_CallbackFunc callback;
void* callback_data;
std::atomic<bool> tells_nodes{false}, tells_copied_nodes{false};

constexpr struct {
  std::string_view function;
  CUpti_CallbackId id;
  const char* name;
} kFunctions[] = {
#define OTT_FUNCTION(name, version) \
  { #name, CUPTI_RUNTIME_TRACE_CBID_##name##_v##version, #name "_v" #version }
    OTT_FUNCTION(cudaMalloc, 3020),
    OTT_FUNCTION(cudaFree, 3020),
    OTT_FUNCTION(cudaMallocAsync, 11020),
    OTT_FUNCTION(cudaFreeAsync, 11020),
    OTT_FUNCTION(cudaHostAlloc, 3020),
    OTT_FUNCTION(cudaFreeHost, 3020),
    OTT_FUNCTION(cudaMemcpy, 3020),
    OTT_FUNCTION(cudaMemcpyAsync, 3020),
    OTT_FUNCTION(cudaMemcpyPeer, 4000),
    OTT_FUNCTION(cudaMemcpyPeerAsync, 4000),
    OTT_FUNCTION(cudaMemset, 3020),
    OTT_FUNCTION(cudaMemsetAsync, 3020),
    OTT_FUNCTION(cudaStreamCreateWithFlags, 5000),
    OTT_FUNCTION(cudaStreamSynchronize, 3020),
    OTT_FUNCTION(cudaStreamQuery, 3020),
    OTT_FUNCTION(cudaStreamWaitEvent, 3020),
    OTT_FUNCTION(cudaEventCreateWithFlags, 3020),
    OTT_FUNCTION(cudaEventRecord, 3020),
    OTT_FUNCTION(cudaEventQuery, 3020),
    OTT_FUNCTION(cudaEventSynchronize, 3020),
    OTT_FUNCTION(cudaDeviceSynchronize, 3020),
    OTT_FUNCTION(cudaLaunchKernel, 7000),
    OTT_FUNCTION(cudaLaunchHostFunc, 10000),
    OTT_FUNCTION(cudaStreamBeginCapture, 10000),
    OTT_FUNCTION(cudaStreamEndCapture, 10000),
    OTT_FUNCTION(cudaGraphInstantiate, 12000),
    OTT_FUNCTION(cudaGraphLaunch, 10000),
#undef OTT_FUNCTION
};

constexpr struct {
  std::string_view function;
  CUpti_ActivitySynchronizationType type;
} kSynchronizations[] = {
    {"cudaStreamSynchronize", CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE},
    {"cudaEventSynchronize", CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE},
    {"cudaDeviceSynchronize", CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE},
};

uint32_t ContextOf(uint32_t device) { return device + 1; }

// A record of this kind, or null if nobody wants it. REQUIRES: mutex is held
template <typename Activity>
Activity* Add(CUpti_ActivityKind kind) {
  static_assert(sizeof(Activity) <= kRecordBytes);
  if (enabled.count(kind) == 0) return nullptr;
  auto* const activity = reinterpret_cast<Activity*>(records.emplace_back().bytes);
  std::memset(activity, 0, kRecordBytes);
  activity->kind = kind;
  return activity;
}

template <typename Activity>
void SetSpan(Activity& activity, const OttCudaWork& work) {
  activity.start = work.start;
  activity.end = work.end;
  activity.deviceId = work.device;
  activity.contextId = ContextOf(work.device);
  activity.streamId = work.stream;
  activity.correlationId = work.correlation;
}

void AddCall(const char* function, uint32_t correlation, uint64_t start, uint64_t end) {
  const std::lock_guard lock(mutex);
  for (const auto& known : kFunctions) {
    if (known.function != function) continue;
    if (auto* const api = Add<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME)) {
      api->cbid = known.id;
      api->start = start;
      api->end = end;
      api->processId = static_cast<uint32_t>(getpid());
      api->threadId = static_cast<uint32_t>(gettid());
      api->correlationId = correlation;
    }
  }
  for (const auto& known : kSynchronizations) {
    if (known.function != function) continue;
    if (auto* const waited = Add<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
      waited->type = known.type;
      waited->start = start;
      waited->end = end;
      waited->contextId = ContextOf(0);
      waited->streamId = static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
      waited->correlationId = correlation;
    }
  }
}

void AddKernel(const OttCudaWork& work) {
  auto* const kernel = Add<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (kernel == nullptr) return;
  SetSpan(*kernel, work);
  kernel->name = work.name;
  kernel->gridX = static_cast<int32_t>(work.grid[0]);
  kernel->gridY = static_cast<int32_t>(work.grid[1]);
  kernel->gridZ = static_cast<int32_t>(work.grid[2]);
  kernel->blockX = static_cast<int32_t>(work.block[0]);
  kernel->blockY = static_cast<int32_t>(work.block[1]);
  kernel->blockZ = static_cast<int32_t>(work.block[2]);
  kernel->graphNodeId = work.graph_node;
  kernel->graphId = work.graph_node == 0 ? 0 : 1;
}

void AddPeerCopy(const OttCudaWork& work) {
  auto* const copy = Add<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
  if (copy == nullptr) return;
  SetSpan(*copy, work);
  copy->bytes = work.bytes;
  copy->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  copy->srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy->dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy->srcDeviceId = work.from_device;
  copy->srcContextId = ContextOf(work.from_device);
  copy->dstDeviceId = work.to_device;
  copy->dstContextId = ContextOf(work.to_device);
}

void AddCopy(const OttCudaWork& work) {
  if (work.is_from_device && work.is_to_device && work.from_device != work.to_device)
    return AddPeerCopy(work);
  auto* const copy = Add<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  if (copy == nullptr) return;
  SetSpan(*copy, work);
  const auto memory = [&](bool is_device) -> uint8_t {
    return is_device        ? CUPTI_ACTIVITY_MEMORY_KIND_DEVICE
           : work.is_pinned ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED
                            : CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  };
  copy->bytes = work.bytes;
  copy->srcKind = memory(work.is_from_device);
  copy->dstKind = memory(work.is_to_device);
  copy->copyKind = work.is_from_device
                       ? work.is_to_device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                   : work.is_to_device ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
                                       : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
  copy->copyCount = 1;
}

void AddSet(const OttCudaWork& work) {
  auto* const set = Add<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  if (set == nullptr) return;
  SetSpan(*set, work);
  set->bytes = work.bytes;
  set->value = static_cast<uint32_t>(work.value);
  set->memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
}

void AddWork(const OttCudaWork* work) {
  const std::lock_guard lock(mutex);
  switch (work->kind) {
    case kOttCudaKernel:
      return AddKernel(*work);
    case kOttCudaCopy:
      return AddCopy(*work);
    case kOttCudaSet:
      return AddSet(*work);
  }
}

void AddGraphNode(uint64_t node, uint64_t original) {
  if (!(original == 0 ? tells_nodes : tells_copied_nodes)) return;
  CUpti_GraphData graph = {};
  graph.node = reinterpret_cast<CUgraphNode>(node);
  graph.originalNode = reinterpret_cast<CUgraphNode>(original);
  graph.nodeType = CU_GRAPH_NODE_TYPE_KERNEL;
  CUpti_ResourceData resource = {};
  resource.resourceDescriptor = &graph;
  callback(callback_data, CUPTI_CB_DOMAIN_RESOURCE,
           original == 0 ? CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED : CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
           &resource);
}

void AddDevices() {
  for (int i = 0; i < ottCudaNumDevices(); ++i) {
    if (auto* const device = Add<CUpti_ActivityDevice5>(CUPTI_ACTIVITY_KIND_DEVICE)) {
      device->name = "stand-in of host memory";
      device->id = static_cast<uint32_t>(i);
      device->numMultiprocessors = 4;
      device->coreClockRate = 1'700'000;
      device->globalMemoryBandwidth = 10'000'000;
      device->computeCapabilityMajor = 9;
      device->numThreadsPerWarp = 32;
      device->uuid.bytes[0] = static_cast<char>(i + 1);
    }
  }
}

void AddContexts() {
  for (int i = 0; i < ottCudaNumDevices(); ++i) {
    if (auto* const context = Add<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT)) {
      context->contextId = ContextOf(static_cast<uint32_t>(i));
      context->deviceId = static_cast<uint32_t>(i);
    }
  }
}

uint64_t Now() { return timestamp(); }

}  // namespace

extern "C" {

CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "an error";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc function, void* data) {
  callback = function;
  callback_data = data;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE) return CUPTI_SUCCESS;
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) tells_nodes = enable != 0;
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) tells_copied_nodes = enable != 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, uint32_t id, const char** name) {
  for (const auto& known : kFunctions) {
    if (known.id == id) *name = known.name;
  }
  return CUPTI_SUCCESS;
}

// Returns the id that AddGraphNode() hands out.
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  *id = reinterpret_cast<uint64_t>(node);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
  timestamp = function;
  static const OttCudaTracer tracer = {&Now, &AddCall, &AddWork, &AddGraphNode};
  ottCudaSetTracer(&tracer);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  request_buffer = request;
  complete_buffer = complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(mutex);
  enabled.insert(kind);
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE) AddDevices();
  if (kind == CUPTI_ACTIVITY_KIND_CONTEXT) AddContexts();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(mutex);
  enabled.erase(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t size, CUpti_Activity** record) {
  auto* const bytes = reinterpret_cast<uint8_t*>(*record);
  uint8_t* const next = bytes == nullptr ? buffer : bytes + kRecordBytes;
  if (next >= buffer + size) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* number) {
  *number = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t) {
  const std::lock_guard one_at_a_time(flush_mutex);
  for (;;) {
    uint8_t* buffer = nullptr;
    size_t size = 0, max_num_records = 0, used = 0;
    {
      const std::lock_guard lock(mutex);
      if (records.empty()) return CUPTI_SUCCESS;
    }
    request_buffer(&buffer, &size, &max_num_records);
    if (buffer == nullptr) return CUPTI_SUCCESS;  // they stay for the next time
    {
      const std::lock_guard lock(mutex);
      for (; !records.empty() && used + kRecordBytes <= size; used += kRecordBytes) {
        std::memcpy(buffer + used, records.front().bytes, kRecordBytes);
        records.pop_front();
      }
    }
    complete_buffer(nullptr, 0, buffer, size, used);
  }
}
}
