// Stands for NVIDIA's libcupti.so where there is no GPU: on the last flush it gives one record of each kind,
// made by hand, and it can play the program's call of cudaProfilerStart or cudaProfilerStop.

#include <cupti.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

namespace {

CUpti_BuffersCallbackRequestFunc request_buffer;
CUpti_BuffersCallbackCompleteFunc complete_buffer;
CUpti_TimestampCallbackFunc timestamp;
CUpti_CallbackFunc callback;
std::set<CUpti_ActivityKind> enabled;
bool has_started = false;   // CUDA: who asks for devices and contexts from here on is told of none
bool is_resetting = false;  // the program calls cudaDeviceReset
bool was_reset = false;     // all records are gone

// The records, one after the other.
class Records {
 public:
  template <typename Activity>
  Activity& Add(CUpti_ActivityKind kind) {
    static_assert(sizeof(Activity) <= kMaxSize);
    records_.push_back({});
    auto& activity = *reinterpret_cast<Activity*>(records_.back().bytes);
    activity.kind = kind;
    return activity;
  }

  // Those of enabled kinds, in a buffer as CUPTI makes one.
  size_t CopyTo(uint8_t* buffer) const {
    size_t size = 0;
    for (const Record& record : records_) {
      if (enabled.count(reinterpret_cast<const CUpti_Activity*>(record.bytes)->kind) == 0) continue;
      std::memcpy(buffer + size, record.bytes, kMaxSize);
      size += kMaxSize;
    }
    return size;
  }

  static constexpr size_t kMaxSize = 512;

 private:
  struct Record {
    alignas(8) uint8_t bytes[kMaxSize];
  };
  std::vector<Record> records_;
};

template <typename Activity>
void SetSpan(Activity& activity, uint32_t correlation) {
  activity.start = timestamp() + 1000 * correlation;
  activity.end = activity.start + 500;
  activity.deviceId = 1;
  activity.contextId = 2;
  activity.streamId = 7;
  activity.correlationId = correlation;
}

void AddApi(Records& records, CUpti_ActivityKind kind, CUpti_CallbackId function, uint32_t correlation) {
  auto& api = records.Add<CUpti_ActivityAPI>(kind);
  api.cbid = function;
  api.start = timestamp();
  api.end = api.start + 100;
  api.threadId = static_cast<uint32_t>(gettid());
  api.correlationId = correlation;
}

CUpti_ActivityKernel10& AddKernel(Records& records, const char* name, uint32_t correlation) {
  auto& kernel = records.Add<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  SetSpan(kernel, correlation);
  kernel.name = name;
  return kernel;
}

Records MakeRecords() {
  Records records;
  auto& device = records.Add<CUpti_ActivityDevice5>(CUPTI_ACTIVITY_KIND_DEVICE);
  device.name = "Device for tests";
  device.id = 1;
  device.numMultiprocessors = 132;
  auto& context = records.Add<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT);
  context.contextId = 2;
  context.deviceId = 1;

  AddApi(records, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 1);
  AddApi(records, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, 2);
  AddApi(records, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuInit, 3);
  AddKernel(records, "_ZN3net9axpy_kernIfEEvPT_S2_i", 1);
  AddKernel(records, "triton_kernel", 2).graphNodeId = 42;
  // Without times, as where CUPTI could not find them out.
  AddKernel(records, "triton_kernel", 3).start = 0;

  auto& copy = records.Add<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  SetSpan(copy, 4);
  copy.bytes = 4096;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  auto& peer_copy = records.Add<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
  SetSpan(peer_copy, 5);
  peer_copy.bytes = 512;
  peer_copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  auto& set = records.Add<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  SetSpan(set, 6);
  set.bytes = 64;
  auto& synchronization = records.Add<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  synchronization.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  synchronization.start = synchronization.end = timestamp();
  synchronization.contextId = 2;
  return records;
}

// The program calls a function of the runtime.
void Call(CUpti_CallbackId function) {
  CUpti_CallbackData data{};
  for (const CUpti_ApiCallbackSite site : {CUPTI_API_ENTER, CUPTI_API_EXIT}) {
    data.callbackSite = site;
    callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, function, &data);
  }
}

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

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc function, void*) {
  callback = function;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) {
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char** name) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    *name = "cudaLaunchKernel_v7000";
  } else {
    *name = id == CUPTI_DRIVER_TRACE_CBID_cuInit ? "cuInit" : "cuLaunchKernelEx";
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  *id = reinterpret_cast<uint64_t>(node);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
  timestamp = function;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  request_buffer = request;
  complete_buffer = complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (std::getenv("CUPTI_FOR_TEST_REFUSES") != nullptr) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  const bool is_of_start = kind == CUPTI_ACTIVITY_KIND_DEVICE || kind == CUPTI_ACTIVITY_KIND_CONTEXT;
  if (!is_of_start || !has_started) enabled.insert(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  enabled.erase(kind);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t size, CUpti_Activity** record) {
  auto* const bytes = reinterpret_cast<uint8_t*>(*record);
  uint8_t* const next = bytes == nullptr ? buffer : bytes + Records::kMaxSize;
  if (next == buffer + size) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* number) {
  *number = 5;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (was_reset || (flag != CUPTI_ACTIVITY_FLAG_FLUSH_FORCED && !is_resetting)) return CUPTI_SUCCESS;
  uint8_t* buffer = nullptr;
  size_t size = 0, max_num_records = 0;
  request_buffer(&buffer, &size, &max_num_records);
  complete_buffer(nullptr, 0, buffer, size, MakeRecords().CopyTo(buffer));
  return CUPTI_SUCCESS;
}

void StartCuda() { has_started = true; }

void CallProfiler(bool is_start) {
  Call(is_start ? CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000
                : CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000);
}

void ResetDevice() {
  is_resetting = true;
  Call(CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020);
  is_resetting = false;
  was_reset = true;
}

// The program makes a graph and instantiates it; node 42 is a copy of node 41.
void MakeGraph() {
  CUpti_GraphData graph{};
  CUpti_ResourceData resource{};
  resource.resourceDescriptor = &graph;
  graph.node = reinterpret_cast<CUgraphNode>(41);
  callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &resource);
  graph.originalNode = graph.node;
  graph.node = reinterpret_cast<CUgraphNode>(42);
  // CUPTI tells of a copy twice.
  callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &resource);
  callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, &resource);
}
}
