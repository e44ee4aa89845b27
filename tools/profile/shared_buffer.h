// Memory that a captured process shares with `ott profile`: the process appends records, `ott profile` reads
// them. The process may end at any instruction, by kill -9 too: what it appended until then is read all the
// same.
//
// Each thread of the process appends to a stream of its own, a list of chunks from a common supply; the
// reader gives them back. Neither side ever waits for the other: where no chunk is left an append fails.

#ifndef OTT_TOOLS_PROFILE_SHARED_BUFFER_H_
#define OTT_TOOLS_PROFILE_SHARED_BUFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tools/profile/records.h"

namespace ott::profile {

class SharedBuffer {
 public:
  static constexpr uint32_t kMaxStreams = 8192;

  struct Chunk {
    std::atomic<uint32_t> committed;  // bytes of whole records in data
    std::atomic<uint32_t> next;       // number of the chunk after this one, from 1; 0: none yet
    char data[(32 << 10) - 8];
  };

  struct Header {
    uint64_t magic;
    uint32_t version;  // of this layout and of the records
    uint32_t num_chunks;
    // About the process.
    int32_t pid;
    int32_t rank;  // -1: of no job
    char program[64];
    std::atomic<uint32_t> has_cuda;  // 1: CUPTI records
    // The streams of the records.
    std::atomic<uint32_t> num_streams;
    std::atomic<uint64_t> num_dropped;
    std::atomic<uint64_t> num_truncated;
    // The supply: a list of chunks given back, under a count that tells equal heads apart; then those never
    // used.
    std::atomic<uint64_t> free_list;
    std::atomic<uint32_t> num_used;
    std::atomic<uint32_t> first_chunk[kMaxStreams];
  };

  // At least one chunk. Null, and errno, if the memory cannot be had.
  static std::unique_ptr<SharedBuffer> Create(size_t bytes);
  // Returns the other process's. Takes the descriptor. Null, and what is wrong with it, if it is no buffer of
  // this version.
  static std::unique_ptr<SharedBuffer> Attach(int fd, std::string* error);

  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;
  ~SharedBuffer();

  int fd() const { return fd_; }
  Header& header() { return *header_; }

  // Returns the chunk of this number; null if there is none.
  Chunk* chunk(uint32_t number);

  // Takes an empty chunk from the supply: its number, 0 if none is left.
  uint32_t Take();
  void GiveBack(uint32_t number);

  // Returns a new stream's number; kMaxStreams if there are no more.
  uint32_t AddStream();

 private:
  SharedBuffer(int fd, Header* header, size_t size) : fd_(fd), header_(header), size_(size) {}

  const int fd_;
  Header* const header_;
  const size_t size_;
};

// Appends to one stream. Not thread-safe.
class StreamWriter {
 public:
  // The longest record.
  static constexpr uint32_t kMaxRecord = sizeof(SharedBuffer::Chunk::data);

  StreamWriter(SharedBuffer* buffer, uint32_t stream) : buffer_(buffer), stream_(stream) {}

  // Room for a record of so many bytes, kMaxRecord at most; null if the supply is used up.
  char* Reserve(uint32_t size) {
    if (__builtin_expect(used_ + size <= kMaxRecord, 1)) return chunk_->data + used_;
    return ReserveInNextChunk();
  }

  // Publishes the record that was reserved last.
  void Commit(uint32_t size) {
    used_ += (size + 7) & ~7u;
    chunk_->committed.store(used_, std::memory_order_release);
  }

 private:
  char* ReserveInNextChunk();

  SharedBuffer* buffer_;
  uint32_t stream_;
  uint32_t used_ = kMaxRecord;
  SharedBuffer::Chunk* chunk_ = nullptr;
};

// Reads one stream. Trusts nothing it reads: the other process may have written where it should not.
class StreamReader {
 public:
  StreamReader(SharedBuffer* buffer, uint32_t stream) : buffer_(buffer), stream_(stream) {}

  // Returns the next record, if there is one. It is valid until the next call.
  const Record* Next();

  // The stream was overwritten and is not read any further.
  bool is_corrupt() const { return is_corrupt_; }

 private:
  SharedBuffer* buffer_;
  uint32_t stream_;
  uint32_t number_ = 0;
  uint32_t read_ = 0;
  SharedBuffer::Chunk* chunk_ = nullptr;
  bool is_corrupt_ = false;
};

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_SHARED_BUFFER_H_
