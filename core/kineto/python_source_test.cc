#include "ott/core/kineto/python_source.h"

#include "gtest/gtest.h"

namespace ott::kineto {
namespace {

TEST(PythonSource, IsTheFirstFrameOutsideOfPyTorch) {
  EXPECT_EQ(SourceOfFrame("train.py(12): forward"), "train.py:12");
  EXPECT_EQ(SourceOfFrame("a (b)/c.py(7): g(x): h"), "a (b)/c.py(7): g:x");
  EXPECT_EQ(SourceOfFrame("/my/torch_like/x.py(3): f"), "/my/torch_like/x.py:3");
  for (const char* const none : {"", "<string>(1): f", "torch/nn/x.py(3): f", "/usr/torch/x.py(3): f",
                                 "no frame", "f (x)", "f): ", "built-in method"}) {
    EXPECT_EQ(SourceOfFrame(none), "") << none;
  }
  EXPECT_EQ(SourceOfStack("torch/nn/x.py(3): f;train.py(12): g;main.py(1): h"), "train.py:12");
  EXPECT_EQ(SourceOfStack("torch/nn/x.py(3): f;"), "");
  EXPECT_EQ(SourceOfStack(""), "");
}

}  // namespace
}  // namespace ott::kineto
