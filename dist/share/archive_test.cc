#include "ott/dist/share/archive.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "gtest/gtest.h"
#include "ott/dist/share/share.pb.h"

namespace ott::archive_test {

enum class Color : uint8_t { kRed, kGreen };

struct Inner {
  std::string name;
  std::optional<double> weight;
};

struct Outer {
  int64_t low = 0;
  int64_t high = 0;
  uint64_t large = 0;
  int small = 0;
  bool flag = false;
  Color color = Color::kRed;
  double number = 0;
  std::vector<Inner> inner;
  absl::InlinedVector<int64_t, 6> dims;
  std::map<std::string, std::pair<int, double>> by_name;
  internal::FileRequest message;
};

template <typename Archive>
void Fields(Archive& archive, Inner& inner) {
  archive(inner.name, inner.weight);
}

template <typename Archive>
void Fields(Archive& archive, Outer& outer) {
  archive(outer.low, outer.high, outer.large, outer.small, outer.flag, outer.color, outer.number, outer.inner,
          outer.dims, outer.by_name, outer.message);
}

Outer Example() {
  Outer outer;
  outer.low = std::numeric_limits<int64_t>::min();
  outer.high = std::numeric_limits<int64_t>::max();
  outer.large = ~uint64_t{0};
  outer.small = -3;
  outer.flag = true;
  outer.color = Color::kGreen;
  outer.number = -0.0;
  outer.inner = {{std::string("a\0b", 3), std::nullopt}, {"", std::nan("")}};
  outer.dims = {0, 70000};
  outer.by_name["x"] = {1, 0.1};
  outer.message.set_path("p");
  return outer;
}

TEST(Archive, WhatIsReadIsWhatWasWritten) {
  const Outer outer = Example();
  Outer read;
  ASSERT_TRUE(FromBytes(ToBytes(outer), &read));
  EXPECT_EQ(read.low, outer.low);
  EXPECT_EQ(read.high, outer.high);
  EXPECT_EQ(read.large, outer.large);
  EXPECT_EQ(read.small, -3);
  EXPECT_TRUE(read.flag);
  EXPECT_EQ(read.color, Color::kGreen);
  EXPECT_TRUE(std::signbit(read.number));
  ASSERT_EQ(read.inner.size(), 2u);
  EXPECT_EQ(read.inner[0].name, outer.inner[0].name);
  EXPECT_FALSE(read.inner[0].weight);
  EXPECT_TRUE(std::isnan(*read.inner[1].weight));
  EXPECT_EQ(read.dims, outer.dims);
  EXPECT_EQ(read.by_name, outer.by_name);
  EXPECT_EQ(read.message.path(), "p");
}

TEST(Archive, SmallNumbersAreShort) {
  EXPECT_EQ(ToBytes(int64_t{-64}).size(), 1u);
  EXPECT_EQ(ToBytes(int64_t{64}).size(), 2u);
}

TEST(Archive, BytesThatAreCutOrTooManyAreRefused) {
  const std::string bytes = ToBytes(Example());
  Outer read;
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(FromBytes(bytes.substr(0, size), &read)) << size;
  EXPECT_FALSE(FromBytes(bytes + "x", &read));
}

TEST(Archive, ALengthBeyondTheBytesTakesNoMemory) {
  std::vector<double> read;
  EXPECT_FALSE(FromBytes("\xff\xff\xff\xff\xff\xff\x7f", &read));
  EXPECT_TRUE(read.empty());
}

}  // namespace ott::archive_test
