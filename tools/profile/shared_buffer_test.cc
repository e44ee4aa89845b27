#include "tools/profile/shared_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ott::profile {
namespace {

constexpr size_t kOneChunk = sizeof(SharedBuffer::Chunk);

bool Append(StreamWriter& writer, uint64_t number) {
  const NameRecord record{{sizeof(NameRecord), RecordKind::kString, 0, 0}, number, 0, 0};
  char* const place = writer.Reserve(sizeof(record));
  if (place == nullptr) return false;
  std::memcpy(place, &record, sizeof(record));
  writer.Commit(sizeof(record));
  return true;
}

uint64_t NumberOf(const Record* record) { return reinterpret_cast<const NameRecord*>(record)->time; }

// The buffer as the other process has it.
std::unique_ptr<SharedBuffer> Attached(SharedBuffer& buffer) {
  std::string error;
  auto attached = SharedBuffer::Attach(dup(buffer.fd()), &error);
  EXPECT_NE(attached, nullptr) << error;
  return attached;
}

// A buffer of one stream, whose reader is in the other process.
struct OneStream {
  explicit OneStream(size_t num_chunks) : buffer(SharedBuffer::Create(num_chunks * kOneChunk)) {}

  const std::unique_ptr<SharedBuffer> buffer;
  const std::unique_ptr<SharedBuffer> reading = Attached(*buffer);
  StreamWriter writer{buffer.get(), buffer->AddStream()};
  StreamReader reader{reading.get(), 0};
};

TEST(SharedBuffer, RecordsAreReadInOrder) {
  OneStream stream(4);
  auto& [buffer, reading, writer, reader] = stream;
  EXPECT_EQ(reader.Next(), nullptr);
  uint64_t written = 0, read = 0;
  // Many times what the buffer holds, since what was read is given back.
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 1500; ++i) ASSERT_TRUE(Append(writer, written++));
    while (const Record* const record = reader.Next()) ASSERT_EQ(NumberOf(record), read++);
    ASSERT_EQ(read, written);
  }
  EXPECT_FALSE(reader.is_corrupt());
}

TEST(SharedBuffer, AppendFailsWhileFullAndSucceedsOnceRead) {
  OneStream stream(2);
  auto& [buffer, reading, writer, reader] = stream;
  uint64_t written = 0, read = 0;
  while (Append(writer, written)) ++written;
  EXPECT_EQ(written, 2 * (sizeof(SharedBuffer::Chunk::data) / sizeof(NameRecord)));
  while (const Record* const record = reader.Next()) EXPECT_EQ(NumberOf(record), read++);
  EXPECT_EQ(read, written);
  EXPECT_TRUE(Append(writer, written));
  EXPECT_EQ(NumberOf(reader.Next()), written);
}

TEST(SharedBuffer, ThreadsAppendWhileOthersRead) {
  const auto buffer = SharedBuffer::Create(8 * kOneChunk);
  const auto reading = Attached(*buffer);
  constexpr int kThreads = 3;
  constexpr uint64_t kRecords = 100'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, stream = buffer->AddStream()] {
      StreamWriter writer(buffer.get(), stream);
      for (uint64_t number = 0; number < kRecords;) {
        if (Append(writer, number)) {
          ++number;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::vector<StreamReader> readers;
  for (uint32_t i = 0; i < kThreads; ++i) readers.emplace_back(reading.get(), i);
  uint64_t read[kThreads] = {};
  while (read[0] + read[1] + read[2] < kThreads * kRecords) {
    for (int i = 0; i < kThreads; ++i) {
      while (const Record* const record = readers[i].Next()) ASSERT_EQ(NumberOf(record), read[i]++);
      ASSERT_FALSE(readers[i].is_corrupt());
    }
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedBuffer, StreamThatWasOverwrittenIsLeftAlone) {
  // A size that no record has, or a link to no chunk.
  for (const uint32_t size : {0u, 7u, 33u << 10, 0xffffffffu, 1u}) {
    OneStream stream(2);
    auto& [buffer, reading, writer, reader] = stream;
    ASSERT_TRUE(Append(writer, 0));
    if (size == 1) {
      buffer->chunk(1)->next = 1000;
    } else {
      ASSERT_TRUE(Append(writer, 1));
      std::memcpy(buffer->chunk(1)->data + sizeof(NameRecord), &size, sizeof(size));
    }
    ASSERT_NE(reader.Next(), nullptr);
    EXPECT_EQ(reader.Next(), nullptr) << size;
    EXPECT_TRUE(reader.is_corrupt()) << size;
  }
}

TEST(SharedBuffer, OtherVersionIsRefused) {
  const auto buffer = SharedBuffer::Create(kOneChunk);
  ++buffer->header().version;
  std::string error;
  EXPECT_EQ(SharedBuffer::Attach(dup(buffer->fd()), &error), nullptr);
  EXPECT_NE(error.find("version"), std::string::npos) << error;
}

TEST(SharedBuffer, MemoryThatMightShrinkIsRefused) {
  const int fd = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 1 << 20), 0);
  std::string error;
  EXPECT_EQ(SharedBuffer::Attach(fd, &error), nullptr);
  EXPECT_FALSE(error.empty());
}

}  // namespace
}  // namespace ott::profile
