// Moments in the work of a CUDA stream, whose distance is read after they have happened.

#ifndef OTT_CORE_STOPWATCH_DEVICE_EVENTS_H_
#define OTT_CORE_STOPWATCH_DEVICE_EVENTS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

namespace ott {

// Events are lent and must be given back. Thread-safe.
class DeviceEvents {
 public:
  using Event = void*;

  virtual ~DeviceEvents() = default;

  // Adds an event to the stream's work and returns at once; null if the device refused, as after an error of
  // earlier work.
  virtual Event Record() = 0;

  // Returns true if `event`, and so all recorded before it, has happened. Returns at once.
  // REQUIRES: event is not null.
  virtual bool HasHappened(Event event) = 0;

  // Returns picoseconds, rounded to the device's resolution (CUDA: about 0.5 us). nullopt if the device
  // reports an error. REQUIRES: both have happened.
  virtual std::optional<uint64_t> Between(Event start, Event end) = 0;

  virtual void GiveBack(Event event) = 0;
};

// Events on a cudaStream_t of the current device; null is its default stream. Threads whose current device is
// another one may use them, too. In the child of a fork, which cannot use CUDA, nothing is recorded.
// UNIMPLEMENTED in a build without CUDA, FAILED_PRECONDITION without a driver or a device.
absl::StatusOr<std::unique_ptr<DeviceEvents>> CreateDeviceEvents(void* stream);

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_DEVICE_EVENTS_H_
