// Keeps the last things that a process did; says what ranks wait for in a measurement.

#ifndef OTT_FACE_FLIGHT_RECORDER_H_
#define OTT_FACE_FLIGHT_RECORDER_H_

#include "ott/core/flight/flight_recorder.h"  // IWYU pragma: export

#endif  // OTT_FACE_FLIGHT_RECORDER_H_
