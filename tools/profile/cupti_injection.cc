// The CUDA driver loads this into the captured process from CUDA_INJECTION64_PATH and calls it while it
// starts: it opens CUPTI and hands its records to the Recorder. CUPTI's functions are found at run time; its
// headers give the types.

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tools/profile/cupti_records.h"
#include "tools/profile/recorder.h"

namespace {

using ott::profile::CuptiVersion;
using ott::profile::Now;
using ott::profile::Recorder;
using ott::profile::RecordKind;
using ott::profile::ThreadRecorder;

// The structures of CUPTI 12.0 and later begin as those of our headers do.
constexpr uint32_t kOldestVersion = 19;  // CUPTI_API_VERSION of CUDA 12.0
constexpr size_t kBufferBytes = 1 << 20;
constexpr int kMaxBuffers = 64;
constexpr unsigned kFlushSeconds = 1;

// CUPTI tells of devices and contexts once, while CUDA starts: a window that opens later needs them, too.
constexpr CUpti_ActivityKind kKindsOfStart[] = {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT};
constexpr CUpti_ActivityKind kKindsOfWindow[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
};

// Called all the time, and of no interest.
constexpr CUpti_CallbackId kUninteresting[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020,
};

#define OTT_CUPTI_FUNCTIONS(F)              \
  F(cuptiGetVersion)                        \
  F(cuptiGetResultString)                   \
  F(cuptiSubscribe)                         \
  F(cuptiEnableCallback)                    \
  F(cuptiGetCallbackName)                   \
  F(cuptiGetGraphNodeId)                    \
  F(cuptiSetThreadIdType)                   \
  F(cuptiActivityRegisterTimestampCallback) \
  F(cuptiActivityRegisterCallbacks)         \
  F(cuptiActivityEnable)                    \
  F(cuptiActivityDisable)                   \
  F(cuptiActivityFlushAll)                  \
  F(cuptiActivityGetNextRecord)             \
  F(cuptiActivityGetNumDroppedRecords)

// CUPTI's functions, by their own names.
struct Cupti {
#define OTT_DECLARE(name) decltype(&::name) name = nullptr;
  OTT_CUPTI_FUNCTIONS(OTT_DECLARE)
#undef OTT_DECLARE
  // Null in older versions.
  decltype(&::cuptiActivityEnableRuntimeApi) cuptiActivityEnableRuntimeApi = nullptr;

  // Returns the name of a function that is missing, null if all are there.
  const char* Find(void* library) {
    Find(library, "cuptiActivityEnableRuntimeApi", &cuptiActivityEnableRuntimeApi);
#define OTT_FIND(name) \
  if (!Find(library, #name, &name)) return #name;
    OTT_CUPTI_FUNCTIONS(OTT_FIND)
#undef OTT_FIND
    return nullptr;
  }

  template <typename Function>
  static bool Find(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    return *function != nullptr;
  }

  CuptiVersion version = CuptiVersion::kOlder;
};

Cupti cupti;
pid_t process_of_cupti = 0;
std::atomic<int> num_buffers{0};
std::mutex flush_mutex;

void Problem(std::string_view what) {
  Recorder::RecordOnce(RecordKind::kProblem, 0, 0, "CUDA is not captured: " + std::string(what));
}

// Returns false, after a Problem, where it failed.
bool Check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = "";
  cupti.cuptiGetResultString(result, &text);
  Problem(std::string(what) + ": " + text);
  return false;
}

void* OpenCupti() {
  constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  // A second copy would disturb the first.
  for (const char* name : kNames) {
    if (void* const loaded = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return loaded;
  }
  const char* const home = std::getenv("CUDA_HOME");
  const std::string cuda = home == nullptr ? "/usr/local/cuda" : home;
  for (const std::string& directory : {std::string(), cuda + "/lib64/", cuda + "/extras/CUPTI/lib64/"}) {
    for (const char* name : kNames) {
      if (void* const library = dlopen((directory + name).c_str(), RTLD_NOW)) return library;
    }
  }
  return nullptr;
}

uint32_t NameId(const char* name) { return Recorder::StringId(name == nullptr ? "<unnamed>" : name); }

// Returns true for those of the driver's functions that a program uses to give the device work; the runtime's
// are all kept.
bool IsInteresting(const CUpti_ActivityAPI& api, std::string_view name) {
  if (api.kind == CUPTI_ACTIVITY_KIND_RUNTIME) return true;
  for (const std::string_view prefix : {"cuLaunch", "cuGraphLaunch", "cuMemcpy", "cuMemset"}) {
    if (name.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

// Hands one buffer's records to the Recorder. CUPTI calls from several threads, one at a time.
class BufferReader {
 public:
  void Read(uint8_t* buffer, size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    thread_ = ThreadRecorder::Get();
    if (thread_ == nullptr) return;
    CUpti_Activity* activity = nullptr;
    while (cupti.cuptiActivityGetNextRecord(buffer, size, &activity) == CUPTI_SUCCESS) Take(activity);
    size_t num_dropped = 0;
    cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, &num_dropped);
    CountDropped(num_dropped);
  }

 private:
  void CountDropped(uint64_t number) { thread_->recorder().header().num_dropped.fetch_add(number); }

  template <typename T>
  void Append(RecordKind kind, const T& record) {
    // 0: CUPTI could not find out the time.
    if (record.span.start == 0) {
      CountDropped(1);
    } else {
      thread_->Append(kind, record);
    }
  }

  void Take(const CUpti_Activity* activity) {
    switch (activity->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto* const kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(activity);
        Append(RecordKind::kKernel, ott::profile::ToRecord(*kernel, NameId(kernel->name)));
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        Append(
            RecordKind::kMemcpy,
            ott::profile::ToRecord(*reinterpret_cast<const CUpti_ActivityMemcpy6*>(activity), cupti.version));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY2:
        Append(RecordKind::kMemcpy,
               ott::profile::ToRecord(*reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(activity)));
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET:
        Append(RecordKind::kMemset,
               ott::profile::ToRecord(*reinterpret_cast<const CUpti_ActivityMemset4*>(activity)));
        break;
      case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        const auto* const synchronization = reinterpret_cast<const CUpti_ActivitySynchronization2*>(activity);
        Append(RecordKind::kSynchronization,
               ott::profile::ToRecord(*synchronization, devices_[synchronization->contextId], cupti.version));
        break;
      }
      case CUPTI_ACTIVITY_KIND_RUNTIME:
      case CUPTI_ACTIVITY_KIND_DRIVER: {
        const auto* const api = reinterpret_cast<const CUpti_ActivityAPI*>(activity);
        const char* name = nullptr;
        cupti.cuptiGetCallbackName(api->kind == CUPTI_ACTIVITY_KIND_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API
                                                                           : CUPTI_CB_DOMAIN_RUNTIME_API,
                                   api->cbid, &name);
        if (IsInteresting(*api, name == nullptr ? "" : name)) {
          thread_->Append(RecordKind::kApi, ott::profile::ToRecord(*api, NameId(name)));
        }
        break;
      }
      case CUPTI_ACTIVITY_KIND_CONTEXT: {
        const auto* const context = reinterpret_cast<const CUpti_ActivityContext3*>(activity);
        devices_[context->contextId] = context->deviceId;
        break;
      }
      case CUPTI_ACTIVITY_KIND_DEVICE: {
        const auto* const device = reinterpret_cast<const CUpti_ActivityDevice5*>(activity);
        thread_->Append(RecordKind::kDevice, ott::profile::ToRecord(*device),
                        device->name == nullptr ? "" : device->name);
        break;
      }
      default:
        break;
    }
  }

  std::mutex mutex_;
  ThreadRecorder* thread_ = nullptr;
  std::unordered_map<uint32_t, uint32_t> devices_;  // by context
};

// Never destroyed: CUPTI's thread runs on while the process exits.
BufferReader& buffer_reader() {
  static auto* const reader = new BufferReader;
  return *reader;
}

void CUPTIAPI RequestBuffer(uint8_t** buffer, size_t* size, size_t* max_num_records) {
  *max_num_records = 0;
  // Without a buffer CUPTI drops records, and counts them.
  const bool has_room = num_buffers.fetch_add(1) < kMaxBuffers;
  *buffer = has_room ? static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes)) : nullptr;
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  if (*buffer == nullptr) --num_buffers;
}

void CUPTIAPI CompleteBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_size) {
  buffer_reader().Read(buffer, valid_size);
  std::free(buffer);
  --num_buffers;
}

// Enables all of them, and checks like Check().
template <size_t kSize>
bool Enable(const CUpti_ActivityKind (&kinds)[kSize]) {
  CUptiResult first_error = CUPTI_SUCCESS;
  for (const CUpti_ActivityKind kind : kinds) {
    const CUptiResult result = cupti.cuptiActivityEnable(kind);
    if (first_error == CUPTI_SUCCESS) first_error = result;
  }
  return Check(first_error, "cuptiActivityEnable");
}

void OpenWindow(bool on) {
  if (on) {
    Enable(kKindsOfWindow);
  } else {
    for (const CUpti_ActivityKind kind : kKindsOfWindow) cupti.cuptiActivityDisable(kind);
  }
  if (!on || cupti.cuptiActivityEnableRuntimeApi == nullptr) return;
  for (const CUpti_CallbackId function : kUninteresting) cupti.cuptiActivityEnableRuntimeApi(function, 0);
}

void TakeGraphNode(const CUpti_GraphData& graph, bool is_copy) {
  ThreadRecorder* const thread = ThreadRecorder::Get();
  if (thread == nullptr) return;
  static const uint32_t name = Recorder::StringId("Graph Node Creation");
  ott::profile::GraphNodeRecord record{};
  record.time = Now();
  record.name = name;
  record.thread = static_cast<uint32_t>(gettid());
  cupti.cuptiGetGraphNodeId(graph.node, &record.node);
  if (is_copy) cupti.cuptiGetGraphNodeId(graph.originalNode, &record.original);
  thread->Append(RecordKind::kGraphNode, record);
}

void CUPTIAPI Callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    const auto* const resource = static_cast<const CUpti_ResourceData*>(data);
    TakeGraphNode(*static_cast<const CUpti_GraphData*>(resource->resourceDescriptor),
                  id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
    return;
  }
  const bool is_entry = static_cast<const CUpti_CallbackData*>(data)->callbackSite == CUPTI_API_ENTER;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && id == CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020) {
    // Records that CUPTI holds do not outlive the contexts.
    if (is_entry) cupti.cuptiActivityFlushAll(0);
    return;
  }
  Recorder* const recorder = Recorder::Get();
  if (recorder == nullptr || recorder->range() != Recorder::Range::kCudaProfilerApi) return;
  const bool is_start = domain == CUPTI_CB_DOMAIN_DRIVER_API
                            ? id == CUPTI_DRIVER_TRACE_CBID_cuProfilerStart
                            : id == CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000;
  // The calls themselves stay outside.
  if (is_start != is_entry) recorder->set_recording(is_start);
}

constexpr struct {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId id;
} kCallbacks[] = {
    {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStart},
    {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop},
    {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000},
    {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000},
    {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED},
};

uint64_t CUPTIAPI Timestamp() { return Now(); }

void FlushAtExit() {
  // CUDA does not live on in a child of fork.
  if (getpid() != process_of_cupti) return;
  // For good: CUPTI is taken down next, and must not be called meanwhile.
  flush_mutex.lock();
  cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

void* FlushForEver(void*) {
  for (;;) {
    sleep(kFlushSeconds);
    const std::lock_guard<std::mutex> lock(flush_mutex);
    cupti.cuptiActivityFlushAll(0);
  }
}

// Starts a thread that asks CUPTI all the time for what it holds back, which is lost with the process. The
// program's signals are not for this thread.
void StartFlushing() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &FlushForEver, nullptr) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void StartCupti() {
  void* const library = OpenCupti();
  if (library == nullptr) {
    return Problem(
        "libcupti.so is neither where the linker looks nor in CUDA_HOME, /usr/local/cuda by default");
  }
  if (const char* const missing = cupti.Find(library)) return Problem(std::string("CUPTI has no ") + missing);
  uint32_t version = 0;
  cupti.cuptiGetVersion(&version);
  if (version < kOldestVersion) return Problem("CUPTI is older than CUDA 12.0's");
  if (version >= CUPTI_API_VERSION) cupti.version = CuptiVersion::kOfHeaders;
  CUpti_SubscriberHandle subscriber;
  if (!Check(cupti.cuptiSubscribe(&subscriber, &Callback, nullptr), "cuptiSubscribe") ||
      !Check(cupti.cuptiActivityRegisterTimestampCallback(&Timestamp),
             "cuptiActivityRegisterTimestampCallback") ||
      !Check(cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), "cuptiSetThreadIdType") ||
      !Check(cupti.cuptiActivityRegisterCallbacks(&RequestBuffer, &CompleteBuffer),
             "cuptiActivityRegisterCallbacks") ||
      !Enable(kKindsOfStart)) {
    return;
  }
  for (const auto& callback : kCallbacks) {
    cupti.cuptiEnableCallback(1, subscriber, callback.domain, callback.id);
  }
  Recorder::Get()->OnRecording(&OpenWindow);
  Recorder::Get()->header().has_cuda = 1;
  process_of_cupti = getpid();
  std::atexit(&FlushAtExit);
  StartFlushing();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (Recorder::Start()) StartCupti();
  });
  return 1;
}
