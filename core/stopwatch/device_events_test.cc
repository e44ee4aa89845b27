#include "ott/core/stopwatch/device_events.h"

#include "ott/core/base/device_or_reason_for_test.h"

namespace ott {
namespace {

// stopwatch_gpu_test.cc measures with them.
TEST(DeviceEvents, AreThereOrNameWhatIsMissing) {
  ExpectDoneOrTheReasonWhyNot(CreateDeviceEvents(nullptr).status());
}

}  // namespace
}  // namespace ott
