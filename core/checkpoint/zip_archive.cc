#include "ott/core/checkpoint/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/tensor.h"

namespace ott {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kEnd64LocatorSignature = 0x07064b50;
constexpr size_t kLocalBytes = 30;
constexpr size_t kCentralBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kEnd64LocatorBytes = 20;
constexpr size_t kMaxCommentBytes = 65535;

uint64_t LittleEndian(std::string_view bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = size; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
  return number;
}

// Checked: size bytes at an offset, or nothing where the file has them not.
std::optional<std::string_view> Slice(std::string_view file, uint64_t offset, uint64_t size) {
  if (offset > file.size() || size > file.size() - offset) return std::nullopt;
  return file.substr(offset, size);
}

std::optional<std::string_view> Record(std::string_view file, uint64_t offset, uint64_t size,
                                       uint32_t signature) {
  const std::optional<std::string_view> record = Slice(file, offset, size);
  return record.has_value() && LittleEndian(*record, 0, 4) == signature ? record : std::nullopt;
}

struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t num_entries = 0;
};

absl::StatusOr<Directory> FindDirectory(std::string_view file) {
  for (size_t comment = 0; comment <= kMaxCommentBytes && comment + kEndBytes <= file.size(); ++comment) {
    const size_t at = file.size() - kEndBytes - comment;
    const std::optional<std::string_view> end = Record(file, at, kEndBytes, kEndSignature);
    if (!end.has_value() || LittleEndian(*end, 20, 2) != comment) continue;
    Directory directory = {LittleEndian(*end, 16, 4), LittleEndian(*end, 12, 4), LittleEndian(*end, 10, 2)};
    if (at < kEnd64LocatorBytes) return directory;
    const std::optional<std::string_view> locator =
        Record(file, at - kEnd64LocatorBytes, kEnd64LocatorBytes, kEnd64LocatorSignature);
    if (!locator.has_value()) return directory;
    const std::optional<std::string_view> end64 =
        Record(file, LittleEndian(*locator, 8, 8), kEnd64Bytes, kEnd64Signature);
    if (!end64.has_value()) return absl::InvalidArgumentError("the ZIP64 end of the directory is not there");
    return Directory{LittleEndian(*end64, 48, 8), LittleEndian(*end64, 40, 8), LittleEndian(*end64, 32, 8)};
  }
  return absl::DataLossError(absl::StrCat(
      "a ZIP archive cut at byte ", file.size(),
      ": its directory, which comes last, is missing; the program was probably killed while writing"));
}

// Sizes and offset of an entry that 32 bits do not hold; false if the field is not what it has to be.
bool ReadZip64(std::string_view extra, uint64_t* size, uint64_t* stored, uint64_t* offset) {
  while (extra.size() >= 4) {
    const uint64_t id = LittleEndian(extra, 0, 2);
    const uint64_t length = LittleEndian(extra, 2, 2);
    if (length > extra.size() - 4) return false;
    if (id == 1) {
      size_t at = 4;
      for (uint64_t* const number : {size, stored, offset}) {
        if (*number != 0xffffffff) continue;
        if (at + 8 > 4 + length) return false;
        *number = LittleEndian(extra, at, 8);
        at += 8;
      }
      return true;
    }
    extra.remove_prefix(4 + length);
  }
  return *size != 0xffffffff && *stored != 0xffffffff && *offset != 0xffffffff;
}

// An entry of the directory at `at`, which is moved behind it.
absl::StatusOr<ZipArchive::Entry> ReadEntry(std::string_view file, uint64_t end, uint64_t* at) {
  const std::optional<std::string_view> record =
      Record(file.substr(0, end), *at, kCentralBytes, kCentralSignature);
  const auto broken = [at](std::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ZIP directory at byte ", *at, ": ", std::string(what)));
  };
  if (!record.has_value()) return broken("no entry");
  const uint64_t name_size = LittleEndian(*record, 28, 2);
  const uint64_t extra_size = LittleEndian(*record, 30, 2);
  const uint64_t comment_size = LittleEndian(*record, 32, 2);
  const std::optional<std::string_view> texts =
      Slice(file.substr(0, end), *at + kCentralBytes, name_size + extra_size + comment_size);
  if (!texts.has_value()) return broken("an entry that is longer than it");
  ZipArchive::Entry entry;
  entry.name = texts->substr(0, name_size);
  const std::string name(entry.name);
  const uint64_t method = LittleEndian(*record, 10, 2);
  if (LittleEndian(*record, 8, 2) & 1) return broken(absl::StrCat("'", name, "' is encrypted"));
  if (method != 0 && method != 8) {
    return broken(absl::StrCat("'", name, "' is compressed by method ", method, ", not stored or deflated"));
  }
  entry.deflated = method == 8;
  entry.crc = static_cast<uint32_t>(LittleEndian(*record, 16, 4));
  uint64_t stored = LittleEndian(*record, 20, 4);
  uint64_t size = LittleEndian(*record, 24, 4);
  uint64_t offset = LittleEndian(*record, 42, 4);
  if (!ReadZip64(texts->substr(name_size, extra_size), &size, &stored, &offset)) {
    return broken(absl::StrCat("'", name, "' has no ZIP64 sizes"));
  }
  const std::optional<std::string_view> local = Record(file, offset, kLocalBytes, kLocalSignature);
  const std::optional<std::string_view> local_name =
      local.has_value() ? Slice(file, offset + kLocalBytes, LittleEndian(*local, 26, 2)) : std::nullopt;
  if (!local_name.has_value() || *local_name != entry.name) {
    return broken(absl::StrCat("'", name, "' is not at byte ", offset, ", where it should be"));
  }
  const uint64_t begin = offset + kLocalBytes + local_name->size() + LittleEndian(*local, 28, 2);
  if (!Slice(file, begin, stored).has_value() || (!entry.deflated && stored != size) ||
      size > static_cast<uint64_t>(INT64_MAX)) {
    return broken(absl::StrCat("'", name, "' of ", size, " bytes, ", stored,
                               " in the file, does not fit behind byte ", begin));
  }
  entry.offset = static_cast<int64_t>(begin);
  entry.num_stored = static_cast<int64_t>(stored);
  entry.num_bytes = static_cast<int64_t>(size);
  *at += kCentralBytes + texts->size();
  return entry;
}

absl::Status CheckOverlaps(const std::vector<ZipArchive::Entry>& entries) {
  std::vector<const ZipArchive::Entry*> by_offset;
  for (const ZipArchive::Entry& entry : entries) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const ZipArchive::Entry& before = *by_offset[i - 1];
    if (by_offset[i]->offset - before.offset < before.num_stored + static_cast<int64_t>(kLocalBytes)) {
      return absl::InvalidArgumentError(absl::StrCat("the ZIP entries '", std::string(before.name), "' and '",
                                                     std::string(by_offset[i]->name), "' overlap"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ZipArchive> ZipArchive::Open(HeldBytes file) {
  OTT_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(file.bytes));
  if (!Slice(file.bytes, directory.offset, directory.size).has_value() ||
      directory.num_entries > directory.size / kCentralBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a ZIP directory of ", directory.num_entries,
                                                   " entries does not fit into ", directory.size,
                                                   " bytes at byte ", directory.offset));
  }
  ZipArchive archive;
  archive.file_ = std::move(file);
  int64_t unpacked = 0;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.num_entries; ++i) {
    OTT_ASSIGN_OR_RETURN(Entry entry, ReadEntry(archive.file_.bytes, directory.offset + directory.size, &at));
    const int64_t left = kMaxUnpackedBytes - unpacked;
    if (entry.deflated && entry.num_bytes > left) {
      return absl::ResourceExhaustedError(absl::StrCat("the ZIP archive unpacks to more than ",
                                                       kMaxUnpackedBytes, " bytes, at '",
                                                       std::string(entry.name), "'"));
    }
    if (entry.deflated) unpacked += entry.num_bytes;
    if (!archive.by_name_.emplace(entry.name, archive.entries_.size()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the ZIP archive has '", std::string(entry.name), "' twice"));
    }
    archive.entries_.push_back(std::move(entry));
  }
  OTT_RETURN_IF_ERROR(CheckOverlaps(archive.entries_));
  return archive;
}

const ZipArchive::Entry* ZipArchive::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

absl::StatusOr<HeldBytes> ZipArchive::Read(const Entry& entry) const {
  const std::string_view stored = file_.bytes.substr(entry.offset, entry.num_stored);
  if (!entry.deflated) return HeldBytes{stored, file_.owner, file_.file_backed};
  const auto wrong = [&entry](std::string_view what) {
    return absl::DataLossError(
        absl::StrCat("the ZIP entry '", std::string(entry.name), "' ", std::string(what)));
  };
  // Deflate makes at most 1032 bytes of one.
  if (entry.num_bytes / 1032 > entry.num_stored) return wrong("claims more bytes than it can hold");
  OTT_ASSIGN_OR_RETURN(const std::shared_ptr<void> memory, AllocateHost(entry.num_bytes));
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return absl::InternalError("zlib does not start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stored.data()));
  stream.next_out = static_cast<Bytef*>(memory.get());
  size_t in = stored.size();
  int64_t out = entry.num_bytes;
  uLong crc = crc32(0, nullptr, 0);
  int result = Z_OK;
  // zlib counts in 32 bits.
  constexpr int64_t kStep = int64_t{1} << 30;
  while (result == Z_OK) {
    const auto in_step = static_cast<uInt>(std::min<size_t>(in, kStep));
    const auto out_step = static_cast<uInt>(std::min(out, kStep));
    const Bytef* const begin = stream.next_out;
    stream.avail_in = in_step;
    stream.avail_out = out_step;
    result = inflate(&stream, Z_NO_FLUSH);
    in -= in_step - stream.avail_in;
    out -= out_step - stream.avail_out;
    crc = crc32(crc, begin, out_step - stream.avail_out);
    if (stream.avail_in == in_step && stream.avail_out == out_step) break;
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || out != 0 || in != 0)
    return wrong("does not unpack to the size that it claims");
  if (crc != entry.crc) return wrong("is damaged: its checksum is another");
  return HeldBytes{{static_cast<const char*>(memory.get()), static_cast<size_t>(entry.num_bytes)}, memory};
}

}  // namespace ott
