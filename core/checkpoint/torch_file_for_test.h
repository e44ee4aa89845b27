// Parts of the files of torch.save, which the tests of checkpoints write.

#ifndef OTT_CORE_CHECKPOINT_TORCH_FILE_FOR_TEST_H_
#define OTT_CORE_CHECKPOINT_TORCH_FILE_FOR_TEST_H_

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "ott/core/base/deflate_for_test.h"

namespace ott {

// Parts of pickles: the call of "module:name", a text, bytes and a storage of so many elements.
inline std::string Call(const std::string& name, const std::string& arguments) {
  return "c" + absl::StrReplaceAll(name, {{":", "\n"}}) + "\n(" + arguments + "tR";
}
inline std::string TextInPickle(const std::string& of) {
  return "X" + std::string(1, static_cast<char>(of.size())) + std::string(3, '\0') + of;
}
inline std::string BytesInPickle(const std::string& of) {
  return "C" + std::string(1, static_cast<char>(of.size())) + of;
}
inline std::string StorageInPickle(const std::string& type, char size) {
  return "(" + TextInPickle("storage") + "ctorch\n" + type + "\n" + TextInPickle("K") + TextInPickle("cpu") +
         "K" + size + "tQ";
}

inline std::string InBytes(uint64_t number, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i, number >>= 8) bytes += static_cast<char>(number & 0xff);
  return bytes;
}

struct Written {
  std::string name, data;
  bool deflated = false;
  // Each bit moves a number to a ZIP64 field: the size, the size in the file, the place.
  unsigned zip64 = 0;
  std::string extra = {}, comment = {};
};

inline std::string Deflated(const std::string& data) { return DeflateForTest(data, -MAX_WBITS); }

// After PKWARE's APPNOTE. `start` comes before it all, and `directory` gets its place.
inline std::string Zip(const std::vector<Written>& entries, bool has_zip64_end = false,
                       const std::string& comment = "", const std::string& start = "",
                       size_t* directory_at = nullptr) {
  std::string file = start, directory;
  for (const Written& entry : entries) {
    const std::string stored = entry.deflated ? Deflated(entry.data) : entry.data;
    const uint64_t numbers[] = {entry.data.size(), stored.size(), file.size()};
    std::string in_32_bits[3], field;
    for (size_t i = 0; i < 3; ++i) {
      const bool is_in_field = (entry.zip64 >> i & 1) != 0;
      in_32_bits[i] = InBytes(is_in_field ? UINT64_MAX : numbers[i], 4);
      if (is_in_field) field += InBytes(numbers[i], 8);
    }
    if (!field.empty()) field = InBytes(1, 2) + InBytes(field.size(), 2) + field;
    const std::string method = InBytes(entry.deflated ? 8 : 0, 2) + InBytes(0, 4),
                      crc = InBytes(crc32(0, reinterpret_cast<const Bytef*>(entry.data.data()),
                                          static_cast<uInt>(entry.data.size())),
                                    4);
    file += "PK\3\4" + InBytes(0, 4) + method + crc + InBytes(stored.size(), 4) +
            InBytes(entry.data.size(), 4) + InBytes(entry.name.size(), 2) + InBytes(entry.comment.size(), 2) +
            entry.name + entry.comment + stored;
    directory += "PK\1\2" + InBytes(0, 6) + method + crc + in_32_bits[1] + in_32_bits[0] +
                 InBytes(entry.name.size(), 2) + InBytes(entry.extra.size() + field.size(), 2) +
                 InBytes(entry.comment.size(), 2) + InBytes(0, 8) + in_32_bits[2] + entry.name + entry.extra +
                 field + entry.comment;
  }
  const size_t at = file.size();
  if (directory_at != nullptr) *directory_at = at;
  file += directory;
  if (has_zip64_end) {
    const size_t end = file.size();
    file += "PK\6\6" + InBytes(0, 20) + InBytes(0, 8) + InBytes(entries.size(), 8) +
            InBytes(directory.size(), 8) + InBytes(at, 8) + "PK\6\7" + InBytes(0, 4) + InBytes(end, 8) +
            InBytes(0, 4);
  }
  const uint64_t in_end64 = has_zip64_end ? UINT64_MAX : 0;
  return file + "PK\5\6" + InBytes(0, 6) + InBytes(in_end64 | entries.size(), 2) +
         InBytes(in_end64 | directory.size(), 4) + InBytes(in_end64 | at, 4) + InBytes(comment.size(), 2) +
         comment;
}

}  // namespace ott

#endif  // OTT_CORE_CHECKPOINT_TORCH_FILE_FOR_TEST_H_
