#include "tools/profile/shared_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ott::profile {
namespace {

constexpr uint64_t kMagic = 0x6f74745f63617074;  // "tpac_tto"
constexpr uint32_t kVersion = 1;
// Chunks begin at a page.
constexpr size_t kHeaderBytes = (sizeof(SharedBuffer::Header) + 4095) & ~size_t{4095};

constexpr size_t SizeOf(uint32_t num_chunks) {
  return kHeaderBytes + num_chunks * sizeof(SharedBuffer::Chunk);
}

void* Map(int fd, size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

std::unique_ptr<SharedBuffer> SharedBuffer::Create(size_t bytes) {
  const auto num_chunks =
      static_cast<uint32_t>(std::clamp<size_t>(bytes / sizeof(Chunk), 1, size_t{1} << 20));
  const size_t size = SizeOf(num_chunks);
  // The limit of files holds for this memory, too; going beyond it would end the program with SIGXFSZ.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < size) {
    errno = EFBIG;
    return nullptr;
  }
  const int fd = memfd_create("ott_capture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return nullptr;
  // Sealed, so that the reader cannot be hit by SIGBUS.
  void* memory = nullptr;
  if (ftruncate(fd, static_cast<off_t>(size)) == 0 &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) {
    memory = Map(fd, size);
  }
  if (memory == nullptr) {
    const int error = errno;
    close(fd);
    errno = error;
    return nullptr;
  }
  auto* header = static_cast<Header*>(memory);
  header->magic = kMagic;
  header->version = kVersion;
  header->num_chunks = num_chunks;
  return std::unique_ptr<SharedBuffer>(new SharedBuffer(fd, header, size));
}

std::unique_ptr<SharedBuffer> SharedBuffer::Attach(int fd, std::string* error) {
  struct stat info;
  const int seals = fcntl(fd, F_GET_SEALS);
  void* memory = nullptr;
  if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &info) == 0 &&
      info.st_size >= static_cast<off_t>(SizeOf(1))) {
    memory = Map(fd, static_cast<size_t>(info.st_size));
  }
  if (memory == nullptr) {
    *error = "no capture buffer";
    close(fd);
    return nullptr;
  }
  auto* header = static_cast<Header*>(memory);
  std::unique_ptr<SharedBuffer> buffer(new SharedBuffer(fd, header, static_cast<size_t>(info.st_size)));
  if (header->magic != kMagic || header->version != kVersion ||
      SizeOf(header->num_chunks) != static_cast<size_t>(info.st_size)) {
    *error = "the capture library in the process is of another version than ott";
    return nullptr;
  }
  return buffer;
}

SharedBuffer::~SharedBuffer() {
  munmap(header_, size_);
  close(fd_);
}

SharedBuffer::Chunk* SharedBuffer::chunk(uint32_t number) {
  const auto num_chunks = static_cast<uint32_t>((size_ - kHeaderBytes) / sizeof(Chunk));
  if (number == 0 || number > num_chunks) return nullptr;
  return reinterpret_cast<Chunk*>(reinterpret_cast<char*>(header_) + kHeaderBytes) + (number - 1);
}

uint32_t SharedBuffer::Take() {
  uint64_t head = header_->free_list.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(head) != 0) {
    const auto number = static_cast<uint32_t>(head);
    const uint32_t next = chunk(number)->next.load(std::memory_order_relaxed);
    const uint64_t rest = (((head >> 32) + 1) << 32) | next;
    if (header_->free_list.compare_exchange_weak(head, rest, std::memory_order_acquire)) {
      chunk(number)->next.store(0, std::memory_order_relaxed);
      return number;
    }
  }
  uint32_t used = header_->num_used.load(std::memory_order_relaxed);
  while (used < header_->num_chunks) {
    if (header_->num_used.compare_exchange_weak(used, used + 1, std::memory_order_relaxed)) return used + 1;
  }
  return 0;
}

void SharedBuffer::GiveBack(uint32_t number) {
  Chunk& given = *chunk(number);
  given.committed.store(0, std::memory_order_relaxed);
  uint64_t head = header_->free_list.load(std::memory_order_relaxed);
  uint64_t with_given;
  do {
    given.next.store(static_cast<uint32_t>(head), std::memory_order_relaxed);
    with_given = (((head >> 32) + 1) << 32) | number;
  } while (!header_->free_list.compare_exchange_weak(head, with_given, std::memory_order_release,
                                                     std::memory_order_relaxed));
}

uint32_t SharedBuffer::AddStream() {
  uint32_t number = header_->num_streams.load(std::memory_order_relaxed);
  while (number < kMaxStreams) {
    if (header_->num_streams.compare_exchange_weak(number, number + 1, std::memory_order_release)) break;
  }
  return number;
}

char* StreamWriter::ReserveInNextChunk() {
  const uint32_t number = buffer_->Take();
  if (number == 0) return nullptr;
  SharedBuffer::Chunk* const next = buffer_->chunk(number);
  std::atomic<uint32_t>& link = chunk_ == nullptr ? buffer_->header().first_chunk[stream_] : chunk_->next;
  link.store(number, std::memory_order_release);
  chunk_ = next;
  used_ = 0;
  return chunk_->data;
}

const Record* StreamReader::Next() {
  while (!is_corrupt_) {
    // The link first: once it is there, nothing more is committed before it.
    const uint32_t next = (chunk_ == nullptr ? buffer_->header().first_chunk[stream_] : chunk_->next)
                              .load(std::memory_order_acquire);
    const uint32_t committed = chunk_ == nullptr ? 0 : chunk_->committed.load(std::memory_order_acquire);
    if (committed > sizeof(chunk_->data)) break;
    if (read_ < committed) {
      const auto* const record = reinterpret_cast<const Record*>(chunk_->data + read_);
      const uint32_t size = record->size;
      if (size < sizeof(Record) || size > committed - read_) break;
      read_ += (size + 7) & ~7u;
      return record;
    }
    if (next == 0) return nullptr;
    if (chunk_ != nullptr) buffer_->GiveBack(number_);
    number_ = next;
    read_ = 0;
    chunk_ = buffer_->chunk(next);
    if (chunk_ == nullptr) break;
  }
  is_corrupt_ = true;
  return nullptr;
}

}  // namespace ott::profile
