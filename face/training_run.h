// All of it together, configured by one ott.Config.

#ifndef OTT_FACE_TRAINING_RUN_H_
#define OTT_FACE_TRAINING_RUN_H_

#include "ott/run/training/training_run.h"  // IWYU pragma: export

#endif  // OTT_FACE_TRAINING_RUN_H_
