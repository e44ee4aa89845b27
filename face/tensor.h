// Tensors as ott takes them: views of the program's memory, owned ones, those of DLPack, ragged batches.

#ifndef OTT_FACE_TENSOR_H_
#define OTT_FACE_TENSOR_H_

#include "ott/core/tensor/dlpack.h"        // IWYU pragma: export
#include "ott/core/tensor/dtype.h"         // IWYU pragma: export
#include "ott/core/tensor/ragged_batch.h"  // IWYU pragma: export
#include "ott/core/tensor/tensor.h"        // IWYU pragma: export
#include "ott/core/tensor/tensor_view.h"   // IWYU pragma: export
#include "ott/core/tensor/value.h"         // IWYU pragma: export

#endif  // OTT_FACE_TENSOR_H_
