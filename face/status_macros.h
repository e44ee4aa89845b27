// Returns errors early.

#ifndef OTT_FACE_STATUS_MACROS_H_
#define OTT_FACE_STATUS_MACROS_H_

#include "ott/core/base/status_macros.h"  // IWYU pragma: export

#endif  // OTT_FACE_STATUS_MACROS_H_
