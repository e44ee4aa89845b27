// ZIP archives whose entries are used where they lie in the mapped file.

#ifndef OTT_CORE_CHECKPOINT_ZIP_ARCHIVE_H_
#define OTT_CORE_CHECKPOINT_ZIP_ARCHIVE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ott/core/base/file.h"

namespace ott {

// Bytes, and what keeps them.
struct HeldBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
  bool file_backed = false;  // part of a mapped file
};

// A reader of our own (docs/decisions/zip_reader.md), as tensors are to stay in the file. Reads what PyTorch
// and NumPy write: entries that are stored or deflated, also larger than 4 GiB, on one disk and not
// encrypted. After PKWARE's APPNOTE 6.3.
//
// Hostile archives: names that are there twice, entries that overlap each other or reach out of the file, and
// more than kMaxUnpackedBytes of deflated entries in all are errors that name the entry.
class ZipArchive {
 public:
  static constexpr int64_t kMaxUnpackedBytes = int64_t{4} << 30;

  struct Entry {
    std::string_view name;
    bool deflated = false;
    uint32_t crc = 0;
    int64_t offset = 0;  // of the bytes
    int64_t num_stored = 0;
    int64_t num_bytes = 0;
  };

  // Returns DATA_LOSS if the file is cut; INVALID_ARGUMENT if it is no archive that is read here.
  static absl::StatusOr<ZipArchive> Open(HeldBytes file);

  const std::vector<Entry>& entries() const { return entries_; }
  // Returns null if there is none.
  const Entry* Find(std::string_view name) const;

  // Reads an entry; a deflated one is unpacked into memory, and checked.
  absl::StatusOr<HeldBytes> Read(const Entry& entry) const;

 private:
  HeldBytes file_;
  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string_view, size_t> by_name_;
};

}  // namespace ott

#endif  // OTT_CORE_CHECKPOINT_ZIP_ARCHIVE_H_
