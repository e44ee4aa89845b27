// The steps of Mlp as kernels of a GPU. All pointers are to device memory; matrices are row-major floats.

#ifndef OTT_EXAMPLES_TRAIN_DIGITS_MLP_KERNELS_H_
#define OTT_EXAMPLES_TRAIN_DIGITS_MLP_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ott::examples {

// Element [row, column] is data[row * row_stride + column * column_stride].
struct DeviceMatrix {
  const float* data;
  int64_t row_stride;
  int64_t column_stride;
};

// out = a bᵀ (+ bias, which may be null); a is [rows, depth], b is [columns, depth]. `optimized`: eight sums
// side by side instead of one.
cudaError_t LaunchProduct(bool optimized, DeviceMatrix a, DeviceMatrix b, const float* bias, int64_t rows,
                          int64_t columns, int64_t depth, float* out);

cudaError_t LaunchRelu(float* values, int64_t size);
// gradient = 0 if the output of relu was.
cudaError_t LaunchReluBackward(const float* output, float* gradient, int64_t size);

// Each row of logits becomes probabilities; losses[row] is the cross entropy of its label.
cudaError_t LaunchSoftmaxCrossEntropy(float* logits, const int* labels, int64_t rows, int64_t columns,
                                      float* losses);
// gradient = probabilities, less one at the label.
cudaError_t LaunchSoftmaxCrossEntropyBackward(const float* probabilities, const int* labels, int64_t rows,
                                              int64_t columns, float* gradient);

// sums[column] = sum over rows.
cudaError_t LaunchSumRows(const float* values, int64_t rows, int64_t columns, float* sums);

// velocity = momentum * velocity + scale * gradient; value -= learning_rate * velocity.
cudaError_t LaunchSgd(float* value, float* velocity, const float* gradient, int64_t size, float learning_rate,
                      float momentum, float scale);

}  // namespace ott::examples

#endif  // OTT_EXAMPLES_TRAIN_DIGITS_MLP_KERNELS_H_
