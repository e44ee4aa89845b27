// Writes what a stopwatch measured to files.

#ifndef OTT_FACE_STOPWATCH_FILES_H_
#define OTT_FACE_STOPWATCH_FILES_H_

#include "ott/core/stopwatch/stopwatch_files.h"  // IWYU pragma: export

#endif  // OTT_FACE_STOPWATCH_FILES_H_
