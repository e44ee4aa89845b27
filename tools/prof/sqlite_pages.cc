#include "tools/prof/sqlite_pages.h"

#include <byteswap.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott::prof {
namespace {

constexpr size_t kFileHeader = 100;
constexpr int kMaxDepth = 64;
constexpr uint32_t kPagesAhead = 16;
constexpr uint8_t kInteriorTable = 5;
constexpr uint8_t kLeafTable = 13;

uint64_t BigEndian(const uint8_t* bytes, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | bytes[i];
  return value;
}

uint32_t Get16(const uint8_t* bytes) { return static_cast<uint32_t>(BigEndian(bytes, 2)); }
uint32_t Get32(const uint8_t* bytes) { return static_cast<uint32_t>(BigEndian(bytes, 4)); }

// Seven bits a byte, the highest first; the ninth byte gives eight. Returns where it ends; nullptr if that is
// beyond end.
inline const uint8_t* GetVarint(const uint8_t* at, const uint8_t* end, uint64_t* value) {
  if (at < end && *at < 0x80) {
    *value = *at;
    return at + 1;
  }
  uint64_t result = 0;
  for (int i = 0; i < 9; ++i, ++at) {
    if (at >= end) return nullptr;
    if (i == 8) {
      *value = result << 8 | *at;
      return at + 1;
    }
    result = result << 7 | (*at & 0x7f);
    if (*at < 0x80) {
      *value = result;
      return at + 1;
    }
  }
  return nullptr;
}

// size: 1 to 8. end: of what may be read.
inline int64_t SignedBigEndian(const uint8_t* bytes, size_t size, const uint8_t* end) {
  const int shift = 64 - 8 * static_cast<int>(size);
  if (end - bytes < 8) return static_cast<int64_t>(BigEndian(bytes, size) << shift) >> shift;
  uint64_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return static_cast<int64_t>(bswap_64(value)) >> shift;
}

constexpr size_t BytesOfType(uint64_t type) {
  constexpr uint8_t kSizes[12] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  return type < 12 ? kSizes[type] : static_cast<size_t>((type - 12) / 2);
}

// Of the types that take one byte.
constexpr auto kBytesOfTypes = [] {
  std::array<uint8_t, 128> bytes{};
  for (size_t type = 0; type < bytes.size(); ++type) bytes[type] = static_cast<uint8_t>(BytesOfType(type));
  return bytes;
}();

inline void SetValue(uint64_t type, const uint8_t* bytes, size_t size, const uint8_t* end,
                     SqliteValue* value) {
  if (type >= 12) {
    value->type = type % 2 == 0 ? SqliteValue::Type::kBlob : SqliteValue::Type::kText;
    value->bytes = {reinterpret_cast<const char*>(bytes), size};
  } else if (type == 0) {
    value->type = SqliteValue::Type::kNull;
  } else if (type == 7) {
    value->type = SqliteValue::Type::kReal;
    const uint64_t bits = BigEndian(bytes, 8);
    std::memcpy(&value->real, &bits, sizeof(bits));
  } else {
    value->type = SqliteValue::Type::kInteger;
    value->integer = type < 7 ? SignedBigEndian(bytes, size, end) : type == 9 ? 1 : 0;
  }
}

absl::Status Damaged() { return absl::DataLossError("its pages do not make a table"); }

}  // namespace

absl::StatusOr<std::unique_ptr<SqlitePages>> SqlitePages::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  return std::unique_ptr<SqlitePages>(new SqlitePages(fd));
}

SqlitePages::~SqlitePages() { close(fd_); }

bool SqlitePages::IsPlain() {
  constexpr uint8_t kRollbackJournal = 1;
  constexpr uint32_t kUtf8 = 1;
  std::array<uint8_t, kFileHeader> header;
  struct stat status;
  if (pread(fd_, header.data(), header.size(), 0) != ssize_t{kFileHeader} || fstat(fd_, &status) != 0) {
    return false;
  }
  page_size_ = Get16(&header[16]) == 1 ? 65536 : Get16(&header[16]);
  usable_size_ = page_size_ - header[20];
  if (page_size_ < 512 || (page_size_ & (page_size_ - 1)) != 0 || usable_size_ < 480) return false;
  num_pages_ =
      static_cast<uint32_t>(std::min<size_t>(static_cast<size_t>(status.st_size) / page_size_, 0xfffffffe));
  return header[18] == kRollbackJournal && header[19] == kRollbackJournal && Get32(&header[56]) == kUtf8;
}

const uint8_t* SqlitePages::Page(uint32_t number, Pages* pages) const {
  if (number == 0 || number > num_pages_) return nullptr;
  const auto page_size = static_cast<uint32_t>(page_size_);
  if (number - pages->first >= pages->count) {
    // One that follows will not be the last to do so.
    const uint32_t ahead = number == pages->first + pages->count ? kPagesAhead : 1;
    pages->first = number;
    pages->count = std::min(ahead, num_pages_ - number + 1);
    pages->bytes.resize(size_t{pages->count} * page_size);
    const ssize_t size = pread(fd_, pages->bytes.data(), pages->bytes.size(), off_t{number - 1} * page_size);
    pages->count = size < 0 ? 0 : static_cast<uint32_t>(size) / page_size;
    if (pages->count == 0) return nullptr;
  }
  return pages->bytes.data() + size_t{number - pages->first} * page_size;
}

absl::Status SqlitePages::Scan(uint32_t root_page, const std::vector<int>& columns, int rowid_column,
                               const std::function<void(const SqliteRow&)>& read) {
  values_.assign(columns.size(), {});
  slots_.clear();
  rowid_slot_ = -1;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] < 0) continue;
    if (columns[i] == rowid_column) rowid_slot_ = static_cast<int>(i);
    slots_.resize(std::max(slots_.size(), static_cast<size_t>(columns[i]) + 1), -1);
    slots_[static_cast<size_t>(columns[i])] = static_cast<int>(i);
  }
  read_ = &read;
  // Depth first; the pages that are still to come, the next one last. A page is seen once in a tree, so more
  // visits than pages are a circle.
  struct Visit {
    uint32_t page;
    int depth;
  };
  std::vector<Visit> visits = {{root_page, 0}};
  uint32_t num_visits = 0;
  while (!visits.empty()) {
    const Visit visit = visits.back();
    visits.pop_back();
    const uint8_t* page = Page(visit.page, &tree_);
    if (page == nullptr || ++num_visits > num_pages_ || visit.depth > kMaxDepth) return Damaged();
    const size_t header = visit.page == 1 ? kFileHeader : 0;
    if (page[header] == kLeafTable) {
      OTT_RETURN_IF_ERROR(ReadLeaf(page, header));
      continue;
    }
    if (page[header] != kInteriorTable) return Damaged();
    const size_t num_cells = Get16(page + header + 3);
    const size_t pointers = header + 12;
    if (pointers + 2 * num_cells > usable_size_) return Damaged();
    visits.push_back({Get32(page + header + 8), visit.depth + 1});
    for (size_t i = num_cells; i-- > 0;) {
      const size_t cell = Get16(page + pointers + 2 * i);
      if (cell + 4 > usable_size_) return Damaged();
      visits.push_back({Get32(page + cell), visit.depth + 1});
    }
  }
  return absl::OkStatus();
}

absl::Status SqlitePages::ReadLeaf(const uint8_t* page, size_t header) {
  const size_t num_cells = Get16(page + header + 3);
  const size_t pointers = header + 8;
  if (pointers + 2 * num_cells > usable_size_) return Damaged();
  // From the format's description: what fits in a leaf, and what stays there of what does not.
  const size_t largest_local = usable_size_ - 35;
  const size_t smallest_local = (usable_size_ - 12) * 32 / 255 - 23;
  for (size_t i = 0; i < num_cells; ++i) {
    const size_t offset = Get16(page + pointers + 2 * i);
    const uint8_t* end = page + usable_size_;
    uint64_t size = 0;
    uint64_t rowid = 0;
    const uint8_t* at = offset < usable_size_ ? GetVarint(page + offset, end, &size) : nullptr;
    if (at != nullptr) at = GetVarint(at, end, &rowid);
    if (at == nullptr || size > uint64_t{1} << 31) return Damaged();
    if (size <= largest_local) {
      if (size > static_cast<size_t>(end - at) || !ReadRecord(at, size, static_cast<int64_t>(rowid)))
        return Damaged();
      continue;
    }
    const size_t more = smallest_local + (size - smallest_local) % (usable_size_ - 4);
    const size_t local = more <= largest_local ? more : smallest_local;
    if (local + 4 > static_cast<size_t>(end - at)) return Damaged();
    if (!ReadOverflow(at, local, size) ||
        !ReadRecord(record_.data(), record_.size(), static_cast<int64_t>(rowid))) {
      return Damaged();
    }
  }
  return absl::OkStatus();
}

bool SqlitePages::ReadOverflow(const uint8_t* local, size_t local_size, size_t size) {
  // No more than the file has; a wrong size is not worth the memory.
  if (size > static_cast<size_t>(num_pages_) * page_size_) return false;
  record_.assign(local, local + local_size);
  uint32_t next = Get32(local + local_size);
  while (record_.size() < size) {
    const uint8_t* page = Page(next, &overflow_);
    if (page == nullptr) return false;
    const size_t part = std::min(size - record_.size(), usable_size_ - 4);
    record_.insert(record_.end(), page + 4, page + 4 + part);
    next = Get32(page);
  }
  return true;
}

bool SqlitePages::ReadRecord(const uint8_t* record, size_t size, int64_t rowid) {
  const uint8_t* end = record + size;
  uint64_t header_size = 0;
  const uint8_t* type_at = GetVarint(record, end, &header_size);
  if (type_at == nullptr || header_size > size) return false;
  const uint8_t* types_end = record + header_size;
  const uint8_t* value_at = types_end;
  for (const int slot : slots_) {
    uint64_t type = 0;  // NULL for a row from before the column was added
    if (type_at < types_end) {
      type_at = GetVarint(type_at, types_end, &type);
      if (type_at == nullptr) return false;
    }
    const size_t value_size = type < kBytesOfTypes.size() ? kBytesOfTypes[type] : BytesOfType(type);
    if (value_size > static_cast<size_t>(end - value_at)) return false;
    if (slot >= 0) SetValue(type, value_at, value_size, end, &values_[static_cast<size_t>(slot)]);
    value_at += value_size;
  }
  if (rowid_slot_ >= 0) {
    SqliteValue& value = values_[static_cast<size_t>(rowid_slot_)];
    value.type = SqliteValue::Type::kInteger;
    value.integer = rowid;
  }
  (*read_)(SqliteRow(values_));
  return true;
}

}  // namespace ott::prof
