// Mlp with its mathematics on a GPU.

#ifndef OTT_EXAMPLES_TRAIN_DIGITS_DEVICE_MLP_H_
#define OTT_EXAMPLES_TRAIN_DIGITS_DEVICE_MLP_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/train_digits/digits.h"
#include "examples/train_digits/mlp.h"
#include "ott/tensor.h"

namespace ott::examples {

// The same network as Mlp, with values, gradients and velocities in device memory. All its work is on the
// default stream. Errors are CUDA's. Parameters are numbered as in Mlp::parameters().
class DeviceMlp {
 public:
  virtual ~DeviceMlp() = default;

  // Works like Mlp. Forward() waits for the loss, the others for nothing.
  virtual absl::StatusOr<double> Forward(const Digits& batch) = 0;
  virtual absl::Status Backward() = 0;
  virtual absl::Status Step(float learning_rate, float momentum, float scale) = 0;

  // Returns where they lie.
  virtual TensorView Value(size_t parameter) const = 0;
  virtual TensorView Gradient(size_t parameter) const = 0;
  // For reductions in place.
  virtual void* GradientData(size_t parameter) = 0;

  // Between the device and the parameters of the Mlp that this was made from. They wait.
  virtual absl::Status ValuesToHost() = 0;
  virtual absl::Status ValuesToDevice() = 0;
  virtual absl::Status GradientToHost(size_t parameter) = 0;
  virtual absl::Status GradientToDevice(size_t parameter) = 0;
};

// Returns the device of a rank, where the ranks of a host follow each other. UNIMPLEMENTED in a build without
// CUDA, FAILED_PRECONDITION if there is no device.
absl::StatusOr<int> DeviceOfRank(int rank);

// `mlp` must outlive it; its values are where the training begins. most_images: of a batch.
absl::StatusOr<std::unique_ptr<DeviceMlp>> CreateDeviceMlp(Mlp& mlp, Kernel kernel, int64_t most_images,
                                                           int device);

}  // namespace ott::examples

#endif  // OTT_EXAMPLES_TRAIN_DIGITS_DEVICE_MLP_H_
