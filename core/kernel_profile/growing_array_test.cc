#include "ott/core/kernel_profile/growing_array.h"

#include <sys/mman.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace ott::kernels {
namespace {

TEST(GrowingArray, KeepsItsElementsWhileItGrowsAndWhenItMoves) {
  GrowingArray<int64_t> array;
  for (int64_t i = 0; i < 3000000; ++i) array.push_back(i);
  GrowingArray<int64_t> moved = std::move(array);
  EXPECT_TRUE(array.empty());
  ASSERT_EQ(moved.size(), 3000000);
  EXPECT_EQ(moved[2999999], 2999999);
  EXPECT_EQ(std::accumulate(moved.begin(), moved.end(), int64_t{0}), int64_t{2999999} * 1500000);
  array.push_back(7);
  EXPECT_EQ(array[0], 7);
}

TEST(GrowingArray, WhatIsForgottenTakesNoMemory) {
  constexpr int64_t kPage = 4096;
  GrowingArray<int64_t> array;
  for (int64_t i = 0; i < 1000000; ++i) array.push_back(i);
  const auto num_pages_in_memory = [&] {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(array.begin()) / kPage * kPage;
    std::vector<unsigned char> pages(1000000 * sizeof(int64_t) / kPage);
    EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), pages.size() * kPage, pages.data()), 0);
    return std::accumulate(pages.begin(), pages.end(), 0,
                           [](int sum, unsigned char page) { return sum + (page & 1); });
  };
  EXPECT_EQ(num_pages_in_memory(), 1953);
  array.Forget(array.begin() + 500000);
  EXPECT_NEAR(num_pages_in_memory(), 977, 1);
  EXPECT_EQ(array[500000], 500000);
  EXPECT_EQ(array[999999], 999999);
}

}  // namespace
}  // namespace ott::kernels
