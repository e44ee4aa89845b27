// Tensors handed over by DLPack, without a copy.
//
// The structures are DLPack's C interface (versions 0.8 to 1.x, https://dmlc.github.io/dlpack), declared here
// as far as they are used, so that no header of another library is needed; pass the pointers of any
// framework.

#ifndef OTT_CORE_TENSOR_DLPACK_H_
#define OTT_CORE_TENSOR_DLPACK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor.h"

namespace ott {

namespace dlpack {

struct Device {
  int32_t device_type;  // 1: CPU, 2: CUDA, 3: pinned host memory, 13: CUDA managed memory
  int32_t device_id;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};

// DLPack's DLManagedTensor.
struct ManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(ManagedTensor* self);
};

// DLPack's DLManagedTensorVersioned.
struct ManagedTensorVersioned {
  uint32_t major_version;
  uint32_t minor_version;
  void* manager_ctx;
  void (*deleter)(ManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

}  // namespace dlpack

// Takes over a DLManagedTensor: its deleter is called when the last copy of the tensor's owner is gone, or at
// once where an error is returned. stream: the cudaStream_t on which a CUDA tensor's contents are ready;
// null: the default. UNIMPLEMENTED for a dtype or a device that a Tensor cannot have; INVALID_ARGUMENT for a
// tensor that is none.
absl::StatusOr<Tensor> FromDLPack(dlpack::ManagedTensor* managed, void* stream = nullptr);

// Does the same for a DLManagedTensorVersioned. UNIMPLEMENTED for a major version other than 1.
absl::StatusOr<Tensor> FromDLPack(dlpack::ManagedTensorVersioned* managed, void* stream = nullptr);

}  // namespace ott

#endif  // OTT_CORE_TENSOR_DLPACK_H_
