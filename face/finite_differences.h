// Provides gradients by finite differences.

#ifndef OTT_FACE_FINITE_DIFFERENCES_H_
#define OTT_FACE_FINITE_DIFFERENCES_H_

#include "ott/core/dumper/finite_differences.h"  // IWYU pragma: export

#endif  // OTT_FACE_FINITE_DIFFERENCES_H_
