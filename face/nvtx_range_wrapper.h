// NVTX ranges that are switched on from main and check their order.

#ifndef OTT_FACE_NVTX_RANGE_WRAPPER_H_
#define OTT_FACE_NVTX_RANGE_WRAPPER_H_

#include "ott/core/nvtx/nvtx_range_wrapper.h"  // IWYU pragma: export

#endif  // OTT_FACE_NVTX_RANGE_WRAPPER_H_
