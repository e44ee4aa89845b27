// Tells FLOPs and bytes of an operation from its shapes, and what a GPU can do at most.

#ifndef OTT_FACE_OP_COST_H_
#define OTT_FACE_OP_COST_H_

#include "ott/core/op_cost/device_peaks.h"  // IWYU pragma: export
#include "ott/core/op_cost/op_cost.h"       // IWYU pragma: export

#endif  // OTT_FACE_OP_COST_H_
