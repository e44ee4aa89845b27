#include "ott/core/trace/trace_file.h"

#include <zlib.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"

namespace ott {

class TraceFile::Gzip {
 public:
  Gzip() {
    // The training waits meanwhile. 16 more than the window's size asks for gzip's header and trailer.
    const int result =
        deflateInit2(&stream_, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
    OTT_CHECK(result == Z_OK) << "zlib has no memory";
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { deflateEnd(&stream_); }

  absl::Status Append(const std::string& bytes, bool last, AtomicFile& file) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      OTT_RETURN_IF_ERROR(file.Append(std::string_view(out_.data(), out_.size() - stream_.avail_out)));
    } while (stream_.avail_out == 0);
    return absl::OkStatus();
  }

 private:
  z_stream stream_{};
  std::string out_ = std::string(size_t{1} << 18, '\0');
};

absl::StatusOr<std::unique_ptr<TraceEncoder>> TraceEncoderFor(const std::string& path) {
  const absl::string_view name = absl::StripSuffix(path, ".gz");
  if (absl::EndsWith(name, ".json")) return NewChromeTraceEncoder();
  if (absl::EndsWith(name, ".perfetto-trace") || absl::EndsWith(name, ".pftrace"))
    return NewPerfettoEncoder();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": a trace's name ends with .json, .json.gz, .perfetto-trace or .pftrace"));
}

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Create(const std::string& path, std::string_view info) {
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<TraceEncoder> encoder, TraceEncoderFor(path));
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  std::unique_ptr<Gzip> gzip = absl::EndsWith(path, ".gz") ? std::make_unique<Gzip>() : nullptr;
  std::unique_ptr<TraceFile> result(new TraceFile(std::move(file), std::move(encoder), std::move(gzip)));
  result->encoder_->Begin(info, result->buffer_);
  return result;
}

TraceFile::TraceFile(std::unique_ptr<AtomicFile> file, std::unique_ptr<TraceEncoder> encoder,
                     std::unique_ptr<Gzip> gzip)
    : file_(std::move(file)), encoder_(std::move(encoder)), gzip_(std::move(gzip)) {}

TraceFile::~TraceFile() = default;

void TraceFile::Flush(bool last) {
  if (status_.ok())
    status_ = gzip_ != nullptr ? gzip_->Append(buffer_, last, *file_) : file_->Append(buffer_);
  buffer_.clear();
}

absl::Status TraceFile::Commit() {
  encoder_->End(buffer_);
  Flush(true);
  OTT_RETURN_IF_ERROR(status_);
  return file_->Commit();
}

}  // namespace ott
