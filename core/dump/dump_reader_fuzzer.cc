// Files of a dump may hold anything. The input is cut at NUL bytes into manifest.json, tensors.json, a
// tensor's file and the file that describes it.

#include <stdlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "ott/core/base/file.h"
#include "ott/core/digest/digest.h"
#include "ott/core/dump/dump_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string dir = [] {
    std::string name = "/tmp/dump_reader_fuzzer_XXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(reinterpret_cast<const char*>(data), size), absl::MaxSplits('\0', 3));
  const char* const names[] = {"manifest.json", "tensors.json", "[tensors.json]w.bin",
                               "[tensors.json]w.bin.meta.json"};
  for (size_t i = 0; i < 4; ++i) {
    const std::string path = dir + "/" + names[i];
    // An empty part is no file.
    if (i < parts.size() && !parts[i].empty()) {
      ott::WriteFileAtomically(path, parts[i]).IgnoreError();
    } else {
      remove(path.c_str());
    }
  }
  const absl::StatusOr<ott::Dump> dump = ott::ReadDump(dir);
  if (!dump.ok()) return 0;
  for (const ott::NamedTensor& tensor : ott::ListTensors(dump->tensors)) {
    ott::ComputeDigest(tensor.tensor.view).value();
  }
  return 0;
}
