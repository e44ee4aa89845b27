// CUPTI's activity records as the Recorder takes them.

#ifndef OTT_TOOLS_PROFILE_CUPTI_RECORDS_H_
#define OTT_TOOLS_PROFILE_CUPTI_RECORDS_H_

#include <cupti.h>

#include <cstdint>

#include "tools/profile/records.h"

namespace ott::profile {

// Fields of CUPTI's that older versions of it lack.
enum class CuptiVersion { kOlder, kOfHeaders };

// name: of the kernel or function, an id of Recorder::StringId.
KernelRecord ToRecord(const CUpti_ActivityKernel10& kernel, uint32_t name);
ApiRecord ToRecord(const CUpti_ActivityAPI& api, uint32_t name);
MemcpyRecord ToRecord(const CUpti_ActivityMemcpy6& copy, CuptiVersion version);
MemcpyRecord ToRecord(const CUpti_ActivityMemcpyPtoP4& copy);
MemsetRecord ToRecord(const CUpti_ActivityMemset4& set);
SynchronizationRecord ToRecord(const CUpti_ActivitySynchronization2& synchronization, uint32_t device,
                               CuptiVersion version);
// Without the name.
DeviceRecord ToRecord(const CUpti_ActivityDevice5& device);

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_CUPTI_RECORDS_H_
