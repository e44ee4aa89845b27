// The library that NVTX loads into the captured process from NVTX_INJECTION64_PATH: hands every event to the
// Recorder.

#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "ott/core/base/utf8.h"
#include "tools/profile/recorder.h"

namespace {

using ott::profile::EventAttributes;
using ott::profile::NvtxEvent;
using ott::profile::NvtxEventRecord;
using ott::profile::Recorder;
using ott::profile::RecordKind;
using ott::profile::ThreadRecorder;

constexpr std::string_view kProfilerDomain = "ott.profiler";

// The handles that NVTX gives to the program are ids: of domains, of strings, of resources.
uint32_t IdOf(const void* handle) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle)); }

// Returns the id of a domain; the default one's if the handle cannot be ours.
uint32_t DomainOf(nvtxDomainHandle_t domain) { return IdOf(domain) <= 0xffff ? IdOf(domain) : 0; }

template <typename Handle>
Handle HandleOf(uint32_t id) {
  return reinterpret_cast<Handle>(static_cast<uintptr_t>(id));
}

std::string_view ViewOf(const char* text) { return text == nullptr ? "" : text; }

// UTF-32, as wchar_t is on Linux, to UTF-8.
std::string ToUtf8(const wchar_t* text) {
  std::string utf8;
  for (; text != nullptr && *text != L'\0'; ++text) {
    const auto code = static_cast<uint32_t>(*text);
    ott::AppendUtf8(code > 0x10ffff ? 0xfffd : code, utf8);
  }
  return utf8;
}

NvtxEvent TextEvent(std::string_view text) {
  NvtxEvent event;
  event.text = text;
  event.has = NvtxEventRecord::kText;
  return event;
}

// An NvtxEvent of NVTX's attributes; owns what it points to.
class AttributedEvent {
 public:
  explicit AttributedEvent(const nvtxEventAttributes_t* given) {
    if (given == nullptr) return;
    switch (given->messageType) {
      case NVTX_MESSAGE_TYPE_ASCII:
        event_ = TextEvent(ViewOf(given->message.ascii));
        break;
      case NVTX_MESSAGE_TYPE_UNICODE:
        converted_ = ToUtf8(given->message.unicode);
        event_ = TextEvent(converted_);
        break;
      case NVTX_MESSAGE_TYPE_REGISTERED:
        event_.has = NvtxEventRecord::kString;
        attributes_.string = IdOf(given->message.registered);
        break;
      default:
        break;
    }
    if (given->category != 0) event_.has |= NvtxEventRecord::kCategory;
    if (given->colorType == NVTX_COLOR_ARGB) event_.has |= NvtxEventRecord::kColor;
    // Others are pointers to structures of NVTX's payload extension.
    if (given->payloadType > NVTX_PAYLOAD_UNKNOWN && given->payloadType <= NVTX_PAYLOAD_TYPE_FLOAT) {
      event_.payload_type = static_cast<uint8_t>(given->payloadType);
    }
    if ((event_.has & ~NvtxEventRecord::kText) == 0 && event_.payload_type == 0) return;
    attributes_.category = given->category;
    attributes_.color = given->color;
    attributes_.payload = given->payload.ullValue;
    event_.attributes = &attributes_;
  }
  AttributedEvent(const AttributedEvent&) = delete;
  AttributedEvent& operator=(const AttributedEvent&) = delete;

  operator const NvtxEvent&() const { return event_; }

  std::string_view text() const {
    return event_.has & NvtxEventRecord::kString ? Recorder::StringOf(attributes_.string) : event_.text;
  }

 private:
  NvtxEvent event_;
  EventAttributes attributes_{};
  std::string converted_;
};

int Push(uint32_t domain, const NvtxEvent& event) {
  ThreadRecorder* const thread = ThreadRecorder::Get();
  return thread == nullptr ? NVTX_NO_PUSH_POP_TRACKING : thread->Push(domain, event);
}

int Pop(uint32_t domain) {
  ThreadRecorder* const thread = ThreadRecorder::Get();
  return thread == nullptr ? NVTX_NO_PUSH_POP_TRACKING : thread->Pop(domain);
}

void Mark(uint32_t domain, const NvtxEvent& event) {
  if (ThreadRecorder* const thread = ThreadRecorder::Get()) thread->Mark(domain, event);
}

nvtxRangeId_t Start(uint32_t domain, const NvtxEvent& event) {
  ThreadRecorder* const thread = ThreadRecorder::Get();
  return thread == nullptr ? 0 : thread->RangeStart(domain, event);
}

void End(nvtxRangeId_t range) {
  if (ThreadRecorder* const thread = ThreadRecorder::Get()) thread->RangeEnd(range);
}

void MarkA(const char* text) { Mark(0, TextEvent(ViewOf(text))); }
void MarkW(const wchar_t* text) { Mark(0, TextEvent(ToUtf8(text))); }
void MarkEx(const nvtxEventAttributes_t* attributes) { Mark(0, AttributedEvent(attributes)); }
int RangePushA(const char* text) { return Push(0, TextEvent(ViewOf(text))); }
int RangePushW(const wchar_t* text) { return Push(0, TextEvent(ToUtf8(text))); }
int RangePushEx(const nvtxEventAttributes_t* attributes) { return Push(0, AttributedEvent(attributes)); }
int RangePop() { return Pop(0); }
nvtxRangeId_t RangeStartA(const char* text) { return Start(0, TextEvent(ViewOf(text))); }
nvtxRangeId_t RangeStartW(const wchar_t* text) { return Start(0, TextEvent(ToUtf8(text))); }
nvtxRangeId_t RangeStartEx(const nvtxEventAttributes_t* attributes) {
  return Start(0, AttributedEvent(attributes));
}
void RangeEnd(nvtxRangeId_t range) { End(range); }
void NameCategoryA(uint32_t category, const char* name) {
  Recorder::RecordOnce(RecordKind::kCategory, category, 0, ViewOf(name));
}
void NameCategoryW(uint32_t category, const wchar_t* name) { NameCategoryA(category, ToUtf8(name).c_str()); }
void NameOsThreadA(uint32_t thread, const char* name) {
  Recorder::RecordOnce(RecordKind::kThreadName, thread, 0, ViewOf(name));
}
void NameOsThreadW(uint32_t thread, const wchar_t* name) { NameOsThreadA(thread, ToUtf8(name).c_str()); }

// The id of kProfilerDomain once the program has made it.
std::atomic<uint32_t> profiler_domain{0};

// Marks of the profiler open and close the window, and lie within it.
void DomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const AttributedEvent event(attributes);
  Recorder* const recorder = Recorder::Get();
  const bool is_of_profiler = domain != nullptr && DomainOf(domain) == profiler_domain &&
                              recorder != nullptr && recorder->range() == Recorder::Range::kProfiler;
  if (is_of_profiler && event.text() == "start") recorder->set_recording(true);
  Mark(DomainOf(domain), event);
  if (is_of_profiler && event.text() == "stop") recorder->set_recording(false);
}

int DomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  return Push(DomainOf(domain), AttributedEvent(attributes));
}
int DomainRangePop(nvtxDomainHandle_t domain) { return Pop(DomainOf(domain)); }
nvtxRangeId_t DomainRangeStartEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  return Start(DomainOf(domain), AttributedEvent(attributes));
}
void DomainRangeEnd(nvtxDomainHandle_t, nvtxRangeId_t range) { End(range); }

nvtxDomainHandle_t DomainCreateA(const char* name) {
  const uint32_t id = Recorder::DomainId(ViewOf(name));
  if (ViewOf(name) == kProfilerDomain) profiler_domain = id;
  return HandleOf<nvtxDomainHandle_t>(id);
}
nvtxDomainHandle_t DomainCreateW(const wchar_t* name) { return DomainCreateA(ToUtf8(name).c_str()); }
void DomainDestroy(nvtxDomainHandle_t domain) {
  Recorder::RecordOnce(RecordKind::kDomainEnd, DomainOf(domain), 0, "");
}

nvtxStringHandle_t DomainRegisterStringA(nvtxDomainHandle_t, const char* text) {
  return HandleOf<nvtxStringHandle_t>(Recorder::StringId(ViewOf(text)));
}
nvtxStringHandle_t DomainRegisterStringW(nvtxDomainHandle_t domain, const wchar_t* text) {
  return DomainRegisterStringA(domain, ToUtf8(text).c_str());
}

void DomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char* name) {
  Recorder::RecordOnce(RecordKind::kCategory, category, DomainOf(domain), ViewOf(name));
}
void DomainNameCategoryW(nvtxDomainHandle_t domain, uint32_t category, const wchar_t* name) {
  DomainNameCategoryA(domain, category, ToUtf8(name).c_str());
}

// Only threads, of all resources, have a place in the file.
nvtxResourceHandle_t DomainResourceCreate(nvtxDomainHandle_t, nvtxResourceAttributes_t* attributes) {
  if (attributes != nullptr && attributes->identifierType == NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE) {
    const auto thread = static_cast<uint32_t>(attributes->identifier.ullValue);
    if (attributes->messageType == NVTX_MESSAGE_TYPE_UNICODE)
      NameOsThreadW(thread, attributes->message.unicode);
    if (attributes->messageType == NVTX_MESSAGE_TYPE_ASCII) NameOsThreadA(thread, attributes->message.ascii);
  }
  return HandleOf<nvtxResourceHandle_t>(1);
}

// Names devices of the runtime and of the driver, which number them alike.
void NameCudaDeviceA(int device, const char* name) {
  Recorder::RecordOnce(RecordKind::kCudaDeviceName, static_cast<uint32_t>(device), 0, ViewOf(name));
}
void NameCudaDeviceW(int device, const wchar_t* name) { NameCudaDeviceA(device, ToUtf8(name).c_str()); }

struct Callback {
  uint32_t id;
  void* function;
};

template <typename Function>
constexpr Callback Of(uint32_t id, Function* function) {
  return {id, reinterpret_cast<void*>(function)};
}

const Callback kCore[] = {
    Of(NVTX_CBID_CORE_MarkEx, &MarkEx),
    Of(NVTX_CBID_CORE_MarkA, &MarkA),
    Of(NVTX_CBID_CORE_MarkW, &MarkW),
    Of(NVTX_CBID_CORE_RangeStartEx, &RangeStartEx),
    Of(NVTX_CBID_CORE_RangeStartA, &RangeStartA),
    Of(NVTX_CBID_CORE_RangeStartW, &RangeStartW),
    Of(NVTX_CBID_CORE_RangeEnd, &RangeEnd),
    Of(NVTX_CBID_CORE_RangePushEx, &RangePushEx),
    Of(NVTX_CBID_CORE_RangePushA, &RangePushA),
    Of(NVTX_CBID_CORE_RangePushW, &RangePushW),
    Of(NVTX_CBID_CORE_RangePop, &RangePop),
    Of(NVTX_CBID_CORE_NameCategoryA, &NameCategoryA),
    Of(NVTX_CBID_CORE_NameCategoryW, &NameCategoryW),
    Of(NVTX_CBID_CORE_NameOsThreadA, &NameOsThreadA),
    Of(NVTX_CBID_CORE_NameOsThreadW, &NameOsThreadW),
};

const Callback kCore2[] = {
    Of(NVTX_CBID_CORE2_DomainMarkEx, &DomainMarkEx),
    Of(NVTX_CBID_CORE2_DomainRangeStartEx, &DomainRangeStartEx),
    Of(NVTX_CBID_CORE2_DomainRangeEnd, &DomainRangeEnd),
    Of(NVTX_CBID_CORE2_DomainRangePushEx, &DomainRangePushEx),
    Of(NVTX_CBID_CORE2_DomainRangePop, &DomainRangePop),
    Of(NVTX_CBID_CORE2_DomainResourceCreate, &DomainResourceCreate),
    Of(NVTX_CBID_CORE2_DomainNameCategoryA, &DomainNameCategoryA),
    Of(NVTX_CBID_CORE2_DomainNameCategoryW, &DomainNameCategoryW),
    Of(NVTX_CBID_CORE2_DomainRegisterStringA, &DomainRegisterStringA),
    Of(NVTX_CBID_CORE2_DomainRegisterStringW, &DomainRegisterStringW),
    Of(NVTX_CBID_CORE2_DomainCreateA, &DomainCreateA),
    Of(NVTX_CBID_CORE2_DomainCreateW, &DomainCreateW),
    Of(NVTX_CBID_CORE2_DomainDestroy, &DomainDestroy),
};

const Callback kCudaRuntime[] = {
    Of(NVTX_CBID_CUDART_NameCudaDeviceA, &NameCudaDeviceA),
    Of(NVTX_CBID_CUDART_NameCudaDeviceW, &NameCudaDeviceW),
};

const Callback kCudaDriver[] = {
    Of(NVTX_CBID_CUDA_NameCuDeviceA, &NameCudaDeviceA),
    Of(NVTX_CBID_CUDA_NameCuDeviceW, &NameCudaDeviceW),
};

// A program's NVTX may be older or newer than ours: only what its table holds is set.
template <size_t kSize>
void Subscribe(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module,
               const Callback (&functions)[kSize]) {
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks.GetModuleFunctionTable(module, &table, &size) == 0) return;
  for (const Callback& callback : functions) {
    if (callback.id < size && table[callback.id] != nullptr) {
      *table[callback.id] = reinterpret_cast<NvtxFunctionPointer>(callback.function);
    }
  }
}

}  // namespace

// Each shared object of the program that uses NVTX calls this once.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || !Recorder::Start()) return 0;
  Subscribe(*callbacks, NVTX_CB_MODULE_CORE, kCore);
  Subscribe(*callbacks, NVTX_CB_MODULE_CORE2, kCore2);
  Subscribe(*callbacks, NVTX_CB_MODULE_CUDART, kCudaRuntime);
  Subscribe(*callbacks, NVTX_CB_MODULE_CUDA, kCudaDriver);
  return 1;
}
