// Dumps tensors and gradients to files, iteration by iteration.

#ifndef OTT_FACE_TENSOR_DUMPER_H_
#define OTT_FACE_TENSOR_DUMPER_H_

#include "ott/core/dumper/tensor_dumper.h"  // IWYU pragma: export

#endif  // OTT_FACE_TENSOR_DUMPER_H_
