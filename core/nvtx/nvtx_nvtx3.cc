#include <nvtx3/nvToolsExt.h>

#include <type_traits>

#include "ott/core/nvtx/nvtx.h"

namespace ott::internal {
namespace {

nvtxDomainHandle_t Native(NvtxDomainHandle domain) { return static_cast<nvtxDomainHandle_t>(domain); }

void SetPayload(const NvtxPayload& payload, nvtxEventAttributes_t& native) {
  std::visit(
      [&native](auto value) {
        using Value = decltype(value);
        if constexpr (std::is_same_v<Value, uint64_t>) {
          native.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
          native.payload.ullValue = value;
        } else if constexpr (std::is_same_v<Value, int64_t>) {
          native.payloadType = NVTX_PAYLOAD_TYPE_INT64;
          native.payload.llValue = value;
        } else if constexpr (std::is_same_v<Value, double>) {
          native.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
          native.payload.dValue = value;
        } else if constexpr (std::is_same_v<Value, uint32_t>) {
          native.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
          native.payload.uiValue = value;
        } else if constexpr (std::is_same_v<Value, int32_t>) {
          native.payloadType = NVTX_PAYLOAD_TYPE_INT32;
          native.payload.iValue = value;
        } else if constexpr (std::is_same_v<Value, float>) {
          native.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
          native.payload.fValue = value;
        }
      },
      payload);
}

nvtxEventAttributes_t Native(const NvtxEventAttributes& attributes) {
  nvtxEventAttributes_t native{};
  native.version = NVTX_VERSION;
  native.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  native.category = attributes.category;
  if (attributes.color != 0) {
    native.colorType = NVTX_COLOR_ARGB;
    native.color = attributes.color;
  }
  if (attributes.registered != nullptr) {
    native.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    native.message.registered = static_cast<nvtxStringHandle_t>(attributes.registered);
  } else {
    native.messageType = NVTX_MESSAGE_TYPE_ASCII;
    native.message.ascii = attributes.text;
  }
  if (attributes.payload.index() != 0) SetPayload(attributes.payload, native);
  return native;
}

}  // namespace

absl::Status NvtxStatus() { return absl::OkStatus(); }

NvtxDomainHandle NvtxCreateDomain(const char* name) { return nvtxDomainCreateA(name); }

NvtxStringHandle NvtxRegisterString(NvtxDomainHandle domain, const char* text) {
  return nvtxDomainRegisterStringA(Native(domain), text);
}

void NvtxNameCategory(NvtxDomainHandle domain, uint32_t category, const char* name) {
  nvtxDomainNameCategoryA(Native(domain), category, name);
}

void NvtxPush(const char* name) { nvtxRangePushA(name); }

void NvtxPush(NvtxDomainHandle domain, NvtxStringHandle registered) {
  nvtxEventAttributes_t native{};
  native.version = NVTX_VERSION;
  native.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  native.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  native.message.registered = static_cast<nvtxStringHandle_t>(registered);
  nvtxDomainRangePushEx(Native(domain), &native);
}

void NvtxPush(NvtxDomainHandle domain, const NvtxEventAttributes& attributes) {
  const nvtxEventAttributes_t native = Native(attributes);
  nvtxDomainRangePushEx(Native(domain), &native);
}

void NvtxPop() { nvtxRangePop(); }

void NvtxPop(NvtxDomainHandle domain) { nvtxDomainRangePop(Native(domain)); }

void NvtxMark(NvtxDomainHandle domain, const NvtxEventAttributes& attributes) {
  const nvtxEventAttributes_t native = Native(attributes);
  nvtxDomainMarkEx(Native(domain), &native);
}

uint64_t NvtxStartRange(const char* name) { return nvtxRangeStartA(name); }

void NvtxEndRange(uint64_t id) { nvtxRangeEnd(id); }

}  // namespace ott::internal
