// Writes traces to files.

#ifndef OTT_CORE_TRACE_TRACE_FILE_H_
#define OTT_CORE_TRACE_TRACE_FILE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/file.h"
#include "ott/core/trace/trace_encoder.h"

namespace ott {

// Returns the encoder for a file of this name: Chrome's for .json, Perfetto's for .perfetto-trace and
// .pftrace, each also with .gz behind it. INVALID_ARGUMENT, naming the endings, for others.
absl::StatusOr<std::unique_ptr<TraceEncoder>> TraceEncoderFor(const std::string& path);

// A trace that appears whole or not at all. Compressed if its name ends with .gz.
//
//   OTT_ASSIGN_OR_RETURN(const std::unique_ptr<TraceFile> file, TraceFile::Create("out/trace.json", info));
//   file->Add(event);
//   return file->Commit();
class TraceFile {
 public:
  // info: as of TraceEncoder::Begin().
  static absl::StatusOr<std::unique_ptr<TraceFile>> Create(const std::string& path, std::string_view info);
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  ~TraceFile();

  // An error of writing is returned by Commit(); what is added after it is ignored.
  void Add(const TraceProcess& process) { AddAny(process); }
  void Add(const TraceTrack& track) { AddAny(track); }
  void Add(const TraceEvent& event) { AddAny(event); }

  // REQUIRES: called once, and nothing is added after it.
  absl::Status Commit();

 private:
  class Gzip;

  TraceFile(std::unique_ptr<AtomicFile> file, std::unique_ptr<TraceEncoder> encoder,
            std::unique_ptr<Gzip> gzip);

  template <typename Part>
  void AddAny(const Part& part) {
    encoder_->Add(part, buffer_);
    if (buffer_.size() >= kBufferSize) Flush(false);
  }

  void Flush(bool last);

  static constexpr size_t kBufferSize = size_t{1} << 20;

  const std::unique_ptr<AtomicFile> file_;
  const std::unique_ptr<TraceEncoder> encoder_;
  // Null if nothing is compressed.
  const std::unique_ptr<Gzip> gzip_;
  std::string buffer_;
  absl::Status status_;
};

}  // namespace ott

#endif  // OTT_CORE_TRACE_TRACE_FILE_H_
