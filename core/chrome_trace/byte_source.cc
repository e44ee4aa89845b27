#include "ott/core/chrome_trace/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ott::chrome_trace {
namespace {

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(int file) : file_(file) {}
  PlainSource(const PlainSource&) = delete;
  PlainSource& operator=(const PlainSource&) = delete;
  ~PlainSource() override { close(file_); }

  size_t Read(char* to, size_t size) override {
    size_t filled = 0;
    while (filled < size) {
      const ssize_t got = read(file_, to + filled, size - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) error_ = std::strerror(errno);
      if (got <= 0) break;
      filled += static_cast<size_t>(got);
    }
    return filled;
  }
  std::string error() const override { return error_; }

 private:
  const int file_;
  std::string error_;
};

class TextSource : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : text_(text) {}

  size_t Read(char* to, size_t size) override {
    const size_t got = text_.copy(to, size);
    text_.remove_prefix(got);
    return got;
  }
  std::string error() const override { return ""; }

 private:
  std::string_view text_;
};

// Several compressed files one after the other are the file that they make together.
class GzipSource : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> packed) : packed_(std::move(packed)), input_(kInputSize) {
    usable_ = inflateInit2(&stream_, MAX_WBITS + 16) == Z_OK;
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override { inflateEnd(&stream_); }

  size_t Read(char* to, size_t size) override {
    constexpr size_t kMost = size_t{1} << 30;  // zlib counts with 32 bits
    size_t filled = 0;
    while (filled < size && usable_) {
      if (stream_.avail_in == 0) Refill();
      const size_t wanted = std::min(size - filled, kMost);
      stream_.next_out = reinterpret_cast<Bytef*>(to + filled);
      stream_.avail_out = static_cast<uInt>(wanted);
      const int status = stream_.avail_in == 0 ? Z_BUF_ERROR : inflate(&stream_, Z_NO_FLUSH);
      filled += wanted - stream_.avail_out;
      if (status == Z_STREAM_END) {
        BeginNextMember();
      } else if (status != Z_OK) {
        usable_ = false;
        error_ =
            status == Z_BUF_ERROR ? "the compressed file is truncated" : "the compressed file is damaged";
      }
    }
    return filled;
  }
  std::string error() const override { return packed_->error().empty() ? error_ : packed_->error(); }

 private:
  static constexpr size_t kInputSize = size_t{1} << 18;

  void Refill() {
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(packed_->Read(input_.data(), input_.size()));
  }

  // Another member follows, or padding that gzip ignores as well.
  void BeginNextMember() {
    if (stream_.avail_in == 0) Refill();
    usable_ = stream_.avail_in > 0 && stream_.next_in[0] == 0x1f && inflateReset(&stream_) == Z_OK;
  }

  const std::unique_ptr<ByteSource> packed_;
  std::vector<char> input_;
  z_stream stream_{};
  bool usable_ = false;
  std::string error_;
};

}  // namespace

std::unique_ptr<ByteSource> ByteSource::OfText(std::string_view text) {
  return std::make_unique<TextSource>(text);
}

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Open(const std::string& path) {
  // Opening a pipe for reading would wait for its writer.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    const std::string message = absl::StrCat(path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
  }
  auto plain = std::make_unique<PlainSource>(file);
  struct stat about {};
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no regular file"));
  }
  char magic[2] = {};
  const bool is_gzip = pread(file, magic, sizeof(magic), 0) == 2 && std::string_view(magic, 2) == "\x1f\x8b";
  if (is_gzip) return std::make_unique<GzipSource>(std::move(plain));
  return plain;
}

}  // namespace ott::chrome_trace
