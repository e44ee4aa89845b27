#include "dist/comm/nccl_gather_buffer.h"

#include <algorithm>
#include <cstring>

namespace ott {

cudaError_t NcclGatherBuffer::Allocate() {
  if (header_ != nullptr) return cudaSuccess;
  const size_t num_blocks = num_blocks_ * (rank_ == 0 ? 1 + num_ranks_ : 1);
  return cudaHostAlloc(reinterpret_cast<void**>(&header_), sizeof(Header) + num_blocks * kBlockBytes,
                       cudaHostAllocDefault);
}

void NcclGatherBuffer::Free() {
  if (header_ != nullptr) cudaFreeHost(header_);
  header_ = nullptr;
}

void NcclGatherBuffer::SetMine(std::string_view bytes) {
  header_->size = bytes.size();
  std::memcpy(Mine(0), &header_->size, sizeof(uint64_t));
  std::memcpy(Mine(0) + sizeof(uint64_t), bytes.data(), std::min(bytes.size(), Capacity()));
}

std::vector<std::string> NcclGatherBuffer::Gathered() const {
  if (rank_ != 0) return {};
  std::vector<std::string> bytes(num_ranks_);
  for (size_t from = 0; from < num_ranks_; ++from) {
    uint64_t num_bytes = 0;
    std::memcpy(&num_bytes, All(0) + from * kBlockBytes, sizeof(num_bytes));
    if (num_bytes > Capacity()) continue;
    const uint64_t end = sizeof(num_bytes) + num_bytes;
    for (uint64_t at = 0; at < end; at += kBlockBytes) {
      bytes[from].append(All(at / kBlockBytes) + from * kBlockBytes,
                         std::min<uint64_t>(kBlockBytes, end - at));
    }
    bytes[from].erase(0, sizeof(num_bytes));
  }
  return bytes;
}

bool NcclGatherBuffer::MakeRoom() {
  if (header_->largest <= Capacity()) return false;
  num_blocks_ = (header_->largest + sizeof(uint64_t)) * 5 / 4 / kBlockBytes + 1;
  Free();
  return true;
}

}  // namespace ott
