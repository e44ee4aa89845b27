// Layout files: whatever they say, two runs are compared by them or it is said why not.
//
//   bazel run --config=fuzz //questions/right/layout:layout_fuzzer -- \
//     $PWD/questions/right/layout/fuzz_corpus -max_total_time=600

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "ott/core/base/check.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/layout/check_layout.h"
#include "ott/questions/right/layout/layout_text.h"

namespace ott::crosscheck {
namespace {

// Four ranks with two tensors each.
std::string WriteRun(const std::string& name) {
  constexpr int kRanks = 4;
  std::string dir = absl::StrCat("/tmp/ott_layout_fuzzer_", getpid(), "_", name);
  std::filesystem::create_directories(dir);
  RunInfo info;
  info.set_world_size(kRanks);
  OTT_CHECK(WriteRunInfo(dir, info).ok());
  const std::vector<float> elements(24, 1);
  for (int rank = 0; rank < kRanks; ++rank) {
    const Value tree = ValueMap{{"layers.0.qkv", TensorView(elements.data(), {6, 4})},
                                {"layers.1.w", TensorView(elements.data(), {2, 3, 4})}};
    DumpContents contents;
    contents.tensors.tree = &tree;
    contents.tensors.format = [](std::string_view) { return DumpFormat::kBinary; };
    std::filesystem::create_directories(DumpsDirectory(dir, rank));
    OTT_CHECK(WriteDump(DumpsDirectory(dir, rank) + "/0", contents).ok());
  }
  return dir;
}

// Overrides what Protocol Buffers call since version 26, and before.
class Silent : public google::protobuf::io::ErrorCollector {
 public:
  void RecordError(int /*line*/, int /*column*/, absl::string_view /*message*/) {}
  void AddError(int /*line*/, int /*column*/, const std::string& /*message*/) {}
};

}  // namespace
}  // namespace ott::crosscheck

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ott::crosscheck;
  static const std::string a = WriteRun("a");
  static const std::string b = WriteRun("b");
  Silent silent;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  ott::Layout layout;
  if (!parser.ParseFromString(std::string(reinterpret_cast<const char*>(data), size), &layout)) return 0;
  const auto verdicts = CheckLayout(a, b, layout, {});
  if (verdicts.ok()) {
    OTT_CHECK(!LayoutVerdictsToText(*verdicts).empty());
  } else {
    OTT_CHECK(!verdicts.status().message().empty());
  }
  return 0;
}
