// Helpers that the tests of TensorDumper share.

#ifndef OTT_CORE_DUMPER_TENSOR_DUMPER_FOR_TEST_H_
#define OTT_CORE_DUMPER_TENSOR_DUMPER_FOR_TEST_H_

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/dump/dump_for_test.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dumper/tensor_dumper.h"

namespace ott {

inline std::vector<std::string> PathsOf(const Value& tree) {
  std::vector<std::string> paths;
  for (const NamedTensor& tensor : ListTensors(tree)) paths.push_back(tensor.path);
  return paths;
}

inline TensorDumperOptions OptionsFor(const std::string& dir) {
  TensorDumperOptions options;
  options.dir = dir;
  options.reserved_bytes = 0;
  return options;
}

class TensorDumperTest : public testing::Test {
 protected:
  void Enable() { Enable(OptionsFor(dir_)); }
  void Enable(TensorDumperOptions options) {
    options.rank = 3;
    options.world_size = 4;
    ASSERT_TRUE(dumper_.Enable(options).ok());
  }
  void EnableWriter() {
    TensorDumperOptions options = OptionsFor(dir_);
    options.num_writer_threads = 1;
    Enable(options);
  }

  template <typename... Arguments>
  void Add(const Arguments&... arguments) {
    EXPECT_EQ(dumper_.AddTensorData(arguments...), absl::OkStatus());
  }
  void DumpNow() { EXPECT_EQ(dumper_.Dump(), absl::OkStatus()); }
  Dump Read(int64_t count) const { return ReadDump(dir_ + "/" + std::to_string(count)).value(); }

  // Dumps, and says how.
  std::vector<std::pair<std::string, DumpFormat>> DumpedFormats() { return DumpedFormats(dir_); }
  std::vector<std::pair<std::string, DumpFormat>> DumpedFormats(const std::string& dir) {
    const int64_t count = dumper_.dump_count();
    DumpNow();
    std::vector<std::pair<std::string, DumpFormat>> formats;
    const Manifest manifest = ReadManifest(dir + "/" + std::to_string(count))->value();
    EXPECT_EQ(std::tuple(manifest.iteration, manifest.rank, manifest.world_size), std::tuple(count, 3, 4));
    for (const ManifestTensor& tensor : manifest.tensors) {
      formats.emplace_back(tensor.path, tensor.format);
    }
    return formats;
  }

  const std::string dir_ = MakeTestDir();
  const float data_[4] = {1, -2.5, 0, 4};
  const TensorView view_{data_, {2, 2}};
  TensorDumper dumper_;
};

}  // namespace ott

#endif  // OTT_CORE_DUMPER_TENSOR_DUMPER_FOR_TEST_H_
