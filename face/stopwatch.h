// Measures where the time of a program goes: named measurements over the iterations of a loop.

#ifndef OTT_FACE_STOPWATCH_H_
#define OTT_FACE_STOPWATCH_H_

#include "ott/core/stopwatch/stopwatch.h"  // IWYU pragma: export

#endif  // OTT_FACE_STOPWATCH_H_
