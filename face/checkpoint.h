// Reads checkpoints that others wrote, without running anything in them.

#ifndef OTT_FACE_CHECKPOINT_H_
#define OTT_FACE_CHECKPOINT_H_

#include "ott/core/checkpoint/checkpoint.h"  // IWYU pragma: export

#endif  // OTT_FACE_CHECKPOINT_H_
