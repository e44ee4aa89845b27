#include "ott/core/tensor/buffer_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(BufferPool, KeepsNoMoreThanItsLimit) {
  int num_allocated = 0;
  BufferPool pool(150, [&](int64_t num_bytes) {
    ++num_allocated;
    return AllocateHost(num_bytes);
  });
  for (const int expected : {2, 3}) {
    const std::shared_ptr<void> first = pool.Allocate(100).value();
    const std::shared_ptr<void> second = pool.Allocate(100).value();
    EXPECT_EQ(num_allocated, expected);
  }
}

TEST(BufferPool, GivesABufferOfTheSameSizeOrALittleMoreAgain) {
  BufferPool pool(1000);
  void* const first = pool.Allocate(100).value().get();
  const std::shared_ptr<void> other = pool.Allocate(200).value();
  EXPECT_EQ(pool.Allocate(80).value().get(), first);
  EXPECT_NE(pool.Allocate(70).value().get(), first);
  const std::shared_ptr<void> again = pool.Allocate(100).value();
  EXPECT_EQ(again.get(), first);
  EXPECT_NE(pool.Allocate(100).value().get(), first);
}

// Returns the share of the pages of this memory that the machine has handed out.
double ResidentFraction(void* memory, int64_t num_bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(memory) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + num_bytes) / page * page;
  std::vector<unsigned char> resident((end - begin) / page);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(begin), end - begin, resident.data()), 0);
  const auto is_resident = [](unsigned char state) { return (state & 1) != 0; };
  return static_cast<double>(std::count_if(resident.begin(), resident.end(), is_resident)) /
         static_cast<double>(resident.size());
}

TEST(BufferPool, ReservedBuffersNeedNoPagesOfTheMachine) {
  constexpr int64_t kBytes = 3 << 20;
  BufferPool pool(4 * kBytes);
  // A page or two may be the allocator's.
  EXPECT_LT(ResidentFraction(pool.Allocate(kBytes).value().get(), kBytes), 0.01);
  BufferPool reserved(4 * kBytes);
  reserved.Reserve(2 * kBytes);
  std::shared_ptr<void> buffer = reserved.Allocate(kBytes).value();
  void* const rest = static_cast<char*>(buffer.get()) + kBytes;
  EXPECT_EQ(ResidentFraction(buffer.get(), kBytes), 1);
  EXPECT_EQ(ResidentFraction(rest, kBytes), 1);
  std::memset(buffer.get(), 1, kBytes);
  reserved.ReleaseReserve();
  EXPECT_EQ(ResidentFraction(rest, kBytes), 0);
  EXPECT_EQ(static_cast<char*>(buffer.get())[kBytes - 1], 1);
  void* const address = buffer.get();
  buffer.reset();
  EXPECT_EQ(reserved.Allocate(kBytes).value().get(), address);
  EXPECT_EQ(reserved.Allocate(int64_t{1} << 60).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(BufferPool, BuffersOutliveThePool) {
  std::optional<BufferPool> pool(1000);
  const std::shared_ptr<void> buffer = pool->Allocate(100).value();
  pool.reset();
  std::memset(buffer.get(), 1, 100);
}

}  // namespace
}  // namespace ott
