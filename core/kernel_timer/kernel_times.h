// Reads on the host what a KernelTimer left in memory.

#ifndef OTT_CORE_KERNEL_TIMER_KERNEL_TIMES_H_
#define OTT_CORE_KERNEL_TIMER_KERNEL_TIMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/kernel_timer/kernel_timer_view.h"

namespace ott {

// The times of one launch of a kernel.
struct KernelTimes {
  // In cycles of the SM's clock since the unit began.
  struct Lap {
    // Or kNoKernelSection.
    uint32_t section = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  struct Unit {
    uint32_t block = 0;
    uint32_t warp = 0;
    uint32_t sm = 0;
    // globaltimer, in nanoseconds.
    uint64_t start_nanoseconds = 0;
    // clock64 at the start.
    uint64_t start_cycles = 0;
    // The cycles of the whole unit; of its laps, if it has not ended.
    uint64_t cycles = 0;
    // 0: the unit has not ended.
    uint64_t end_nanoseconds = 0;
    std::vector<Lap> laps;
  };

  // In the order of their blocks and warps.
  std::vector<Unit> units;
  // The number of units for which the buffer had no room.
  uint64_t num_units_lost = 0;
  uint64_t num_laps_lost = 0;
  // The number of laps and units that were left out since they end before they begin, as happens if a buffer
  // was not cleared.
  uint64_t num_invalid = 0;

  // Returns the rate over the units that ended; 0 if globaltimer did not advance.
  double CyclesPerNanosecond() const;
};

// memory: a copy of what the view points to. INVALID_ARGUMENT if it is not of the view's size.
absl::StatusOr<KernelTimes> ReadKernelTimes(absl::Span<const uint64_t> memory, const KernelTimerView& view);

// Returns the size in 8-byte words.
uint64_t KernelTimerMemorySize(const KernelTimerView& view);

// One lap on a timeline.
struct KernelSectionEvent {
  uint32_t section = 0;
  uint32_t block = 0;
  uint32_t warp = 0;
  uint32_t sm = 0;
  // Units that share an SM at the same time have different lanes, from 0 on.
  uint32_t lane = 0;
  // globaltimer.
  int64_t start_nanoseconds = 0;
  int64_t end_nanoseconds = 0;
};

// Laps of kNoKernelSection are left out. The cycle counter of an SM, which all its units share, is aligned
// with globaltimer once, so that globaltimer's steps of up to a microsecond do not blur times within an SM.
// Empty if globaltimer did not advance.
std::vector<KernelSectionEvent> KernelSectionEvents(const KernelTimes& times);

// The offset of globaltimer from Unix time.
struct GlobalTimerOffset {
  // To be added to globaltimer.
  int64_t unix_nanoseconds = 0;
  // The offset is wrong by at most this.
  int64_t error_nanoseconds = 0;
};

// Adds the events to a recorder whose window is open, on a track for each lane of each SM, named "KERNEL SM
// 3.0". sections: names by number; those beyond are "section N".
void RecordKernelSections(const KernelTimes& times, const std::string& kernel,
                          absl::Span<const std::string> sections, const GlobalTimerOffset& offset,
                          EventRecorder& recorder);

// Returns "section 7" where there is no name.
std::string KernelSectionName(absl::Span<const std::string> sections, uint32_t section);

}  // namespace ott

#endif  // OTT_CORE_KERNEL_TIMER_KERNEL_TIMES_H_
