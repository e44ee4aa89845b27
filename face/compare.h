// Compares tensors, trees and dumps, and never passes by accident.

#ifndef OTT_FACE_COMPARE_H_
#define OTT_FACE_COMPARE_H_

#include "ott/core/compare/compare.h"  // IWYU pragma: export
#include "ott/core/compare/report.h"   // IWYU pragma: export

#endif  // OTT_FACE_COMPARE_H_
