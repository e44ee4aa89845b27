// The file of a log of operations, all numbers little-endian:
//
//   OpLogHeader
//   records, each at a multiple of 8 bytes: OpLogRecordHeader, then what its kind says, padded to 8 bytes
//
// A size of 0, or the end of the file, is where the log ends; a log that was finished has a kEnd there. What
// is written is complete in the page cache as soon as its size is, so a log survives its process.
//
//   kDefinition  what does not change from one run of an operation to the next: four strings (name, module,
//                phase, source file), uint32 line, uint8 OpRole, uint8 whether backward, uint32 number of
//                tensors, and of each a string (name), uint8 whether output, a string (dtype), uint32
//                dimensions, and int64 each. A string is a uint32 size and its bytes; nothing is padded. The
//                n-th definition of a file has id n, from 0.
//   kIteration   int64: the number of the iteration that the operations after it are of
//   kOp          id: its definition's. OpLogOp, an OpLogTensor for each tensor of the definition, where flags
//                has kOpHasNonFinite an OpLogNonFinite for each, then num_text_bytes of text: the arguments
//                that are no tensors, "lr=0.1, eps=1e-08"
//   kEnd         nothing
//
// Operations are in the order in which they ended.

#ifndef OTT_CORE_OP_LOG_OP_LOG_FORMAT_H_
#define OTT_CORE_OP_LOG_OP_LOG_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ott/core/digest/digest.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/core/digest/digest_arithmetic.h"

namespace ott::internal {

inline constexpr char kOpLogMagic[8] = {'O', 'T', 'T', 'O', 'P', 'L', 'O', 'G'};
inline constexpr uint32_t kOpLogVersion = 2;
inline constexpr uint32_t kOpLogDigestBits = 128;

struct OpLogHeader {
  char magic[8];
  uint32_t version;
  uint32_t digest_bits;
  uint32_t rank;
  uint32_t world_size;
  uint32_t num_sketch_sums;
  uint32_t reserved[9];
};
static_assert(sizeof(OpLogHeader) == 64);

enum OpLogRecordKind : uint16_t { kDefinition = 1, kIteration = 2, kOp = 3, kEnd = 4 };
inline constexpr uint16_t kOpHasNonFinite = 1;

struct OpLogRecordHeader {
  // Bytes of the record with this header, a multiple of 8. Written last.
  uint32_t size;
  // OpLogCheck() of what follows this header.
  uint32_t check;
  uint16_t kind;
  uint16_t flags;
  uint32_t id;
};
static_assert(sizeof(OpLogRecordHeader) == 16);

struct OpLogOp {
  // The sequence number of its node of the backward pass; below 0: none.
  int64_t seq;
  // The kernel's id of the thread.
  uint32_t thread;
  // Its number among those of its iteration, in the order in which they began, from 0.
  uint32_t number;
  uint32_t num_text_bytes;
  uint32_t reserved;
};
static_assert(sizeof(OpLogOp) == 24);

// A digest of zeros stands for a tensor that could not be read.
struct OpLogTensor {
  uint64_t digest_low;
  uint64_t digest_high;
  double norm;
  double max_abs;
  float sketch[TensorSketch::kNumSums];
};
static_assert(sizeof(OpLogTensor) == 96);

struct OpLogNonFinite {
  int64_t num_nan;
  int64_t num_infinite;
};

// num_bytes: a multiple of 8.
inline uint32_t OpLogCheck(const char* data, size_t num_bytes) {
  uint64_t check = kDigestGolden ^ num_bytes;
  for (size_t i = 0; i < num_bytes; i += 8) {
    uint64_t word;
    std::memcpy(&word, data + i, 8);
    check = (check ^ word) * 0xff51afd7ed558ccd;
    check ^= check >> 32;
  }
  return static_cast<uint32_t>(check >> 16);
}

}  // namespace ott::internal

#endif  // OTT_CORE_OP_LOG_OP_LOG_FORMAT_H_
