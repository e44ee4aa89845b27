// A tool as NVTX loads it from NVTX_INJECTION64_PATH, which keeps what a profiler would receive.

#include "ott/core/nvtx/nvtx_injection_for_test.h"

#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <mutex>

namespace {

using ott::NvtxEvent;
using Kind = ott::NvtxEvent::Kind;

// Never destroyed: the program may send until its very end.
struct Received {
  std::mutex mutex;
  std::vector<NvtxEvent> events;
  // Handles are the addresses of these.
  std::map<std::string, std::string> domains;
  std::map<std::string, std::string> strings;
  uint64_t last_range = 0;
};

Received& received() {
  static auto* received = new Received;
  return *received;
}

std::string DomainName(nvtxDomainHandle_t domain) {
  return domain == nullptr ? "" : *reinterpret_cast<const std::string*>(domain);
}

void Add(NvtxEvent event, nvtxDomainHandle_t domain = nullptr) {
  event.domain = DomainName(domain);
  event.thread = static_cast<int>(syscall(SYS_gettid));
  const std::lock_guard<std::mutex> lock(received().mutex);
  received().events.push_back(std::move(event));
}

std::string PayloadOf(const nvtxEventAttributes_t& attributes) {
  switch (attributes.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      return "uint64 " + std::to_string(attributes.payload.ullValue);
    case NVTX_PAYLOAD_TYPE_INT64:
      return "int64 " + std::to_string(attributes.payload.llValue);
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      return "double " + std::to_string(attributes.payload.dValue);
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      return "uint32 " + std::to_string(attributes.payload.uiValue);
    case NVTX_PAYLOAD_TYPE_INT32:
      return "int32 " + std::to_string(attributes.payload.iValue);
    case NVTX_PAYLOAD_TYPE_FLOAT:
      return "float " + std::to_string(attributes.payload.fValue);
    default:
      return "";
  }
}

void AddWithAttributes(Kind kind, nvtxDomainHandle_t domain, const nvtxEventAttributes_t& attributes) {
  NvtxEvent event{kind};
  if (attributes.messageType == NVTX_MESSAGE_TYPE_REGISTERED) {
    event.name = "#" + *reinterpret_cast<const std::string*>(attributes.message.registered);
  } else if (attributes.messageType == NVTX_MESSAGE_TYPE_ASCII) {
    event.name = attributes.message.ascii;
  }
  event.category = attributes.category;
  if (attributes.colorType == NVTX_COLOR_ARGB) event.color = attributes.color;
  event.payload = PayloadOf(attributes);
  Add(std::move(event), domain);
}

int RangePushA(const char* name) {
  Add({Kind::kPush, 0, name});
  return 0;
}

int RangePop() {
  Add({Kind::kPop});
  return 0;
}

nvtxRangeId_t RangeStartA(const char* name) {
  NvtxEvent event{Kind::kStart, 0, name};
  {
    const std::lock_guard<std::mutex> lock(received().mutex);
    event.range = ++received().last_range;
  }
  const nvtxRangeId_t id = event.range;
  Add(std::move(event));
  return id;
}

void RangeEnd(nvtxRangeId_t id) {
  NvtxEvent event{Kind::kEnd};
  event.range = id;
  Add(std::move(event));
}

int DomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  AddWithAttributes(Kind::kPush, domain, *attributes);
  return 0;
}

int DomainRangePop(nvtxDomainHandle_t domain) {
  Add({Kind::kPop}, domain);
  return 0;
}

void DomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  AddWithAttributes(Kind::kMark, domain, *attributes);
}

nvtxDomainHandle_t DomainCreateA(const char* name) {
  Add({Kind::kCreateDomain, 0, name});
  const std::lock_guard<std::mutex> lock(received().mutex);
  return reinterpret_cast<nvtxDomainHandle_t>(&received().domains.emplace(name, name).first->second);
}

nvtxStringHandle_t DomainRegisterStringA(nvtxDomainHandle_t domain, const char* text) {
  Add({Kind::kRegisterString, 0, text}, domain);
  const std::lock_guard<std::mutex> lock(received().mutex);
  return reinterpret_cast<nvtxStringHandle_t>(&received().strings.emplace(text, text).first->second);
}

void DomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char* name) {
  Add({Kind::kNameCategory, 0, name, {}, category}, domain);
}

template <typename Function>
void Set(NvtxFunctionTable table, int index, Function* function) {
  *table[index] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" {

std::vector<NvtxEvent> TakeNvtxEvents() {
  const std::lock_guard<std::mutex> lock(received().mutex);
  std::vector<NvtxEvent> taken;
  taken.swap(received().events);
  received().last_range = 0;
  return taken;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable core, core2;
  unsigned int size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size) == 0 ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &size) == 0) {
    return 0;
  }
  Set(core, NVTX_CBID_CORE_RangePushA, &RangePushA);
  Set(core, NVTX_CBID_CORE_RangePop, &RangePop);
  Set(core, NVTX_CBID_CORE_RangeStartA, &RangeStartA);
  Set(core, NVTX_CBID_CORE_RangeEnd, &RangeEnd);
  Set(core2, NVTX_CBID_CORE2_DomainRangePushEx, &DomainRangePushEx);
  Set(core2, NVTX_CBID_CORE2_DomainRangePop, &DomainRangePop);
  Set(core2, NVTX_CBID_CORE2_DomainMarkEx, &DomainMarkEx);
  Set(core2, NVTX_CBID_CORE2_DomainCreateA, &DomainCreateA);
  Set(core2, NVTX_CBID_CORE2_DomainRegisterStringA, &DomainRegisterStringA);
  Set(core2, NVTX_CBID_CORE2_DomainNameCategoryA, &DomainNameCategoryA);
  return 1;
}
}
