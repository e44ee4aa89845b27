#include <cmath>

#include "examples/train_digits/mlp_kernels.h"

namespace ott::examples {
namespace {

// Few, as the network is small; each thread takes element after element.
constexpr int kThreads = 32;
constexpr int64_t kMaxBlocks = 4;
constexpr int kLanes = 8;

unsigned int Blocks(int64_t elements) {
  const int64_t wanted = (elements + kThreads - 1) / kThreads;
  return static_cast<unsigned int>(wanted < 1 ? 1 : wanted < kMaxBlocks ? wanted : kMaxBlocks);
}

__device__ int64_t First() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ int64_t Step() { return int64_t{gridDim.x} * blockDim.x; }

template <bool kOptimized>
__global__ void ProductKernel(const float* a, int64_t a_row, int64_t a_column, const float* b, int64_t b_row,
                              int64_t b_column, const float* bias, int64_t size, int64_t columns,
                              int64_t depth, float* out) {
  for (int64_t i = First(); i < size; i += Step()) {
    const float* const x = a + i / columns * a_row;
    const float* const y = b + i % columns * b_row;
    float sum = 0;
    if (kOptimized) {
      float lanes[kLanes] = {};
      for (int64_t k = 0; k < depth; ++k) lanes[k % kLanes] += x[k * a_column] * y[k * b_column];
      for (int lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
    } else {
      for (int64_t k = 0; k < depth; ++k) sum += x[k * a_column] * y[k * b_column];
    }
    out[i] = bias == nullptr ? sum : sum + bias[i % columns];
  }
}

__global__ void ReluKernel(float* values, int64_t size) {
  for (int64_t i = First(); i < size; i += Step()) values[i] = values[i] > 0 ? values[i] : 0;
}

__global__ void ReluBackwardKernel(const float* output, float* gradient, int64_t size) {
  for (int64_t i = First(); i < size; i += Step()) {
    if (output[i] == 0) gradient[i] = 0;
  }
}

__global__ void SoftmaxCrossEntropyKernel(float* logits, const int* labels, int64_t rows, int64_t columns,
                                          float* losses) {
  for (int64_t row = First(); row < rows; row += Step()) {
    float* const values = logits + row * columns;
    float max = values[0];
    for (int64_t i = 1; i < columns; ++i) max = values[i] > max ? values[i] : max;
    float sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += values[i] = expf(values[i] - max);
    for (int64_t i = 0; i < columns; ++i) values[i] /= sum;
    const float probability = values[labels[row]];
    losses[row] = -logf(probability > 1e-30f ? probability : 1e-30f);
  }
}

__global__ void SoftmaxCrossEntropyBackwardKernel(const float* probabilities, const int* labels, int64_t size,
                                                  int64_t columns, float* gradient) {
  for (int64_t i = First(); i < size; i += Step()) {
    gradient[i] = probabilities[i] - (i % columns == labels[i / columns] ? 1.0f : 0.0f);
  }
}

__global__ void SumRowsKernel(const float* values, int64_t rows, int64_t columns, float* sums) {
  for (int64_t column = First(); column < columns; column += Step()) {
    float sum = 0;
    for (int64_t row = 0; row < rows; ++row) sum += values[row * columns + column];
    sums[column] = sum;
  }
}

__global__ void SgdKernel(float* value, float* velocity, const float* gradient, int64_t size,
                          float learning_rate, float momentum, float scale) {
  for (int64_t i = First(); i < size; i += Step()) {
    velocity[i] = momentum * velocity[i] + scale * gradient[i];
    value[i] -= learning_rate * velocity[i];
  }
}

}  // namespace

cudaError_t LaunchProduct(bool optimized, DeviceMatrix a, DeviceMatrix b, const float* bias, int64_t rows,
                          int64_t columns, int64_t depth, float* out) {
  const int64_t size = rows * columns;
  if (optimized) {
    ProductKernel<true><<<Blocks(size), kThreads>>>(a.data, a.row_stride, a.column_stride, b.data,
                                                    b.row_stride, b.column_stride, bias, size, columns, depth,
                                                    out);
  } else {
    ProductKernel<false><<<Blocks(size), kThreads>>>(a.data, a.row_stride, a.column_stride, b.data,
                                                     b.row_stride, b.column_stride, bias, size, columns,
                                                     depth, out);
  }
  return cudaGetLastError();
}

cudaError_t LaunchRelu(float* values, int64_t size) {
  ReluKernel<<<Blocks(size), kThreads>>>(values, size);
  return cudaGetLastError();
}

cudaError_t LaunchReluBackward(const float* output, float* gradient, int64_t size) {
  ReluBackwardKernel<<<Blocks(size), kThreads>>>(output, gradient, size);
  return cudaGetLastError();
}

cudaError_t LaunchSoftmaxCrossEntropy(float* logits, const int* labels, int64_t rows, int64_t columns,
                                      float* losses) {
  SoftmaxCrossEntropyKernel<<<Blocks(rows), kThreads>>>(logits, labels, rows, columns, losses);
  return cudaGetLastError();
}

cudaError_t LaunchSoftmaxCrossEntropyBackward(const float* probabilities, const int* labels, int64_t rows,
                                              int64_t columns, float* gradient) {
  SoftmaxCrossEntropyBackwardKernel<<<Blocks(rows * columns), kThreads>>>(probabilities, labels,
                                                                          rows * columns, columns, gradient);
  return cudaGetLastError();
}

cudaError_t LaunchSumRows(const float* values, int64_t rows, int64_t columns, float* sums) {
  SumRowsKernel<<<Blocks(columns), kThreads>>>(values, rows, columns, sums);
  return cudaGetLastError();
}

cudaError_t LaunchSgd(float* value, float* velocity, const float* gradient, int64_t size, float learning_rate,
                      float momentum, float scale) {
  SgdKernel<<<Blocks(size), kThreads>>>(value, velocity, gradient, size, learning_rate, momentum, scale);
  return cudaGetLastError();
}

}  // namespace ott::examples
