// For LibTorch programs: a range for each operation, tensors and autograd's gradients dumped.

#ifndef OTT_FACE_TORCH_H_
#define OTT_FACE_TORCH_H_

#include "ott/integrations/torch/emit_nvtx.h"      // IWYU pragma: export
#include "ott/integrations/torch/tensor.h"         // IWYU pragma: export
#include "ott/integrations/torch/tensor_dumper.h"  // IWYU pragma: export

#endif  // OTT_FACE_TORCH_H_
