// A communicator whose collectives are left in a flight recorder.

#ifndef OTT_QUESTIONS_HANG_RECORDED_COMMUNICATOR_H_
#define OTT_QUESTIONS_HANG_RECORDED_COMMUNICATOR_H_

#include <memory>
#include <string>

#include "ott/core/base/clock.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

// Records an operation from construction to destruction, unless the measurement is null. Keeps a reference to
// `clock`, which is the recorder's.
class RecordedOperation {
 public:
  RecordedOperation(FlightRecorder::Measurement* measurement, const Clock& clock);
  RecordedOperation(const RecordedOperation&) = delete;
  RecordedOperation& operator=(const RecordedOperation&) = delete;
  ~RecordedOperation();

 private:
  FlightRecorder::Measurement* const measurement_;
  const Clock& clock_;
};

// Adds an operation that all ranks of a world come to under this name, and leave if others do not answer.
// Null if the recorder has no room.
FlightRecorder::Measurement* AddObserverOperation(FlightRecorder* recorder, const char* name, int world_size,
                                                  const std::string& group);

// Passes all calls on to `ranks`, which must outlive it, and records the collectives among them as operations
// of a group of this name, "Barrier" and so on; all ranks must do so from the same call on. What Split()
// makes is not recorded. `clock` is the recorder's.
std::unique_ptr<Communicator> MakeRecordedCommunicator(Communicator& ranks, FlightRecorder* recorder,
                                                       const Clock& clock, const std::string& group);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_RECORDED_COMMUNICATOR_H_
