// The bytes of a file, unpacked where it is compressed by gzip.

#ifndef OTT_CORE_CHROME_TRACE_BYTE_SOURCE_H_
#define OTT_CORE_CHROME_TRACE_BYTE_SOURCE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ott::chrome_trace {

// Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills `to` up to `size` bytes; fewer only at the end.
  virtual size_t Read(char* to, size_t size) = 0;
  // Returns "", or why the end came early: what compressed it was cut or damaged, or the disk could not be
  // read.
  virtual std::string error() const = 0;

  // Reads a text, which outlives the source.
  static std::unique_ptr<ByteSource> OfText(std::string_view text);

  // Opens a file, compressed or not by the first two bytes, whatever the name. NOT_FOUND, INVALID_ARGUMENT
  // for what is no regular file.
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& path);
};

}  // namespace ott::chrome_trace

#endif  // OTT_CORE_CHROME_TRACE_BYTE_SOURCE_H_
