// A tool as NVTX loads it from NVTX_INJECTION64_PATH, which keeps what a profiler would receive.

#include "ott/core/nvtx/nvtx_injection_for_test.h"

#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>

namespace {

using ott::NvtxEvent;

std::mutex mutex;
std::vector<NvtxEvent>& Events() {
  static auto* events = new std::vector<NvtxEvent>;
  return *events;
}

void Add(NvtxEvent::Kind kind, const char* name) {
  const std::lock_guard<std::mutex> lock(mutex);
  Events().push_back({kind, static_cast<int>(syscall(SYS_gettid)), name});
}

int RangePushA(const char* name) {
  Add(NvtxEvent::Kind::kPush, name);
  return 0;
}

int RangePop() {
  Add(NvtxEvent::Kind::kPop, "");
  return 0;
}

void MarkA(const char* name) { Add(NvtxEvent::Kind::kMark, name); }

}  // namespace

extern "C" {

std::vector<NvtxEvent> TakeNvtxEvents() {
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<NvtxEvent> taken;
  taken.swap(Events());
  return taken;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table;
  unsigned int size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0)
    return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(&RangePushA);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(&RangePop);
  *table[NVTX_CBID_CORE_MarkA] = reinterpret_cast<NvtxFunctionPointer>(&MarkA);
  return 1;
}
}
