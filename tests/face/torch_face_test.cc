// The part of the face that needs LibTorch.

#include "gtest/gtest.h"
#include "ott/torch.h"

namespace names_that_stay {

using ott::DTypeFromTorch;
using ott::EmitNvtx;
using ott::FromTorch;

}  // namespace names_that_stay

TEST(TorchFace, KnowsTorchsTypes) { EXPECT_EQ(*ott::DTypeFromTorch(at::kFloat), ott::DType::kFloat32); }
