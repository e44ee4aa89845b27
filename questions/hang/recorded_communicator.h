// A communicator whose collectives are left in a flight recorder.

#ifndef OTT_QUESTIONS_HANG_RECORDED_COMMUNICATOR_H_
#define OTT_QUESTIONS_HANG_RECORDED_COMMUNICATOR_H_

#include <memory>
#include <string>

#include "ott/core/base/clock.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

// Passes all calls on to `ranks`, which must outlive it, and records the collectives among them as operations
// of a group of this name, "Barrier" and so on; all ranks must do so from the same call on. What Split()
// makes is not recorded. `clock` is the recorder's.
std::unique_ptr<Communicator> MakeRecordedCommunicator(Communicator& ranks, FlightRecorder* recorder,
                                                       const Clock& clock, const std::string& group);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_RECORDED_COMMUNICATOR_H_
