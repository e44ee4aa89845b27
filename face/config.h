// Reads ott.Config, which configures everything from outside of the program.

#ifndef OTT_FACE_CONFIG_H_
#define OTT_FACE_CONFIG_H_

#include "ott/core/base/config.h"     // IWYU pragma: export
#include "ott/core/base/config.pb.h"  // IWYU pragma: export

#endif  // OTT_FACE_CONFIG_H_
