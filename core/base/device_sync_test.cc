#include "ott/core/base/device_sync.h"

#include "ott/core/base/device_or_reason_for_test.h"

namespace ott {
namespace {

TEST(DeviceSync, WaitsOrNamesWhatIsMissing) {
  ExpectDoneOrTheReasonWhyNot(SynchronizeDevice());
  ExpectDoneOrTheReasonWhyNot(SynchronizeStream(nullptr));
}

}  // namespace
}  // namespace ott
