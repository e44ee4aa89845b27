#include <cuda_runtime_api.h>

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "examples/train_digits/device_mlp.h"
#include "examples/train_digits/mlp_kernels.h"
#include "ott/core/base/check.h"
#include "ott/core/tensor/cuda_status.h"
#include "ott/op_range.h"
#include "ott/status_macros.h"

namespace ott::examples {
namespace {

using internal::FromCuda;

// An array in device memory or, as kPinned, in memory from which a device copies without the host's help.
template <typename T>
class Array {
 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() {
    if (data_ != nullptr) is_pinned_ ? cudaFreeHost(data_) : cudaFree(data_);
  }

  absl::Status Allocate(int64_t size, bool is_pinned = false) {
    is_pinned_ = is_pinned;
    const size_t num_bytes = static_cast<size_t>(size) * sizeof(T);
    void** const data = reinterpret_cast<void**>(&data_);
    return FromCuda(
        is_pinned ? cudaHostAlloc(data, num_bytes, cudaHostAllocDefault) : cudaMalloc(data, num_bytes),
        "memory for the network");
  }
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  bool is_pinned_ = false;
};

struct DeviceParameter {
  Array<float> value;
  Array<float> gradient;
  Array<float> velocity;
};

absl::Status CopyToDevice(const Array<float>& to, const std::vector<float>& from) {
  return FromCuda(cudaMemcpy(to.data(), from.data(), from.size() * sizeof(float), cudaMemcpyHostToDevice),
                  "cudaMemcpy");
}

absl::Status CopyFromDevice(const Array<float>& from, std::vector<float>& to) {
  return FromCuda(cudaMemcpy(to.data(), from.data(), to.size() * sizeof(float), cudaMemcpyDeviceToHost),
                  "cudaMemcpy");
}

DeviceMatrix RowMajor(const float* data, int64_t columns) { return {data, columns, 1}; }
DeviceMatrix Transposed(const float* data, int64_t columns) { return {data, 1, columns}; }

class CudaMlp final : public DeviceMlp {
 public:
  CudaMlp(Mlp& mlp, Kernel kernel, int64_t most_images, int device)
      : mlp_(mlp),
        optimized_(kernel == Kernel::kOptimized),
        most_images_(most_images),
        device_(device),
        hidden_size_(mlp.parameters()[1].shape[0]),
        parameters_(mlp.parameters().size()) {}

  absl::Status Start() {
    OTT_RETURN_IF_ERROR(FromCuda(cudaSetDevice(device_), "cudaSetDevice"));
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const auto size = static_cast<int64_t>(mlp_.parameters()[i].value.size());
      for (Array<float>* array :
           {&parameters_[i].value, &parameters_[i].gradient, &parameters_[i].velocity}) {
        OTT_RETURN_IF_ERROR(array->Allocate(size));
      }
      OTT_RETURN_IF_ERROR(CopyToDevice(parameters_[i].gradient, mlp_.parameters()[i].gradient));
      OTT_RETURN_IF_ERROR(CopyToDevice(parameters_[i].velocity, mlp_.parameters()[i].velocity));
    }
    OTT_RETURN_IF_ERROR(ValuesToDevice());
    for (const auto& [array, columns] :
         {std::pair(&images_, int64_t{kPixels}), std::pair(&hidden_, hidden_size_),
          std::pair(&hidden_gradient_, hidden_size_), std::pair(&probabilities_, int64_t{kClasses}),
          std::pair(&output_gradient_, int64_t{kClasses}), std::pair(&losses_, int64_t{1})}) {
      OTT_RETURN_IF_ERROR(array->Allocate(most_images_ * columns));
    }
    OTT_RETURN_IF_ERROR(labels_.Allocate(most_images_));
    OTT_RETURN_IF_ERROR(pinned_images_.Allocate(most_images_ * kPixels, true));
    OTT_RETURN_IF_ERROR(pinned_labels_.Allocate(most_images_, true));
    return pinned_losses_.Allocate(most_images_, true);
  }

  absl::StatusOr<double> Forward(const Digits& batch) override {
    OTT_PHASE("forward");
    OTT_CHECK(batch.count() <= most_images_) << batch.count() << " images";
    count_ = batch.count();
    OTT_RETURN_IF_ERROR(Upload(batch));
    OTT_RETURN_IF_ERROR(Linear("hidden", images_, kPixels, 0, hidden_size_, hidden_));
    {
      OTT_LAYER("hidden");
      OTT_OP_RANGE(op, "relu", {Rows(hidden_, hidden_size_)});
      OTT_RETURN_IF_ERROR(FromCuda(LaunchRelu(hidden_.data(), count_ * hidden_size_), "relu"));
      if (op.wants_outputs()) op.Outputs(Rows(hidden_, hidden_size_));
    }
    OTT_RETURN_IF_ERROR(Linear("output", hidden_, hidden_size_, 2, kClasses, probabilities_));
    OTT_OP_RANGE(op, "softmax_cross_entropy",
                 {{"logits", Rows(probabilities_, kClasses)}, {"labels", Labels()}});
    OTT_RETURN_IF_ERROR(FromCuda(
        LaunchSoftmaxCrossEntropy(probabilities_.data(), labels_.data(), count_, kClasses, losses_.data()),
        "softmax_cross_entropy"));
    OTT_ASSIGN_OR_RETURN(const double loss, SumOfLosses());
    if (op.wants_outputs()) {
      op.Outputs({{"probabilities", Rows(probabilities_, kClasses)}, {"loss", TensorView(&loss, {})}});
    }
    return loss;
  }

  absl::Status Backward() override {
    OTT_PHASE("backward");
    {
      OTT_OP_RANGE(op, OpRange::Backward("SoftmaxCrossEntropyBackward", {}),
                   {{"probabilities", Rows(probabilities_, kClasses)}, {"labels", Labels()}});
      OTT_RETURN_IF_ERROR(
          FromCuda(LaunchSoftmaxCrossEntropyBackward(probabilities_.data(), labels_.data(), count_, kClasses,
                                                     output_gradient_.data()),
                   "softmax_cross_entropy"));
      if (op.wants_outputs()) op.Outputs(Rows(output_gradient_, kClasses));
    }
    {
      OTT_LAYER("output");
      OTT_OP_RANGE(op, OpRange::Backward("LinearBackward", {}),
                   {{"gradient", Rows(output_gradient_, kClasses)},
                    {"input", Rows(hidden_, hidden_size_)},
                    {"weight", Value(2)}});
      OTT_RETURN_IF_ERROR(GradientsOfLinear(output_gradient_, kClasses, hidden_, hidden_size_, 2));
      OTT_RETURN_IF_ERROR(Product(RowMajor(output_gradient_.data(), kClasses),
                                  Transposed(parameters_[2].value.data(), hidden_size_), count_, hidden_size_,
                                  kClasses, hidden_gradient_.data()));
      if (op.wants_outputs()) {
        op.Outputs(
            {{"w2", Gradient(2)}, {"b2", Gradient(3)}, {"input", Rows(hidden_gradient_, hidden_size_)}});
      }
    }
    OTT_LAYER("hidden");
    {
      OTT_OP_RANGE(op, OpRange::Backward("ReluBackward", {}),
                   {Rows(hidden_gradient_, hidden_size_), Rows(hidden_, hidden_size_)});
      OTT_RETURN_IF_ERROR(FromCuda(
          LaunchReluBackward(hidden_.data(), hidden_gradient_.data(), count_ * hidden_size_), "relu"));
      if (op.wants_outputs()) op.Outputs(Rows(hidden_gradient_, hidden_size_));
    }
    OTT_OP_RANGE(op, OpRange::Backward("LinearBackward", {}),
                 {{"gradient", Rows(hidden_gradient_, hidden_size_)}, {"input", Rows(images_, kPixels)}});
    OTT_RETURN_IF_ERROR(GradientsOfLinear(hidden_gradient_, hidden_size_, images_, kPixels, 0));
    if (op.wants_outputs()) op.Outputs({{"w1", Gradient(0)}, {"b1", Gradient(1)}});
    return absl::OkStatus();
  }

  absl::Status Step(float learning_rate, float momentum, float scale) override {
    OTT_PHASE("update");
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const DeviceParameter& parameter = parameters_[i];
      OTT_LAYER(mlp_.parameters()[i].name);
      const TensorView velocity = View(parameter.velocity, i);
      OTT_OP_RANGE(op, OpRange::Update("sgd"),
                   {{"weight", Value(i)}, {"gradient", Gradient(i)}, {"velocity", velocity}},
                   {{"learning_rate", learning_rate}, {"momentum", momentum}, {"scale", scale}});
      OTT_RETURN_IF_ERROR(FromCuda(
          LaunchSgd(parameter.value.data(), parameter.velocity.data(), parameter.gradient.data(),
                    static_cast<int64_t>(mlp_.parameters()[i].value.size()), learning_rate, momentum, scale),
          "sgd"));
      if (op.wants_outputs()) op.Outputs({{"weight", Value(i)}, {"velocity", velocity}});
    }
    return absl::OkStatus();
  }

  TensorView Value(size_t parameter) const override { return View(parameters_[parameter].value, parameter); }
  TensorView Gradient(size_t parameter) const override {
    return View(parameters_[parameter].gradient, parameter);
  }
  void* GradientData(size_t parameter) override { return parameters_[parameter].gradient.data(); }

  absl::Status ValuesToHost() override {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      OTT_RETURN_IF_ERROR(CopyFromDevice(parameters_[i].value, mlp_.parameters()[i].value));
    }
    return absl::OkStatus();
  }
  absl::Status ValuesToDevice() override {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      OTT_RETURN_IF_ERROR(CopyToDevice(parameters_[i].value, mlp_.parameters()[i].value));
    }
    return absl::OkStatus();
  }
  absl::Status GradientToHost(size_t parameter) override {
    return CopyFromDevice(parameters_[parameter].gradient, mlp_.parameters()[parameter].gradient);
  }
  absl::Status GradientToDevice(size_t parameter) override {
    return CopyToDevice(parameters_[parameter].gradient, mlp_.parameters()[parameter].gradient);
  }

 private:
  Device OnDevice() const {
    Device device;
    device.kind = Device::Kind::kCuda;
    device.ordinal = device_;
    return device;
  }
  TensorView View(const Array<float>& array, size_t parameter) const {
    return TensorView(array.data(), DType::kFloat32, mlp_.parameters()[parameter].shape, OnDevice());
  }
  TensorView Rows(const Array<float>& array, int64_t columns) const {
    return TensorView(array.data(), DType::kFloat32, {count_, columns}, OnDevice());
  }
  TensorView Labels() const { return TensorView(labels_.data(), DType::kInt32, {count_}, OnDevice()); }

  // The buffers are free again, as Forward() has waited for the loss of the batch before.
  absl::Status Upload(const Digits& batch) {
    const size_t image_bytes = batch.images.size() * sizeof(float);
    const size_t label_bytes = batch.labels.size() * sizeof(int);
    std::memcpy(pinned_images_.data(), batch.images.data(), image_bytes);
    std::memcpy(pinned_labels_.data(), batch.labels.data(), label_bytes);
    OTT_RETURN_IF_ERROR(FromCuda(
        cudaMemcpyAsync(images_.data(), pinned_images_.data(), image_bytes, cudaMemcpyHostToDevice, nullptr),
        "cudaMemcpyAsync"));
    return FromCuda(
        cudaMemcpyAsync(labels_.data(), pinned_labels_.data(), label_bytes, cudaMemcpyHostToDevice, nullptr),
        "cudaMemcpyAsync");
  }

  absl::StatusOr<double> SumOfLosses() {
    OTT_RETURN_IF_ERROR(FromCuda(cudaMemcpyAsync(pinned_losses_.data(), losses_.data(),
                                                 count_ * sizeof(float), cudaMemcpyDeviceToHost, nullptr),
                                 "cudaMemcpyAsync"));
    OTT_RETURN_IF_ERROR(FromCuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize"));
    double loss = 0;
    for (int64_t i = 0; i < count_; ++i) loss += pinned_losses_.data()[i];
    return loss;
  }

  absl::Status Product(DeviceMatrix a, DeviceMatrix b, int64_t rows, int64_t columns, int64_t depth,
                       float* out, const float* bias = nullptr) {
    return FromCuda(LaunchProduct(optimized_, a, b, bias, rows, columns, depth, out), "matrix product");
  }

  // out = in weightᵀ + bias; the bias is the parameter behind the weight.
  absl::Status Linear(const char* layer, const Array<float>& in, int64_t depth, size_t weight,
                      int64_t columns, const Array<float>& out) {
    OTT_LAYER(layer);
    OTT_OP_RANGE(op, "linear",
                 {{"input", Rows(in, depth)}, {"weight", Value(weight)}, {"bias", Value(weight + 1)}});
    OTT_RETURN_IF_ERROR(Product(RowMajor(in.data(), depth), RowMajor(parameters_[weight].value.data(), depth),
                                count_, columns, depth, out.data(), parameters_[weight + 1].value.data()));
    if (op.wants_outputs()) op.Outputs(Rows(out, columns));
    return absl::OkStatus();
  }

  absl::Status GradientsOfLinear(const Array<float>& gradient, int64_t columns, const Array<float>& in,
                                 int64_t depth, size_t weight) {
    OTT_RETURN_IF_ERROR(Product(Transposed(gradient.data(), columns), Transposed(in.data(), depth), columns,
                                depth, count_, parameters_[weight].gradient.data()));
    return FromCuda(LaunchSumRows(gradient.data(), count_, columns, parameters_[weight + 1].gradient.data()),
                    "sum of rows");
  }

  Mlp& mlp_;
  const bool optimized_;
  const int64_t most_images_;
  const int device_;
  const int64_t hidden_size_;
  int64_t count_ = 0;  // of the batch
  std::vector<DeviceParameter> parameters_;
  Array<float> images_, hidden_, hidden_gradient_, probabilities_, output_gradient_, losses_;
  Array<int> labels_;
  Array<float> pinned_images_, pinned_losses_;
  Array<int> pinned_labels_;
};

}  // namespace

absl::StatusOr<int> DeviceOfRank(int rank) {
  int num_devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&num_devices);
  if (error != cudaSuccess || num_devices == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("--device: no usable GPU: ", cudaGetErrorString(error)));
  }
  return rank % num_devices;
}

absl::StatusOr<std::unique_ptr<DeviceMlp>> CreateDeviceMlp(Mlp& mlp, Kernel kernel, int64_t most_images,
                                                           int device) {
  auto device_mlp = std::make_unique<CudaMlp>(mlp, kernel, most_images, device);
  OTT_RETURN_IF_ERROR(device_mlp->Start());
  return device_mlp;
}

}  // namespace ott::examples
