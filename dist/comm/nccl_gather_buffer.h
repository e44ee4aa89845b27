// Holds the bytes of a gather to rank 0.

#ifndef OTT_DIST_COMM_NCCL_GATHER_BUFFER_H_
#define OTT_DIST_COMM_NCCL_GATHER_BUFFER_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ott {

// Pinned memory of one rank, which the device reads and writes: its bytes in blocks, preceded by their size;
// and on rank 0 for each block those of all ranks. It has no memory until Allocate().
class NcclGatherBuffer {
 public:
  // The bytes that a rank brings to one step of a gather: as little device memory as possible, as each rank
  // has that of all.
  static constexpr size_t kBlockBytes = 16 * 1024;

  NcclGatherBuffer(int rank, int num_ranks) : rank_(rank), num_ranks_(static_cast<size_t>(num_ranks)) {}
  NcclGatherBuffer(const NcclGatherBuffer&) = delete;
  NcclGatherBuffer& operator=(const NcclGatherBuffer&) = delete;
  ~NcclGatherBuffer() { Free(); }

  // Does nothing where there is memory.
  cudaError_t Allocate();
  void Free();

  // Sets what this rank brings, without what there is no room for.
  void SetMine(std::string_view bytes);

  size_t num_blocks() const { return num_blocks_; }
  // Returns the size of this rank's bytes; and where the largest of all ranks' sizes is to be put.
  uint64_t* size() const { return &header_->size; }
  uint64_t* largest() const { return &header_->largest; }
  // Returns the blocks of this number: this rank's, and on rank 0 those of all ranks.
  char* Mine(size_t block) const { return reinterpret_cast<char*>(header_ + 1) + block * kBlockBytes; }
  char* All(size_t block) const { return Mine(num_blocks_ + block * num_ranks_); }

  // Returns on rank 0 one element a rank, empty if there was no room for its bytes; elsewhere none.
  std::vector<std::string> Gathered() const;
  // Returns true if there was not enough for all ranks' bytes. Then it has no memory, and the next has
  // enough.
  bool MakeRoom();

 private:
  struct Header {
    uint64_t size;
    uint64_t largest;
  };

  // Returns for how many bytes of a rank there is room.
  size_t Capacity() const { return num_blocks_ * kBlockBytes - sizeof(uint64_t); }

  const int rank_;
  const size_t num_ranks_;
  size_t num_blocks_ = 8;
  Header* header_ = nullptr;
};

}  // namespace ott

#endif  // OTT_DIST_COMM_NCCL_GATHER_BUFFER_H_
