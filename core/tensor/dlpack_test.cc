#include "ott/core/tensor/dlpack.h"

#include <functional>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

template <typename Managed>
Managed Make(void* data, int64_t* shape, int32_t ndim, dlpack::DataType dtype, int* deleted) {
  Managed managed = {};
  managed.dl_tensor.data = data;
  managed.dl_tensor.device = {1, 0};
  managed.dl_tensor.ndim = ndim;
  managed.dl_tensor.dtype = dtype;
  managed.dl_tensor.shape = shape;
  managed.manager_ctx = deleted;
  managed.deleter = [](Managed* self) { ++*static_cast<int*>(self->manager_ctx); };
  return managed;
}

class DLPackTest : public testing::Test {
 protected:
  dlpack::ManagedTensor MakeFloats() {
    return Make<dlpack::ManagedTensor>(data_, shape_, 2, {2, 32, 1}, &deleted_);
  }

  float data_[7] = {0, 1, 2, 3, 4, 5, 6};
  int64_t shape_[2] = {2, 3};
  int deleted_ = 0;
};

TEST_F(DLPackTest, TensorIsSharedUntilTheLastUserIsDone) {
  dlpack::ManagedTensor managed = MakeFloats();
  managed.dl_tensor.byte_offset = 4;
  {
    const Tensor tensor = FromDLPack(&managed).value();
    EXPECT_EQ(tensor.view.data(), data_ + 1);
    EXPECT_EQ(tensor.view.dtype(), DType::kFloat32);
    EXPECT_EQ(tensor.view.shape(), Dims({2, 3}));
    EXPECT_TRUE(tensor.view.is_contiguous());
    const Tensor copy = tensor;
    EXPECT_EQ(deleted_, 0);
  }
  EXPECT_EQ(deleted_, 1);
}

TEST_F(DLPackTest, VersionedTensorsAreTaken) {
  auto managed = Make<dlpack::ManagedTensorVersioned>(data_, shape_, 1, {4, 16, 1}, &deleted_);
  managed.major_version = 1;
  EXPECT_EQ(FromDLPack(&managed)->view.dtype(), DType::kBFloat16);
  EXPECT_EQ(deleted_, 1);
  managed.major_version = 2;
  EXPECT_EQ(FromDLPack(&managed).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(deleted_, 2);
}

TEST_F(DLPackTest, StridesDeviceAndStreamAreKept) {
  dlpack::ManagedTensor managed = MakeFloats();
  int64_t strides[2] = {1, 2};
  managed.dl_tensor.strides = strides;
  managed.dl_tensor.device = {2, 3};
  const Tensor tensor = FromDLPack(&managed, data_).value();
  EXPECT_EQ(tensor.view.strides(), Dims({1, 2}));
  EXPECT_EQ(tensor.view.device().kind, Device::Kind::kCuda);
  EXPECT_EQ(tensor.view.device().ordinal, 3);
  EXPECT_EQ(tensor.view.device().stream, data_);
}

TEST_F(DLPackTest, WhatATensorCannotBeIsAnErrorAndIsGivenBack) {
  const auto code_with = [&](const std::function<void(dlpack::DLTensor&)>& change) {
    dlpack::ManagedTensor managed = MakeFloats();
    change(managed.dl_tensor);
    return FromDLPack(&managed).status().code();
  };
  EXPECT_EQ(code_with([](auto& of) { of.dtype.lanes = 4; }), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code_with([](auto& of) { of.device.device_type = 10; }), absl::StatusCode::kUnimplemented);
  const std::vector<std::function<void(dlpack::DLTensor&)>> invalid = {
      [](auto& of) { of.data = nullptr; }, [](auto& of) { of.shape = nullptr; },
      [](auto& of) { of.ndim = -1; }, [](auto& of) { of.shape[0] = -1; }};
  for (const auto& change : invalid) EXPECT_EQ(code_with(change), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(deleted_, 6);
  // Without elements there need be no data.
  EXPECT_EQ(code_with([](auto& of) { of.data = nullptr, of.shape[0] = 0; }), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace ott
