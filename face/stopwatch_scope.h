// Measures blocks of code, in files that need nothing else of a stopwatch: compiles in a tenth of the time.

#ifndef OTT_FACE_STOPWATCH_SCOPE_H_
#define OTT_FACE_STOPWATCH_SCOPE_H_

#include "ott/core/stopwatch/stopwatch_scope.h"  // IWYU pragma: export

#endif  // OTT_FACE_STOPWATCH_SCOPE_H_
