#include "ott/core/dump/tensor_dumper.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/tensor/ragged_batch.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string MakeTestDir() {
  std::string dir = testing::TempDir() + "/tensor_dumper_test_XXXXXX";
  EXPECT_NE(mkdtemp(dir.data()), nullptr);
  return dir;
}

std::vector<std::string> PathsOf(const Value& tree) {
  std::vector<std::string> paths;
  for (const NamedTensor& tensor : ListTensors(tree)) paths.push_back(tensor.path);
  return paths;
}

TensorDumperOptions OptionsFor(const std::string& dir) {
  TensorDumperOptions options;
  options.dir = dir;
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

  const std::string dir_ = MakeTestDir();
  const float data_[4] = {1, -2.5, 0, 4};
  const TensorView view_{data_, {2, 2}};
  TensorDumper dumper_;
};

TEST_F(TensorDumperTest, IgnoresEverythingUntilEnabled) {
  bool called = false;
  const auto make = [&] {
    called = true;
    return view_;
  };
  EXPECT_TRUE(dumper_.AddTensorData("a", make).ok());
  EXPECT_TRUE(dumper_.AddTensorData("a..b", view_).ok());
  EXPECT_TRUE(dumper_.PushRange("range").ok());
  EXPECT_TRUE(dumper_.PopRange().ok());
  EXPECT_TRUE(dumper_.Dump().ok());
  EXPECT_FALSE(called);
  EXPECT_EQ(dumper_.dump_count(), 0);
  EXPECT_FALSE(dumper_.active());
}

TEST_F(TensorDumperTest, EnablingTwiceIsAnError) {
  Enable();
  const absl::Status status = dumper_.Enable(OptionsFor(dir_));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is enabled already, with the directory " + dir_));
}

TEST_F(TensorDumperTest, NeedsADirectory) {
  EXPECT_EQ(dumper_.Enable({}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(dumper_.active());
}

TEST_F(TensorDumperTest, WhatIsDumpedReadsBack) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("json", view_).ok());
  ASSERT_TRUE(dumper_.AddTensorData("binary", view_, DumpFormat::kBinary).ok());
  ASSERT_TRUE(dumper_.AddTensorData("loss", 0.25).ok());
  ASSERT_TRUE(dumper_.AddTensorData("list", Value::List{view_, 1}).ok());
  dumper_.SetDumpCount(30);
  ASSERT_TRUE(dumper_.Dump().ok());

  const Dump dump = ReadDump(dir_ + "/30").value();
  ASSERT_TRUE(dump.manifest.has_value());
  EXPECT_EQ(dump.manifest->iteration, 30);
  EXPECT_EQ(dump.manifest->rank, 3);
  EXPECT_EQ(dump.manifest->world_size, 4);
  EXPECT_FALSE(dump.grads.has_value());
  EXPECT_THAT(PathsOf(dump.tensors), ElementsAre("json", "binary", "list.0"));
  for (const NamedTensor& tensor : ListTensors(dump.tensors)) {
    EXPECT_EQ(tensor.tensor.view.dtype(), DType::kFloat32) << tensor.path;
    EXPECT_EQ(tensor.tensor.view.shape(), Dims({2, 2})) << tensor.path;
    EXPECT_EQ(std::memcmp(tensor.tensor.view.data(), data_, sizeof(data_)), 0) << tensor.path;
  }
  EXPECT_EQ(dump.tensors.map().Find("loss")->double_value(), 0.25);
  EXPECT_EQ(dump.tensors.map().Find("list")->list()[1].int_value(), 1);
}

TEST_F(TensorDumperTest, DumpClearsAndCounts) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_EQ(dumper_.dump_count(), 1);
  EXPECT_TRUE(dumper_.tensors().map().empty());
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_TRUE(ReadDump(dir_ + "/1").ok());
}

TEST_F(TensorDumperTest, CopiesAreTakenAtTheCall) {
  Enable();
  float value = 1;
  ASSERT_TRUE(dumper_.AddTensorData("a", TensorView(&value, {})).ok());
  value = 2;
  EXPECT_EQ(*static_cast<const float*>(ListTensors(dumper_.tensors())[0].tensor.view.data()), 1);
}

TEST_F(TensorDumperTest, RangesAndDotsMakeNestedNames) {
  Enable();
  ASSERT_TRUE(dumper_.PushRange("model").ok());
  ASSERT_TRUE(dumper_.PushRange([] { return "layer"; }).ok());
  ASSERT_TRUE(dumper_.AddTensorData("a.b", view_).ok());
  ASSERT_TRUE(dumper_.PopRange().ok());
  ASSERT_TRUE(dumper_.AddTensorData("c", view_).ok());
  ASSERT_TRUE(dumper_.PopRange().ok());
  ASSERT_TRUE(dumper_.AddTensorData("d", view_).ok());
  EXPECT_THAT(PathsOf(dumper_.tensors()), ElementsAre("model.layer.a.b", "model.c", "d"));
  EXPECT_EQ(dumper_.PopRange().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TensorDumperTest, ClosestOverrideOfTheFormatWins) {
  Enable();
  AddOptions options;
  options.format_overrides = {{"model", DumpFormat::kBinary}, {"b", DumpFormat::kJson}};
  ASSERT_TRUE(
      dumper_.AddTensorData("model", ValueMap{{"a", view_}, {"b", ValueMap{{"c", view_}}}}, options).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  const Manifest manifest = *ReadDump(dir_ + "/0")->manifest;
  EXPECT_EQ(manifest.tensors[0].format, DumpFormat::kBinary);
  EXPECT_EQ(manifest.tensors[1].format, DumpFormat::kJson);
}

TEST_F(TensorDumperTest, OneFormatForAllOverridesTheCode) {
  Enable();
  dumper_.SetDumpTypeForAll(DumpFormat::kBinary);
  ASSERT_TRUE(dumper_.AddTensorData("a", view_, DumpFormat::kJson).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_EQ(ReadDump(dir_ + "/0")->manifest->tensors[0].format, DumpFormat::kBinary);
}

TEST_F(TensorDumperTest, OneFormatForAllCanLeaveOutTensorsOrGradients) {
  Enable();
  dumper_.SetDumpTypeForAll(DumpFormat::kBinary, /*include_tensors=*/false, /*include_grads=*/true);
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  ASSERT_TRUE(dumper_.AddGradData("a", view_).ok());
  ASSERT_TRUE(dumper_
                  .SetGradients([&](auto) {
                    return std::vector<Gradient>{{Gradient::Kind::kComputed, Tensor{view_, nullptr}}};
                  })
                  .ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  const Manifest manifest = *ReadDump(dir_ + "/0")->manifest;
  EXPECT_EQ(manifest.tensors[0].format, DumpFormat::kJson);
  EXPECT_EQ(manifest.tensors[1].format, DumpFormat::kBinary);
}

TEST_F(TensorDumperTest, AxesArePermutedAndTheClosestOverrideWins) {
  Enable();
  AddOptions options;
  options.permute_axes = {1, 0};
  options.permute_axes_overrides = {{"model", {0, 1}}, {"b", {1, 0}}, {"c", {}}};
  ASSERT_TRUE(dumper_.AddTensorData("a", view_, options).ok());
  ASSERT_TRUE(
      dumper_.AddTensorData("model", ValueMap{{"a", view_}, {"b", view_}, {"c", view_}}, options).ok());
  const auto second = [&](size_t i) {
    return static_cast<const float*>(ListTensors(dumper_.tensors())[i].tensor.view.data())[1];
  };
  EXPECT_EQ(second(0), data_[2]);
  EXPECT_EQ(second(1), data_[1]);
  EXPECT_EQ(second(2), data_[2]);
  EXPECT_EQ(second(3), data_[1]);
  options.permute_axes = {0, 1, 2};
  EXPECT_EQ(dumper_.AddTensorData("d", view_, options).message(),
            "'d': [0, 1, 2] is no permutation of the axes of shape [2, 2]");
}

TEST_F(TensorDumperTest, GradientsArePermutedToo) {
  Enable();
  AddOptions options;
  options.permute_axes = {1, 0};
  const float column[2] = {1, 2};
  ASSERT_TRUE(dumper_.AddGradData("w", TensorView(column, {2, 1}), options).ok());
  ASSERT_TRUE(dumper_
                  .SetGradients([&](absl::Span<const NamedTensor> tensors) {
                    EXPECT_EQ(tensors[0].tensor.view.shape(), Dims({2, 1}));
                    return std::vector<Gradient>{{Gradient::Kind::kComputed, tensors[0].tensor}};
                  })
                  .ok());
  EXPECT_EQ(ListTensors(dumper_.grads())[0].tensor.view.shape(), Dims({1, 2}));
}

TEST_F(TensorDumperTest, ExcludedNamesAreLeftOutAtAnyLevel) {
  Enable();
  AddOptions options;
  options.exclude = {"b"};
  ASSERT_TRUE(dumper_
                  .AddTensorData("model",
                                 ValueMap{{"a", view_},
                                          {"b", view_},
                                          {"c", ValueMap{{"b", 1}, {"d", view_}}},
                                          {"list", Value::List{ValueMap{{"a", view_}, {"b", view_}}}}},
                                 options)
                  .ok());
  EXPECT_THAT(PathsOf(dumper_.tensors()), ElementsAre("model.a", "model.c.d", "model.list.0.a"));
  ASSERT_TRUE(dumper_.AddTensorData("b", view_, options).ok());
  EXPECT_EQ(PathsOf(dumper_.tensors()).back(), "b");
}

TEST_F(TensorDumperTest, ObjectsAreConverted) {
  struct Box {
    float corners[2];
  };
  Enable();
  EXPECT_THAT(std::string(dumper_.AddTensorData("box", Box()).message()), HasSubstr("no converter"));
  dumper_.RegisterConverter<Box>([](const Box& box) { return TensorView(box.corners, {2}); });
  ASSERT_TRUE(dumper_.AddTensorData("box", Box{{1, 2}}).ok());
  ASSERT_TRUE(dumper_.AddTensorData("boxes", [] { return std::vector<Box>{{{3, 4}}, {{5, 6}}}; }).ok());
  EXPECT_THAT(PathsOf(dumper_.tensors()), ElementsAre("box", "boxes.0", "boxes.1"));
  EXPECT_EQ(static_cast<const float*>(ListTensors(dumper_.tensors())[2].tensor.view.data())[1], 6);
}

TEST_F(TensorDumperTest, RaggedBatchesAreDumpedAsStructureOrPerSample) {
  Enable();
  const int64_t sizes[2] = {1, 2};
  const RaggedBatch batch{{view_, nullptr}, {TensorView(sizes, {2}), nullptr}};
  dumper_.EnableRaggedBatchDumping();
  ASSERT_TRUE(dumper_.AddTensorData("structure", batch).ok());
  dumper_.EnableRaggedBatchDumping(/*as_per_sample=*/true);
  ASSERT_TRUE(dumper_.AddTensorData("samples", batch, DumpFormat::kBinary).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  const Dump dump = ReadDump(dir_ + "/0").value();
  EXPECT_THAT(PathsOf(dump.tensors),
              ElementsAre("structure.data", "structure.sample_sizes", "samples.0", "samples.1"));
  EXPECT_EQ(dump.tensors.map().Find("structure")->map().Find("non_uniform_dim")->int_value(), 1);
  EXPECT_EQ(dump.tensors.map().Find("samples")->list()[0].tensor().view.shape(), Dims({1}));
}

TEST_F(TensorDumperTest, InsertingWhereSomethingIsNamesBoth) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  EXPECT_EQ(dumper_.AddTensorData("a", ValueMap{{"b", 1}}).message(),
            "cannot insert a value of kind map at 'a': there is a float32 tensor of shape [2, 2] already");
  EXPECT_EQ(dumper_.AddTensorData("a.b", view_).message(),
            "cannot insert at 'a.b': 'b' names nothing in 'a', which is a float32 tensor of shape [2, 2]");
  EXPECT_THAT(PathsOf(dumper_.tensors()), ElementsAre("a"));
}

TEST_F(TensorDumperTest, MapsAreMergedAndListsIndexed) {
  Enable();
  ASSERT_TRUE(
      dumper_.AddTensorData("a", ValueMap{{"b", view_}, {"list", Value::List{ValueMap{}, ValueMap{}}}}).ok());
  ASSERT_TRUE(dumper_.AddTensorData("a", ValueMap{{"c", view_}}).ok());
  ASSERT_TRUE(dumper_.AddTensorData("a.list.1.d", view_).ok());
  EXPECT_THAT(PathsOf(dumper_.tensors()), ElementsAre("a.b", "a.list.1.d", "a.c"));
  EXPECT_EQ(dumper_.AddTensorData("a", ValueMap{{"e", view_}, {"c", 1}}).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(dumper_.AddTensorData("a.list.2.d", view_).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(dumper_.AddTensorData("a.list.x", view_).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(PathsOf(dumper_.tensors()), ElementsAre("a.b", "a.list.1.d", "a.c"));
}

TEST_F(TensorDumperTest, PausedCallsDoNothingAndPendingDataStays) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  dumper_.Pause();
  EXPECT_TRUE(dumper_.AddTensorData("b", view_).ok());
  EXPECT_TRUE(dumper_.Dump().ok());
  dumper_.SetDumpCount(7);
  dumper_.Resume();
  EXPECT_THAT(PathsOf(dumper_.tensors()), ElementsAre("a"));
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_TRUE(ReadDump(dir_ + "/7").ok());
}

TEST_F(TensorDumperTest, ResumeDoesNotEnable) {
  dumper_.Resume();
  EXPECT_FALSE(dumper_.active());
}

TEST_F(TensorDumperTest, DiscardForgets) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  dumper_.Discard();
  EXPECT_TRUE(dumper_.tensors().map().empty());
}

TEST_F(TensorDumperTest, GradientsAreComputedByTheProvider) {
  Enable();
  ASSERT_TRUE(dumper_.AddGradData("w", ValueMap{{"a", view_}, {"b", view_}, {"c", view_}}).ok());
  float gradient[4] = {5, 6, 7, 8};
  const auto provider = [&](absl::Span<const NamedTensor> tensors) -> absl::StatusOr<std::vector<Gradient>> {
    EXPECT_EQ(tensors.size(), 3u);
    EXPECT_EQ(tensors[1].path, "w.b");
    EXPECT_EQ(tensors[1].tensor.view.data(), data_);
    std::vector<Gradient> gradients(3);
    gradients[0] = {Gradient::Kind::kComputed, Tensor{TensorView(gradient, {2, 2}), nullptr}};
    gradients[1].kind = Gradient::Kind::kRequiresNoGrad;
    gradients[2].kind = Gradient::Kind::kNotInGraph;
    return gradients;
  };
  ASSERT_TRUE(dumper_.SetGradients(provider).ok());
  gradient[0] = 0;
  ASSERT_TRUE(dumper_.Dump().ok());
  const Value grads = ReadDump(dir_ + "/0")->grads.value();
  const ValueMap& w = grads.map().Find("w")->map();
  EXPECT_EQ(static_cast<const float*>(w.Find("a")->tensor().view.data())[0], 5);
  EXPECT_EQ(w.Find("b")->string_value(), "`.requires_grad == False`");
  EXPECT_TRUE(w.Find("c")->is_null());
}

TEST_F(TensorDumperTest, GradientsThatWereNotSetAreAnError) {
  Enable();
  ASSERT_TRUE(dumper_.AddGradData("w", view_).ok());
  const absl::Status status = dumper_.Dump();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'w'"));
}

TEST_F(TensorDumperTest, ProvidersThatReturnSomethingElseAreErrors) {
  Enable();
  ASSERT_TRUE(dumper_.AddGradData("w", view_).ok());
  EXPECT_EQ(dumper_.SetGradients([](auto) { return std::vector<Gradient>(); }).message(),
            "the gradient provider returned 0 gradients for 1 tensors");
  ASSERT_TRUE(dumper_.AddGradData("w", view_).ok());
  const auto wrong_shape = [&](auto) {
    return std::vector<Gradient>{{Gradient::Kind::kComputed, Tensor{TensorView(data_, {4}), nullptr}}};
  };
  EXPECT_EQ(dumper_.SetGradients(wrong_shape).message(),
            "the gradient provider returned no gradient of shape [2, 2] for 'w'");
}

TEST_F(TensorDumperTest, HostileNamesStayInTheDirectory) {
  Enable();
  const std::string names[] = {"/etc/passwd",
                               "../../up",
                               "a\"b'c",
                               "line\nbreak",
                               "gr\u00fc\u00dfe \u20ac",
                               std::string("nul\0nul", 7),
                               std::string(300, 'x'),
                               std::string(300, 'x') + "y",
                               "100%2Fnot a slash"};
  ValueMap map;
  for (const std::string& name : names) map.Insert(name, view_);
  // Names of a map are not split at dots.
  ASSERT_TRUE(dumper_.AddTensorData("", map, DumpFormat::kBinary).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_NE(access("/etc/passwd.bin", F_OK), 0);
  EXPECT_NE(access((dir_ + "/../up.bin").c_str(), F_OK), 0);

  const Dump dump = ReadDump(dir_ + "/0").value();
  for (const std::string& name : names) {
    const Value* const value = dump.tensors.map().Find(name);
    ASSERT_NE(value, nullptr) << name;
    EXPECT_EQ(value->tensor().view.shape(), Dims({2, 2})) << name;
  }
}

TEST_F(TensorDumperTest, NamesWithEmptyPartsAreErrors) {
  Enable();
  for (const char* const path : {"..", "a..b", ".a", "a."}) {
    EXPECT_EQ(dumper_.AddTensorData(path, view_).code(), absl::StatusCode::kInvalidArgument) << path;
  }
}

TEST_F(TensorDumperTest, NamesThatAreNotUtf8FailTheDump) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("\xff", view_, DumpFormat::kBinary).ok());
  EXPECT_EQ(dumper_.Dump().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadDump(dir_ + "/0").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(TensorDumperTest, TwoTensorsOfOnePathAreAnError) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("", ValueMap{{"a.b", view_}, {"a", ValueMap{{"b", view_}}}}).ok());
  EXPECT_THAT(std::string(dumper_.Dump().message()), HasSubstr("two tensors have the path 'a.b'"));
}

TEST_F(TensorDumperTest, TensorsWithoutElementsAreDumped) {
  Enable();
  const TensorView empty(nullptr, DType::kFloat32, {2, 0, 3});
  ASSERT_TRUE(dumper_.AddTensorData("json", empty).ok());
  ASSERT_TRUE(dumper_.AddTensorData("binary", empty, DumpFormat::kBinary).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  for (const NamedTensor& tensor : ListTensors(ReadDump(dir_ + "/0")->tensors)) {
    EXPECT_EQ(tensor.tensor.view.shape(), Dims({2, 0, 3})) << tensor.path;
  }
}

TEST_F(TensorDumperTest, DirectoryThatCannotBeWrittenIsAnError) {
  Enable();
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/0", "a file").ok());
  EXPECT_EQ(dumper_.Dump().message(), dir_ + "/0: is a file where a directory is needed");
  ASSERT_EQ(symlink(testing::TempDir().c_str(), (dir_ + "/1").c_str()), 0);
  EXPECT_THAT(std::string(dumper_.Dump().message()), HasSubstr(dir_ + "/1: is a symbolic link"));
}

TEST_F(TensorDumperTest, FileSystemThatCannotBeWrittenIsAnError) {
  // Not even root makes directories there.
  Enable(OptionsFor("/proc/ott_dumps"));
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  EXPECT_THAT(std::string(dumper_.Dump().message()), HasSubstr("/proc/ott_dumps"));
}

TEST_F(TensorDumperTest, LinksInTheDirectoryAreReplacedAndNotFollowed) {
  Enable();
  const std::string outside = MakeTestDir() + "/precious";
  ASSERT_TRUE(WriteFileAtomically(outside, "precious").ok());
  ASSERT_TRUE(MakeDirectories(dir_ + "/0").ok());
  for (const char* const name : {"tensors.json", "manifest.json", "[tensors.json]a.bin"}) {
    ASSERT_EQ(symlink(outside.c_str(), (dir_ + "/0/" + name).c_str()), 0);
  }
  ASSERT_TRUE(dumper_.AddTensorData("a", view_, DumpFormat::kBinary).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_EQ(ReadFile(outside).value(), "precious");
  EXPECT_THAT(PathsOf(ReadDump(dir_ + "/0")->tensors), ElementsAre("a"));
}

TEST_F(TensorDumperTest, ReservedNamesAreErrors) {
  Enable();
  for (const char* const name : {"tensor_statistics", "tensor_image"}) {
    ASSERT_TRUE(dumper_.AddTensorData("a", ValueMap{{name, ValueMap{{"digest", "x"}, {"w", view_}}}}).ok());
    EXPECT_THAT(std::string(dumper_.Dump().message()),
                HasSubstr("'a." + std::string(name) + "': the name is reserved"));
  }
}

// What a full disk leaves: earlier dumps whole, the one in work known as cut, no temporary files.
class FullDiskTest : public TensorDumperTest {
 protected:
  // Runs make_full_disk(dir) and then the test in a process of its own.
  template <typename F>
  int RunInChild(const F& make_full_disk) {
    const pid_t child = fork();
    if (child == 0) {
      const int result = make_full_disk(dir_) ? (DumpUntilFull(), HasFailure() ? 1 : 0) : kNotPossible;
      std::_Exit(result);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  void DumpUntilFull() {
    Enable();
    ASSERT_TRUE(dumper_.AddTensorData("a", view_, DumpFormat::kBinary).ok());
    ASSERT_EQ(dumper_.Dump(), absl::OkStatus());
    const std::vector<float> large(1 << 20);
    ASSERT_TRUE(dumper_.AddTensorData("a", view_, DumpFormat::kBinary).ok());
    ASSERT_TRUE(
        dumper_.AddTensorData("large", TensorView(large.data(), {1 << 20}), DumpFormat::kBinary).ok());
    const absl::Status status = dumper_.Dump();
    EXPECT_THAT(std::string(status.message()), HasSubstr(dir_ + "/1/[tensors.json]large.bin: cannot write"));
    EXPECT_TRUE(ReadDump(dir_ + "/0").ok());
    EXPECT_EQ(ReadDump(dir_ + "/1").status().code(), absl::StatusCode::kDataLoss);
    for (const auto& file : std::filesystem::directory_iterator(dir_ + "/1")) {
      EXPECT_NE(file.path().extension(), ".tmp") << file.path();
    }
  }

  static constexpr int kNotPossible = 77;
};

TEST_F(FullDiskTest, FilesThatMayNotGrowAreAnError) {
  EXPECT_EQ(RunInChild([](const std::string&) {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit = {1 << 20, 1 << 20};
              return setrlimit(RLIMIT_FSIZE, &limit) == 0;
            }),
            0);
}

TEST_F(FullDiskTest, SmallFileSystemThatFillsUpIsAnError) {
  const std::string uid_map = "0 " + std::to_string(getuid()) + " 1";
  const std::string gid_map = "0 " + std::to_string(getgid()) + " 1";
  const int result = RunInChild([&](const std::string& dir) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << uid_map;
    std::ofstream("/proc/self/gid_map") << gid_map;
    return mount("none", dir.c_str(), "tmpfs", 0, "size=1m") == 0;
  });
  if (result == kNotPossible) GTEST_SKIP() << "this machine allows no file system of our own";
  EXPECT_EQ(result, 0);
}

TEST_F(TensorDumperTest, EveryFormatReadsBack) {
  Enable();
  const DumpFormat formats[] = {DumpFormat::kJson, DumpFormat::kBinary, DumpFormat::kNpy,
                                DumpFormat::kSafetensors};
  for (const DumpFormat format : formats)
    ASSERT_TRUE(dumper_.AddTensorData(Name(format), view_, format).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  const Dump dump = ReadDump(dir_ + "/0").value();
  ASSERT_EQ(ListTensors(dump.tensors).size(), std::size(formats));
  for (const NamedTensor& tensor : ListTensors(dump.tensors)) {
    EXPECT_EQ(tensor.tensor.view.dtype(), DType::kFloat32) << tensor.path;
    EXPECT_EQ(tensor.tensor.view.shape(), Dims({2, 2})) << tensor.path;
    EXPECT_EQ(std::memcmp(tensor.tensor.view.data(), data_, sizeof(data_)), 0) << tensor.path;
  }
  // Without the manifest, the files describe themselves.
  ASSERT_EQ(unlink((dir_ + "/0/manifest.json").c_str()), 0);
  EXPECT_THAT(PathsOf(ReadDump(dir_ + "/0")->tensors), ElementsAre("json", "binary", "npy", "safetensors"));
}

TEST_F(TensorDumperTest, DTypesThatAFormatLacksAreErrors) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", TensorView(data_, DType::kBFloat16, {2}), DumpFormat::kNpy).ok());
  EXPECT_EQ(dumper_.Dump().message(), "NumPy has no bfloat16; dump it as BINARY or SAFETENSORS");
  ASSERT_TRUE(
      dumper_.AddTensorData("a", TensorView(data_, DType::kComplex64, {2}), DumpFormat::kSafetensors).ok());
  EXPECT_EQ(dumper_.Dump().message(), "safetensors has no complex64; dump it as BINARY or NPY");
}

TEST_F(TensorDumperTest, StatisticsStandForTheTensor) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_, DumpFormat::kStatistics).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  const Value tensors = ReadDump(dir_ + "/0")->tensors;
  const ValueMap& statistics = tensors.map().Find("a")->map().Find("tensor_statistics")->map();
  EXPECT_EQ(statistics.Find("min")->double_value(), -2.5);
  EXPECT_EQ(statistics.Find("max")->double_value(), 4);
  EXPECT_EQ(statistics.Find("mean")->double_value(), 0.625);
  EXPECT_EQ(statistics.Find("num_nan")->int_value(), 0);
  EXPECT_EQ(statistics.Find("digest")->string_value(), ComputeDigest(view_)->root.ToString());
}

TEST_F(TensorDumperTest, FullDataIsKeptWhereTheReferenceDiffers) {
  Enable();
  const float other[4] = {1, -2.5, 0, 5};
  ASSERT_TRUE(dumper_.AddTensorData("same", view_, DumpFormat::kBinary).ok());
  ASSERT_TRUE(dumper_.AddTensorData("other", view_, DumpFormat::kBinary).ok());
  ASSERT_TRUE(dumper_.Dump().ok());

  TensorDumper second;
  TensorDumperOptions options = OptionsFor(MakeTestDir());
  options.reference_dir = dir_;
  ASSERT_TRUE(second.Enable(options).ok());
  ASSERT_TRUE(second.AddTensorData("same", view_, DumpFormat::kBinary).ok());
  ASSERT_TRUE(second.AddTensorData("other", TensorView(other, {2, 2}), DumpFormat::kBinary).ok());
  ASSERT_TRUE(second.Dump().ok());
  EXPECT_THAT(PathsOf(ReadDump(options.dir + "/0")->tensors), ElementsAre("other"));

  // Which compares as if all had been dumped.
  const TreeComparison comparison = CompareDumps(dir_ + "/0", options.dir + "/0");
  EXPECT_EQ(comparison.results[0].comparison.status, CompareStatus::kBitwiseEqual);
  EXPECT_EQ(comparison.first_failure()->path, "tensors.other");
}

TEST_F(TensorDumperTest, BeyondTheLimitOfBytesStatisticsAreDumped) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.max_bytes_per_dump = 2 * sizeof(data_);
  Enable(options);
  for (const char* const name : {"a", "b", "c"}) ASSERT_TRUE(dumper_.AddTensorData(name, view_).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_THAT(PathsOf(ReadDump(dir_ + "/0")->tensors), ElementsAre("a", "b"));
}

TEST_F(TensorDumperTest, OnlySelectedIterationsAreDumped) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.selection.every = 2;
  Enable(options);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(dumper_.active(), i % 2 == 0);
    ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
    ASSERT_TRUE(dumper_.Dump().ok());
    EXPECT_EQ(ReadDump(dir_ + "/" + std::to_string(i)).ok(), i % 2 == 0);
  }
  dumper_.SetDumpCount(11);
  EXPECT_FALSE(dumper_.active());
  dumper_.SetDumpCount(12);
  EXPECT_TRUE(dumper_.active());
}

TEST_F(TensorDumperTest, OtherRanksAreNotDumped) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.rank = 1;
  options.selection.ranks = {0};
  Enable(options);
  EXPECT_FALSE(dumper_.active());
}

TEST_F(TensorDumperTest, OnlySelectedTensorsAreDumped) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.selection.include_globs = {"*w*"};
  Enable(options);
  ASSERT_TRUE(
      dumper_.AddTensorData("model", ValueMap{{"w", view_}, {"b", view_}, {"c", ValueMap{{"b", view_}}}})
          .ok());
  ASSERT_TRUE(dumper_.AddTensorData("b", view_).ok());
  ASSERT_TRUE(dumper_.AddTensorData("list", Value::List{view_, ValueMap{{"w", view_}}}).ok());
  EXPECT_THAT(PathsOf(dumper_.tensors()), ElementsAre("model.w", "list.1.w"));
}

TEST_F(TensorDumperTest, WriterThreadsWriteAllDumps) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.num_writer_threads = 2;
  options.max_queued_bytes = 2 * sizeof(data_);
  Enable(options);
  for (int i = 0; i < 20; ++i) {
    const float value = static_cast<float>(i);
    ASSERT_TRUE(dumper_.AddTensorData("a", TensorView(&value, {}), DumpFormat::kBinary).ok());
    ASSERT_TRUE(dumper_.Dump().ok());
  }
  ASSERT_TRUE(dumper_.Flush().ok());
  for (int i = 0; i < 20; ++i) {
    const Dump dump = ReadDump(dir_ + "/" + std::to_string(i)).value();
    EXPECT_EQ(*static_cast<const float*>(ListTensors(dump.tensors)[0].tensor.view.data()), i);
  }
  EXPECT_EQ(dumper_.num_dropped_dumps(), 0);
}

TEST_F(TensorDumperTest, ErrorsOfWriterThreadsReachTheCaller) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.num_writer_threads = 1;
  Enable(options);
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/0", "a file").ok());
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  absl::Status status = dumper_.Dump();
  status.Update(dumper_.Flush());
  EXPECT_EQ(status.message(), dir_ + "/0: is a file where a directory is needed");
}

TEST_F(TensorDumperTest, DumpedDataIsComparedInPlace) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  ASSERT_TRUE(dumper_.Dump().ok());

  dumper_.ResetDumpCount();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  EXPECT_TRUE(dumper_.CompareToDumpedData()->bitwise_equal());
  EXPECT_EQ(dumper_.dump_count(), 1);

  dumper_.ResetDumpCount();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  ASSERT_TRUE(dumper_.AddTensorData("b", view_).ok());
  EXPECT_EQ(dumper_.CompareToDumpedData()->verdict(), Verdict::kDifferent);

  dumper_.ResetDumpCount();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  ASSERT_TRUE(dumper_.AddTensorData("b", view_).ok());
  CompareOptions options;
  options.allow_extra = true;
  EXPECT_EQ(dumper_.CompareToDumpedData(options)->verdict(), Verdict::kEqual);

  dumper_.Pause();
  EXPECT_EQ(dumper_.CompareToDumpedData().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TensorDumperTest, DumpCanCompareInstead) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  dumper_.SetDumpIsCompare({});
  dumper_.ResetDumpCount();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  EXPECT_TRUE(dumper_.Dump().ok());
  dumper_.ResetDumpCount();
  ASSERT_TRUE(dumper_.AddTensorData("a", 2.0).ok());
  const absl::Status status = dumper_.Dump();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensors.a: shape differs"));

  dumper_.SetDumpIsCompare({}, TensorDumper::OnDifference::kWarn);
  dumper_.ResetDumpCount();
  ASSERT_TRUE(dumper_.AddTensorData("a", 2.0).ok());
  testing::internal::CaptureStderr();
  EXPECT_TRUE(dumper_.Dump().ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("tensors.a: shape differs"));
}

TEST_F(TensorDumperTest, DumpForwardsEveryOptionOfTheComparison) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", 1.0).ok());
  ASSERT_TRUE(dumper_.AddTensorData("gone", 1.0).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  const auto dump_again = [&](const CompareOptions& options) {
    dumper_.SetDumpIsCompare(options);
    dumper_.ResetDumpCount();
    EXPECT_TRUE(dumper_.AddTensorData("a", 1.5).ok());
    EXPECT_TRUE(dumper_.AddTensorData("new", 1.0).ok());
    return dumper_.Dump().ok();
  };
  CompareOptions options;
  options.tensors.tolerance.atol = 1;
  options.allow_extra = options.allow_missing = true;
  EXPECT_TRUE(dump_again(options));
  CompareOptions other = options;
  other.tensors.tolerance.atol = 0;
  EXPECT_FALSE(dump_again(other));
  other = options;
  other.allow_extra = false;
  EXPECT_FALSE(dump_again(other));
  other = options;
  other.allow_missing = false;
  EXPECT_FALSE(dump_again(other));
}

TEST_F(TensorDumperTest, NothingPendingIsDumpedOnlyWhereAsked) {
  Enable();
  ASSERT_TRUE(dumper_.Dump(/*dump_if_empty=*/false).ok());
  EXPECT_EQ(dumper_.dump_count(), 0);
  EXPECT_FALSE(ReadDump(dir_ + "/0").ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_TRUE(ReadDump(dir_ + "/0").ok());
  dumper_.SetDumpIsCompare({});
  EXPECT_TRUE(dumper_.Dump(/*dump_if_empty=*/false).ok());
  EXPECT_EQ(dumper_.dump_count(), 1);
}

TEST_F(TensorDumperTest, ActionsAreCalledOnceTheirCountIsReached) {
  Enable();
  int calls = 0;
  dumper_.PerformAfterDumpCount(2, [&] { ++calls; });
  for (const int expected : {0, 1, 1}) {
    ASSERT_TRUE(dumper_.Dump().ok());
    EXPECT_EQ(calls, expected);
  }
  dumper_.PerformAfterDumpCount(30, [&] { calls = -1; });
  dumper_.PerformAfterDumpCount(30, [&] { ++calls; });
  dumper_.SetDumpCount(30);
  EXPECT_EQ(calls, 2);
}

TEST(TensorDumper, OneInstanceIsTheProcesses) {
  int calls = 0;
  const auto count = [&](TensorDumper& dumper) {
    EXPECT_EQ(&dumper, &TensorDumper::Get());
    ++calls;
  };
  TensorDumper::RunIfEnabled(count);
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(TensorDumper::Get().Enable(OptionsFor(MakeTestDir())).ok());
  TensorDumper::RunIfEnabled(count);
  EXPECT_EQ(calls, 1);
  {
    const DumpRange range("scope");
    const float value = 1;
    ASSERT_TRUE(TensorDumper::Get().AddTensorData("a", TensorView(&value, {})).ok());
  }
  EXPECT_THAT(PathsOf(TensorDumper::Get().tensors()), ElementsAre("scope.a"));
  TensorDumper::Get().Pause();
  TensorDumper::RunIfEnabled(count);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace ott
