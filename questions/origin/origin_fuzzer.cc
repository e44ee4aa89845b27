// Logs of operations: whatever the bytes, there is an error or logs that can be judged.
//
//   bazel run --config=fuzz //questions/origin:origin_fuzzer -- $PWD/questions/origin/fuzz_corpus
//   -max_total_time=600

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/core/op_log/op_log_reader.h"
#include "ott/questions/origin/origin.h"
#include "ott/questions/origin/origin_text.h"

namespace ott::origin {
namespace {

using internal::OpLogHeader;
using internal::OpLogRecordHeader;

// With the checks of its records put right, which nobody guesses.
std::string WithChecks(std::string log) {
  size_t position = sizeof(OpLogHeader);
  while (position + sizeof(OpLogRecordHeader) <= log.size()) {
    OpLogRecordHeader header;
    std::memcpy(&header, log.data() + position, sizeof(header));
    if (header.size < sizeof(header) || header.size % 8 != 0 || header.size > log.size() - position) break;
    header.check = internal::OpLogCheck(log.data() + position + sizeof(header), header.size - sizeof(header));
    std::memcpy(log.data() + position, &header, sizeof(header));
    position += header.size;
  }
  return log;
}

// A run of one rank; nothing of it where its log cannot be read.
RunLogs Run(const std::string& name, const std::string& log) {
  static const std::string dir = absl::StrCat("/tmp/ott_origin_fuzzer_", getpid());
  OTT_CHECK(MakeDirectories(dir).ok());
  const std::string path = absl::StrCat(dir, "/", name);
  OTT_CHECK(WriteFileAtomically(path, log).ok());
  RunLogs run;
  run.run_dir = dir;
  run.world_size = 1;
  absl::StatusOr<LoggedOps> ops = ReadOpLog(path);
  if (ops.ok()) {
    run.ranks[0] = std::make_unique<LoggedOps>(*std::move(ops));
  } else {
    OTT_CHECK(!ops.status().message().empty());
  }
  return run;
}

}  // namespace
}  // namespace ott::origin

// The first byte says after how many bytes the second of two logs begins, in parts of the whole.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ott::origin;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t first = bytes.size() * data[0] / 256;
  const RunLogs a = Run("a.bin", WithChecks(bytes.substr(0, first)));
  const RunLogs b = Run("b.bin", WithChecks(bytes.substr(first)));
  for (const RunLogs* perturbed : {static_cast<const RunLogs*>(nullptr), &a, &b}) {
    const absl::StatusOr<ott::OriginVerdict> verdict = FindOrigin(a, b, perturbed);
    if (verdict.ok()) {
      OTT_CHECK(!FormatOrigin(*verdict).empty());
    } else {
      OTT_CHECK(!verdict.status().message().empty());
    }
  }
  return 0;
}
