#include "ott/core/tensor/buffer_pool.h"

#include <cstring>
#include <optional>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(BufferPool, GivesABufferOfTheSameSizeAgain) {
  BufferPool pool(1000);
  void* const first = pool.Allocate(100).value().get();
  const std::shared_ptr<void> other = pool.Allocate(200).value();
  const std::shared_ptr<void> again = pool.Allocate(100).value();
  EXPECT_EQ(again.get(), first);
  EXPECT_NE(pool.Allocate(100).value().get(), first);
}

TEST(BufferPool, KeepsNoMoreThanItsLimit) {
  BufferPool pool(150);
  std::shared_ptr<void> first = pool.Allocate(100).value();
  std::shared_ptr<void> second = pool.Allocate(100).value();
  void* const address = first.get();
  first.reset();
  second.reset();
  // Only the first one was kept; the pool is not asked for the second one's memory twice.
  EXPECT_EQ(pool.Allocate(100).value().get(), address);
}

TEST(BufferPool, BuffersOutliveThePool) {
  std::optional<BufferPool> pool(1000);
  const std::shared_ptr<void> buffer = pool->Allocate(100).value();
  pool.reset();
  std::memset(buffer.get(), 1, 100);
}

}  // namespace
}  // namespace ott
