// A tool as NVTX loads it from NVTX_INJECTION64_PATH, which does what every profiler must: take the time, and
// keep it together with the name in a buffer of the thread.

#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <cstring>

#include "ott/core/base/clock.h"

namespace {

struct Event {
  uint64_t ticks;
  char name[24];
};

constexpr size_t kEvents = 1024;
thread_local Event events[kEvents];
thread_local size_t num_events = 0;

const ott::Clock& clock_of_tool = ott::Clock::Fastest();

Event& Add() {
  Event& event = events[num_events++ % kEvents];
  event.ticks = clock_of_tool.Ticks();
  return event;
}

int RangePushA(const char* name) {
  Event& event = Add();
  std::strncpy(event.name, name, sizeof(event.name));
  return 0;
}

int RangePop() {
  Add().name[0] = '\0';
  return 0;
}

int DomainRangePushEx(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  Event& event = Add();
  if (attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED) {
    std::memcpy(event.name, &attributes->message.registered, sizeof(attributes->message.registered));
  } else {
    std::strncpy(event.name, attributes->message.ascii, sizeof(event.name));
  }
  return 0;
}

int DomainRangePop(nvtxDomainHandle_t) { return RangePop(); }

nvtxStringHandle_t DomainRegisterStringA(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<char*>(text));
}

template <typename Function>
void Set(NvtxFunctionTable table, int index, Function* function) {
  *table[index] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable core, core2;
  unsigned int size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size) == 0 ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &size) == 0) {
    return 0;
  }
  Set(core, NVTX_CBID_CORE_RangePushA, &RangePushA);
  Set(core, NVTX_CBID_CORE_RangePop, &RangePop);
  Set(core2, NVTX_CBID_CORE2_DomainRangePushEx, &DomainRangePushEx);
  Set(core2, NVTX_CBID_CORE2_DomainRangePop, &DomainRangePop);
  Set(core2, NVTX_CBID_CORE2_DomainRegisterStringA, &DomainRegisterStringA);
  return 1;
}
