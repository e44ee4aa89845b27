// Compares what the options of a dumper and of a call make of any tree with a model of them.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "tensor_dumper_for_test.h"

namespace ott {
namespace {

// One tensor, and how it is dumped; not selected, it is only added.
struct Expected {
  std::string path;
  DumpFormat format;
  bool is_transposed;
  bool is_selected;
};

// The meaning of the options of one call, by their definition.
struct Model {
  const AddOptions& options;
  const TensorDumperOptions& dumper;
  std::vector<Expected> tensors = {};

  // `within`: the names of the data itself that lead here.
  void Add(const Value& value, const std::string& path, const std::vector<std::string>& within) {
    if (value.is_list()) {
      for (size_t i = 0; i < value.list().size(); ++i)
        Add(value.list()[i], path + "." + std::to_string(i), within);
    } else if (value.is_map()) {
      for (const auto& [name, child] : value.map()) {
        std::vector<std::string> names = within;
        names.push_back(name);
        if (!Contains(options.exclude, name)) Add(child, path.empty() ? name : path + "." + name, names);
      }
    } else if (value.is_tensor()) {
      Expected& tensor =
          tensors.emplace_back(Expected{path, options.format, !options.permute_axes.empty(), true});
      for (const std::string& name : within) {
        const auto format = options.format_overrides.find(name);
        if (format != options.format_overrides.end()) tensor.format = format->second;
        const auto axes = options.permute_axes_overrides.find(name);
        if (axes != options.permute_axes_overrides.end())
          tensor.is_transposed = axes->second == std::vector<int>{1, 0};
      }
      for (size_t i = dumper.formats.size(); i-- > 0;) {
        if (EndsWithAny(path, dumper.formats[i].paths)) tensor.format = dumper.formats[i].format;
      }
      const auto& [include, exclude] =
          std::tie(dumper.selection.include_globs, dumper.selection.exclude_globs);
      tensor.is_selected = (include.empty() || EndsWithAny(path, include)) && !EndsWithAny(path, exclude);
    }
  }

  static bool Contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  // All globs are "*" and an end.
  static bool EndsWithAny(const std::string& path, const std::vector<std::string>& globs) {
    return std::any_of(globs.begin(), globs.end(),
                       [&](const std::string& glob) { return absl::EndsWith(path, glob.substr(1)); });
  }
};

constexpr const char* kNames[] = {"a", "b", "c", "w.b", "0"};
constexpr DumpFormat kFormats[] = {DumpFormat::kJson, DumpFormat::kBinary, DumpFormat::kNpy,
                                   DumpFormat::kSafetensors};

Value DrawTree(const TensorView& tensor, int depth, std::mt19937& random) {
  const uint32_t kind = depth == 0 ? 3 : random() % 6;
  if (kind < 2) return tensor;
  if (kind == 2) return 1;
  Value::List list;
  ValueMap map;
  for (const char* const name : kNames) {
    if (random() % 2 == 0) continue;
    if (kind == 5) {
      list.push_back(DrawTree(tensor, depth + 1, random));
    } else {
      map.Insert(name, depth > 3 ? Value(tensor) : DrawTree(tensor, depth + 1, random));
    }
  }
  return kind == 5 ? Value(list) : Value(map);
}

// Overrides match the names that the data itself gives its tensors, as in the Python dumper: no path and no
// range.
TEST_F(TensorDumperTest, AnyTreeIsDumpedAsItsOptionsSay) {
  std::mt19937 random(1);
  const auto draw = [&](const auto& of) { return of[random() % std::size(of)]; };
  for (int trial = 0; trial < 100; ++trial) {
    TensorDumperOptions options = OptionsFor(dir_ + "/trial" + std::to_string(trial));
    if (random() % 3 == 0)
      options.formats = {{draw(kFormats), {"*a", "*0"}}, {draw(kFormats), {"*b", "*a.b"}}};
    if (random() % 3 == 0) options.selection.include_globs = {"*b", "*c"};
    if (random() % 3 == 0) options.selection.exclude_globs = {"*a.b", "*.0"};
    options.adds_all = random() % 2 == 0;
    const size_t most = random() % 2 == 0 ? 1000 : random() % 5;
    options.max_bytes_per_dump = static_cast<int64_t>(most * sizeof(data_));
    DumpSize size;
    options.on_first_dump = [&](const DumpSize& of) { size = of; };
    Enable(options);
    dumper_.SetDumpCount(trial);
    std::vector<Expected> expected, expected_grads;
    std::string range;
    for (const char* const name : {"range", "a"}) {
      AddOptions add;
      add.format = draw(kFormats);
      if (random() % 2 == 0) add.permute_axes = {1, 0};
      for (int i = 0; i < 2; ++i) {
        if (random() % 2 == 0) add.format_overrides[draw(kNames)] = draw(kFormats);
        if (random() % 2 == 0) add.permute_axes_overrides[draw(kNames)] = {i, 1 - i};
        if (random() % 3 == 0) add.exclude.push_back(draw(kNames));
      }
      add.permute_axes_overrides["b"] = {};
      ASSERT_TRUE(trial % 2 == 0 ? dumper_.PushRange(name).ok()
                                 : dumper_.PushRange([&] { return name; }).ok());
      range += std::string(name) + ".";
      const Value tree = DrawTree(view_, 0, random);
      Add("b.c", tree, add);
      Model model{add, options};
      model.Add(tree, range + "b.c", {});
      expected.insert(expected.end(), model.tensors.begin(), model.tensors.end());
      if (random() % 2 == 0) continue;
      EXPECT_EQ(dumper_.AddGradData("b.c", tree, add), absl::OkStatus());
      expected_grads.insert(expected_grads.end(), model.tensors.begin(), model.tensors.end());
    }
    EXPECT_EQ(dumper_.SetGradients([](absl::Span<const NamedTensor> tensors) {
      std::vector<Gradient> gradients;
      for (const NamedTensor& of : tensors) gradients.push_back({Gradient::Kind::kComputed, of.tensor});
      return gradients;
    }),
              absl::OkStatus());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(dumper_.PopRange().ok());
    EXPECT_EQ(dumper_.PopRange().code(), absl::StatusCode::kFailedPrecondition);
    std::vector<std::pair<std::string, bool>> transposed, expected_transposed;
    for (const Value& tree : {*dumper_.tensors(), *dumper_.grads()}) {
      for (const NamedTensor& added : ListTensors(tree))
        transposed.emplace_back(added.path,
                                static_cast<const float*>(added.tensor.view.data())[1] == data_[2]);
    }
    std::vector<std::pair<std::string, DumpFormat>> formats;
    const DumpFormat for_all = draw(kFormats);
    const bool is_for_tensors = random() % 4 == 0, is_for_grads = random() % 4 == 0;
    dumper_.SetDumpTypeForAll(for_all, is_for_tensors, is_for_grads);
    for (const auto* const list : {&expected, &expected_grads}) {
      const bool is_forced = list == &expected ? is_for_tensors : is_for_grads;
      for (const Expected& tensor : *list) {
        // Beyond the limit of bytes, statistics are dumped.
        if (tensor.is_selected) {
          formats.emplace_back(tensor.path, formats.size() >= most ? DumpFormat::kStatistics
                                            : is_forced            ? for_all
                                                                   : tensor.format);
        }
        if (tensor.is_selected || options.adds_all)
          expected_transposed.emplace_back(tensor.path, tensor.is_transposed);
      }
    }
    EXPECT_EQ(transposed, expected_transposed) << trial;
    EXPECT_EQ(DumpedFormats(options.dir), formats) << trial;
    EXPECT_EQ(size.tensor_bytes, formats.size() * sizeof(data_)) << trial;
    for (const auto& file : std::filesystem::directory_iterator(options.dir + "/" + std::to_string(trial))) {
      const auto bytes = static_cast<int64_t>(file.file_size());
      size.file_bytes -= bytes;
      if (file.path().filename() == "tensors.json" || file.path().filename() == "grads.json")
        size.json_bytes -= bytes;
    }
    EXPECT_EQ(size.file_bytes, 0);
    EXPECT_EQ(size.json_bytes, 0);
    EXPECT_TRUE(dumper_.tensors()->map().empty());
    EXPECT_EQ(dumper_.dump_count(), trial + 1);
    ASSERT_TRUE(dumper_.Disable().ok());
  }
}

TEST(TensorDumper, OptionsComeFromTheConfiguration) {
  DumpConfig config;
  const TensorDumperOptions unset = TensorDumper::FromConfig(config);
  EXPECT_EQ(unset.num_writer_threads, 1);
  EXPECT_EQ(unset.max_bytes_per_dump, TensorDumperOptions().max_bytes_per_dump);
  EXPECT_EQ(unset.reserved_bytes, TensorDumperOptions().reserved_bytes);
  EXPECT_EQ(unset.num_json_threads, TensorDumperOptions().num_json_threads);
  EXPECT_EQ(unset.max_queued_bytes, TensorDumperOptions().max_queued_bytes);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(iterations { every: 3 } ranks: 1 include_globs: "a" include_regexes: "b" exclude_globs: "c"
         exclude_regexes: "d" format_for_all: FORMAT_STATISTICS
         formats { format: FORMAT_NPY paths: "w*" } formats { paths: "d" } formats { format: FORMAT_IMAGE_BGR paths: "i" }
         max_bytes_per_dump: 5 sync: true num_writer_threads: 2 num_json_threads: 0 max_queued_bytes: 6
         reserved_bytes: 0 drop_when_full: true)",
      &config));
  TensorDumperOptions options = TensorDumper::FromConfig(config);
  EXPECT_EQ(options.selection.iterations.every, 3);
  EXPECT_THAT(options.selection.ranks, testing::ElementsAre(1));
  EXPECT_THAT(options.selection.include_globs, testing::ElementsAre("a"));
  EXPECT_THAT(options.selection.include_regexes, testing::ElementsAre("b"));
  EXPECT_THAT(options.selection.exclude_globs, testing::ElementsAre("c"));
  EXPECT_THAT(options.selection.exclude_regexes, testing::ElementsAre("d"));
  ASSERT_EQ(options.formats.size(), 3u);
  EXPECT_EQ(options.formats[0].format, DumpFormat::kNpy);
  EXPECT_EQ(options.formats[1].format, DumpFormat::kImageBgr);
  EXPECT_EQ(options.formats[2].format, DumpFormat::kStatistics);
  EXPECT_THAT(options.formats[2].paths, testing::ElementsAre("*"));
  EXPECT_EQ(options.max_bytes_per_dump, 5);
  EXPECT_TRUE(options.sync);
  EXPECT_EQ(options.num_writer_threads, 2);
  EXPECT_EQ(options.num_json_threads, 0);
  EXPECT_EQ(options.max_queued_bytes, 6);
  EXPECT_EQ(options.reserved_bytes, 0);
  EXPECT_TRUE(options.drop_when_full);
  config.set_synchronous(true);
  EXPECT_EQ(TensorDumper::FromConfig(config).num_writer_threads, 0);
}

}  // namespace
}  // namespace ott
