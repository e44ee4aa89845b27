// Measuring allocates at a name's first use, and nothing after it.

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "gtest/gtest.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace {

std::atomic<int64_t> num_allocations{0};
std::atomic<int64_t> bytes_allocated{0};

}  // namespace

void* operator new(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  ++num_allocations;
  bytes_allocated += static_cast<int64_t>(malloc_usable_size(memory));
  return memory;
}

void operator delete(void* memory) noexcept {
  bytes_allocated -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace ott {
namespace {

std::atomic<uint64_t> now_ns{0};

class StopwatchAllocationTest : public ::testing::Test {
 protected:
  void Enable(size_t series_limit) {
    Stopwatch::Options options;
    options.series_limit = series_limit;
    ASSERT_TRUE(stopwatch_.Enable(options).ok());
  }

  void MeasureAll(uint64_t duration) {
    const Stopwatch::Scope outer(stopwatch_, "outer");
    stopwatch_.Start("by name");
    stopwatch_.Start(handle_);
    const Stopwatch::Scope scope(stopwatch_, handle_of_scope_);
    now_ns += duration;
    stopwatch_.End(handle_);
    stopwatch_.End("by name");
  }

  Stopwatch stopwatch_{Stopwatch::Environment{Clock([] { return now_ns.load(); })}};
  Stopwatch::Measurement handle_{"by handle"};
  Stopwatch::Measurement handle_of_scope_{"scope"};
};

TEST_F(StopwatchAllocationTest, NothingAfterTheFirstUseOfAName) {
  Enable(1000);
  MeasureAll(1000);
  stopwatch_.FinishIter();
  const int64_t before = num_allocations;
  for (int iteration = 0; iteration < 5000; ++iteration) {
    // From 1 to 7 us: three octaves.
    for (uint64_t i = 1; i < 8; ++i) MeasureAll(i * 1000);
    stopwatch_.FinishIter();
  }
  EXPECT_EQ(num_allocations, before);
}

TEST_F(StopwatchAllocationTest, NothingWhileOff) {
  const int64_t before = num_allocations;
  for (int i = 0; i < 1000; ++i) {
    MeasureAll(1000);
    stopwatch_.FinishIter();
  }
  EXPECT_EQ(num_allocations, before);
}

TEST_F(StopwatchAllocationTest, AMeasurementTakesLessThan4608BytesWithoutItsSeries) {
  Enable(0);
  constexpr int kMeasurements = 200;
  for (int round = 0; round < 10; ++round) {
    const int64_t before = bytes_allocated;
    for (int i = 0; i < kMeasurements; ++i) {
      const std::string name = "measurement " + std::to_string(i);
      stopwatch_.Start(name);
      now_ns += 1000;
      stopwatch_.End(name);
    }
    stopwatch_.FinishIter();
    const int64_t each = (bytes_allocated - before) / kMeasurements;
    if (round == 0) RecordProperty("bytes_each", std::to_string(each));
    EXPECT_LT(each, round == 0 ? 4608 : 1);
  }
}

}  // namespace
}  // namespace ott
