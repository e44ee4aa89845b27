// Writes one dump: a directory that the Python TensorDumper's users, and ReadDump, read.

#ifndef OTT_CORE_DUMP_DUMP_WRITER_H_
#define OTT_CORE_DUMP_DUMP_WRITER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/manifest.h"
#include "ott/core/tensor/value.h"

namespace ott {

// One tree of a dump, and how its tensors are stored.
struct DumpGroup {
  const Value* tree = nullptr;  // null: no such file
  std::function<DumpFormat(std::string_view path)> format = [](std::string_view) {
    return DumpFormat::kJson;
  };
  // Paths of leaves in the order in which they were added (adding_order.h); null: in that of the tree.
  const std::vector<std::string>* order = nullptr;
};

struct DumpContents {
  DumpGroup tensors;
  DumpGroup grads;
  int64_t iteration = 0;
  int rank = 0;
  int world_size = 1;
  // Tensors whose digest a reference has at the same path are dumped as statistics. Null: none.
  const Manifest* reference = nullptr;
  // Tensors beyond this many bytes of elements in a dump are dumped as statistics.
  int64_t max_bytes = std::numeric_limits<int64_t>::max();
  // Threads that turn the numbers of large tensors into text; 0: as many as the machine has cores.
  int num_json_threads = 1;
};

// Returns INVALID_ARGUMENT, naming the path, for what cannot be dumped there in any format: a text or name
// that is not UTF-8, a name that is empty, "tensor_statistics" or "tensor_image". The same for values that
// are nested deeper than ReadDump() reads (kMaxJsonDepth), the dimensions of tensors included, or that are
// more (kMaxJsonValues).
absl::Status CheckDumpable(const std::string& path, const Value& value);

// Makes the directory, and in it tensors.json, grads.json where there are gradients, a file and its
// description for each tensor in a format of its own, and manifest.json. The manifest says `"complete":
// false` from before the first of these files is written until after the last, which shows where a dump was
// cut off. Files of an earlier dump are replaced. sync: a complete dump survives a crash of the machine.
//
// In the tree, a tensor with a file of its own is a string, its path and extension, and statistics are a map
// of one entry, "tensor_statistics"; an image reads back as a map of one entry, "tensor_image" (image.h). A
// tensor with more dimensions than an image is a list of images.
//
// A tensor that its format cannot hold, such as bfloat16 as NPY or a vector as an image, is dumped as
// kBinary; a line on stderr says so once.
//
// INVALID_ARGUMENT as CheckDumpable(), for two tensors with one path, and for a tensor not in host memory;
// FAILED_PRECONDITION if dir is a symbolic link or a file; else the file system's error.
absl::Status WriteDump(const std::string& dir, const DumpContents& contents, bool sync = false);

}  // namespace ott

#endif  // OTT_CORE_DUMP_DUMP_WRITER_H_
