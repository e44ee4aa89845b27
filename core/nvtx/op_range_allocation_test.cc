// Op ranges allocate at a thread's first ranges, and nothing after them.

#include <atomic>
#include <cstdlib>
#include <new>

#include "gtest/gtest.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/tensor/tensor_view.h"

namespace {

std::atomic<int64_t> num_allocations{0};

}  // namespace

void* operator new(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  ++num_allocations;
  return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }

void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace ott {
namespace {

class OpRangeAllocationTest : public ::testing::Test {
 protected:
  void RunOps() {
    const LayerRange encoder(ranges_, "encoder");
    const LayerRange attention(ranges_, "attention_with_a_name_beyond_small_strings");
    OpRange op(OpRange::Op("linear").In(ranges_),
               {{"input", tensor_}, {"weight", tensor_}, {"bias", tensor_}},
               {{"stride", {1, 1}}, {"mode", "same"}, {"eps", 1e-5}});
    const OpRange backward(OpRange::Backward("LinearBackward0", op.Stash()).In(ranges_), {tensor_});
  }

  OpRanges ranges_;
  float data_[6] = {};
  const TensorView tensor_{data_, {2, 3}};
};

TEST_F(OpRangeAllocationTest, NothingAfterTheFirstRanges) {
  ASSERT_TRUE(ranges_.Enable({}).ok());
  RunOps();
  const int64_t before = num_allocations;
  for (int i = 0; i < 10000; ++i) RunOps();
  EXPECT_EQ(num_allocations, before);
}

TEST_F(OpRangeAllocationTest, NothingWhileOff) {
  const int64_t before = num_allocations;
  for (int i = 0; i < 1000; ++i) RunOps();
  EXPECT_EQ(num_allocations, before);
}

}  // namespace
}  // namespace ott
