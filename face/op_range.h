// Labels operations as PyTorch labels its own: shapes, dtypes, sequence numbers.

#ifndef OTT_FACE_OP_RANGE_H_
#define OTT_FACE_OP_RANGE_H_

#include "ott/core/nvtx/op_range.h"  // IWYU pragma: export

#endif  // OTT_FACE_OP_RANGE_H_
