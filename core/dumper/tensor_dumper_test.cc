#include "ott/core/dumper/tensor_dumper.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/tensor/ragged_batch.h"
#include "tensor_dumper_for_test.h"

namespace ott {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

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

TEST_F(TensorDumperTest, OffCountsNothingComparesNothingAndCallsNoAction) {
  int calls = 0;
  dumper_.PerformAfterDumpCount(1, [&] { ++calls; });
  dumper_.SetDumpCount(5);
  EXPECT_EQ(dumper_.dump_count(), 0);
  const absl::StatusOr<TreeComparison> comparison = dumper_.CompareToDumpedData();
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  // Two empty sides are not taken for equal.
  EXPECT_EQ(comparison->verdict(), Verdict::kCouldNotCompare);
  Enable();
  dumper_.SetDumpCount(5);
  EXPECT_EQ(calls, 0);
  dumper_.PerformAfterDumpCount(6, [&] { ++calls; });
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_EQ(calls, 1);
}

TEST_F(TensorDumperTest, TensorsThatAFormatCannotHoldAreDumpedInOneThatCan) {
  Enable();
  const float pixels[12] = {};
  const auto add = [&] {
    ASSERT_TRUE(dumper_.AddTensorData("half", TensorView(data_, DType::kBFloat16, {2})).ok());
    ASSERT_TRUE(dumper_.AddTensorData("complex", TensorView(data_, DType::kComplex64, {2})).ok());
    ASSERT_TRUE(dumper_.AddTensorData("image", TensorView(pixels, {2, 2, 3})).ok());
  };
  testing::internal::CaptureStderr();
  dumper_.SetDumpTypeForAll(DumpFormat::kNpy);
  for (int i = 0; i < 2; ++i) {
    add();
    EXPECT_THAT(DumpedFormats(),
                ElementsAre(Pair("half", DumpFormat::kBinary), Pair("complex", DumpFormat::kNpy),
                            Pair("image", DumpFormat::kNpy)));
  }
  EXPECT_EQ(ReadDump(dir_ + "/1")->tensors.map().Find("half")->tensor().view.dtype(), DType::kBFloat16);
  dumper_.SetDumpTypeForAll(DumpFormat::kSafetensors);
  add();
  EXPECT_THAT(DumpedFormats(),
              ElementsAre(Pair("half", DumpFormat::kSafetensors), Pair("complex", DumpFormat::kBinary),
                          Pair("image", DumpFormat::kSafetensors)));
  dumper_.SetDumpTypeForAll(DumpFormat::kImageRgb);
  add();
  EXPECT_THAT(DumpedFormats(),
              ElementsAre(Pair("half", DumpFormat::kBinary), Pair("complex", DumpFormat::kBinary),
                          Pair("image", DumpFormat::kImageRgb)));
  const std::string text = testing::internal::GetCapturedStderr();
  // Once for each, not once for each dump.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
  EXPECT_THAT(text, HasSubstr("'half': NumPy has no bfloat16"));
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
  EXPECT_TRUE(dumper_.tensors()->map().empty());
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_TRUE(ReadDump(dir_ + "/1").ok());
}

TEST_F(TensorDumperTest, CopiesAreTakenAtTheCall) {
  Enable();
  float value = 1;
  ASSERT_TRUE(dumper_.AddTensorData("a", TensorView(&value, {})).ok());
  value = 2;
  EXPECT_EQ(*static_cast<const float*>(ListTensors(*dumper_.tensors())[0].tensor.view.data()), 1);
}

TEST_F(TensorDumperTest, TheFirstDumpIsCopiedIntoMemoryThatIsThereAlready) {
  constexpr int64_t kBytes = 4 << 20;
  TensorDumperOptions options = OptionsFor(dir_);
  options.reserved_bytes = 2 * kBytes;
  Enable(options);
  const std::vector<char> large(kBytes);
  ASSERT_TRUE(
      dumper_.AddTensorData("a", TensorView(large.data(), DType::kUInt8, {kBytes}), DumpFormat::kBinary)
          .ok());
  // The rest of the reserve follows the copy.
  const char* const copy = static_cast<const char*>(ListTensors(*dumper_.tensors())[0].tensor.view.data());
  const auto rest_is_there = [&] {
    unsigned char page = 0;
    EXPECT_EQ(mincore(const_cast<char*>(copy) + kBytes + kBytes / 2, 1, &page), 0);
    return (page & 1) != 0;
  };
  EXPECT_TRUE(rest_is_there());
  const Value keeps_the_memory = *dumper_.tensors();
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_FALSE(rest_is_there());
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
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("model.layer.a.b", "model.c", "d"));
  EXPECT_EQ(dumper_.PopRange().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TensorDumperTest, ClosestOverrideOfTheFormatWins) {
  Enable();
  AddOptions options;
  options.format_overrides = {{"layer", DumpFormat::kBinary}, {"b", DumpFormat::kJson}};
  const Value layer = ValueMap{{"a", view_}, {"b", ValueMap{{"c", view_}}}, {"list", Value::List{view_}}};
  ASSERT_TRUE(dumper_.AddTensorData("model", ValueMap{{"layer", layer}}, options).ok());
  EXPECT_THAT(DumpedFormats(), ElementsAre(Pair("model.layer.a", DumpFormat::kBinary),
                                           Pair("model.layer.b.c", DumpFormat::kJson),
                                           Pair("model.layer.list.0", DumpFormat::kBinary)));
}

// Overrides match the names that the data itself gives its tensors, as in the Python dumper.
TEST_F(TensorDumperTest, OverridesMatchWholeNamesOfTheDataButNoPathOrRange) {
  Enable();
  AddOptions options;
  options.format_overrides = {{"range", DumpFormat::kBinary},
                              {"path", DumpFormat::kBinary},
                              {"conv1", DumpFormat::kBinary},
                              {"0", DumpFormat::kBinary},
                              {"conv1.weight", DumpFormat::kImageI}};
  options.permute_axes_overrides = {{"path", {1, 0}}, {"conv1.weight", {0, 1}}, {"weight", {1, 0}}};
  options.exclude = {"bn.bias", "path", "bias"};
  ASSERT_TRUE(dumper_.PushRange("range").ok());
  const Value state = ValueMap{
      {"conv1.weight", view_}, {"bn.bias", view_}, {"conv1.bias", view_}, {"list", Value::List{view_}}};
  ASSERT_TRUE(dumper_.AddTensorData("path", state, options).ok());
  ASSERT_TRUE(dumper_.PopRange().ok());
  const Value added = *dumper_.tensors();
  EXPECT_EQ(std::memcmp(ListTensors(added)[0].tensor.view.data(), data_, sizeof(data_)), 0);
  EXPECT_THAT(DumpedFormats(), ElementsAre(Pair("range.path.conv1.weight", DumpFormat::kImageI),
                                           Pair("range.path.conv1.bias", DumpFormat::kJson),
                                           Pair("range.path.list.0", DumpFormat::kJson)));
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

TEST_F(TensorDumperTest, FormatsByPathOverrideTheCodeAndTheFirstThatMatchesCounts) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.formats = {{DumpFormat::kNpy, {"weights.*", "bias"}}, {DumpFormat::kBinary, {"weights.b", "x*"}}};
  Enable(options);
  ASSERT_TRUE(dumper_.AddTensorData("weights.b", view_).ok());
  ASSERT_TRUE(dumper_.AddTensorData("x", ValueMap{{"y", view_}}).ok());
  ASSERT_TRUE(dumper_.AddTensorData("other", view_).ok());
  EXPECT_THAT(DumpedFormats(),
              ElementsAre(Pair("weights.b", DumpFormat::kNpy), Pair("x.y", DumpFormat::kBinary),
                          Pair("other", DumpFormat::kJson)));
}

TEST_F(TensorDumperTest, WhatIsAddedThoughNotSelectedIsSeenButNotDumped) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.selection.exclude_globs = {"b", "list.0"};
  options.adds_all = true;
  Enable(options);
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  ASSERT_TRUE(dumper_.AddTensorData("b", view_).ok());
  ASSERT_TRUE(dumper_.AddTensorData("list", Value::List{view_, view_}).ok());
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("a", "b", "list.0", "list.1"));
  EXPECT_THAT(DumpedFormats(), ElementsAre(Pair("a", DumpFormat::kJson), Pair("list.1", DumpFormat::kJson)));
}

TEST(TensorDumper, OptionsComeFromTheConfiguration) {
  DumpConfig config;
  const TensorDumperOptions unset = TensorDumper::FromConfig(config);
  EXPECT_EQ(unset.num_writer_threads, 1);
  EXPECT_EQ(unset.max_bytes_per_dump, TensorDumperOptions().max_bytes_per_dump);
  EXPECT_EQ(unset.reserved_bytes, TensorDumperOptions().reserved_bytes);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(iterations { every: 3 } ranks: 1 include_globs: "a" include_regexes: "b" exclude_globs: "c"
         exclude_regexes: "d" format_for_all: FORMAT_STATISTICS
         formats { format: FORMAT_NPY paths: "w*" } formats { format: FORMAT_IMAGE_BGR paths: "i" }
         max_bytes_per_dump: 5 sync: true num_writer_threads: 2 num_json_threads: 0 max_queued_bytes: 6
         reserved_bytes: 0 drop_when_full: true)",
      &config));
  TensorDumperOptions options = TensorDumper::FromConfig(config);
  EXPECT_EQ(options.selection.iterations.every, 3);
  EXPECT_THAT(options.selection.ranks, ElementsAre(1));
  EXPECT_THAT(options.selection.include_globs, ElementsAre("a"));
  EXPECT_THAT(options.selection.include_regexes, ElementsAre("b"));
  EXPECT_THAT(options.selection.exclude_globs, ElementsAre("c"));
  EXPECT_THAT(options.selection.exclude_regexes, ElementsAre("d"));
  ASSERT_EQ(options.formats.size(), 3u);
  EXPECT_EQ(options.formats[0].format, DumpFormat::kNpy);
  EXPECT_EQ(options.formats[1].format, DumpFormat::kImageBgr);
  EXPECT_EQ(options.formats[2].format, DumpFormat::kStatistics);
  EXPECT_THAT(options.formats[2].paths, ElementsAre("*"));
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

TEST_F(TensorDumperTest, AxesArePermutedAndTheClosestOverrideWins) {
  Enable();
  AddOptions options;
  options.permute_axes = {1, 0};
  options.permute_axes_overrides = {{"model", {0, 1}}, {"b", {1, 0}}, {"c", {}}};
  ASSERT_TRUE(dumper_.AddTensorData("a", view_, options).ok());
  const Value model = ValueMap{{"a", view_}, {"b", view_}, {"c", view_}};
  ASSERT_TRUE(dumper_.AddTensorData("", ValueMap{{"model", model}}, options).ok());
  const auto second = [&](size_t i) {
    return static_cast<const float*>(ListTensors(*dumper_.tensors())[i].tensor.view.data())[1];
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
  EXPECT_EQ(ListTensors(*dumper_.grads())[0].tensor.view.shape(), Dims({1, 2}));
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
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("model.a", "model.c.d", "model.list.0.a"));
  ASSERT_TRUE(dumper_.AddTensorData("b", view_, options).ok());
  EXPECT_EQ(PathsOf(*dumper_.tensors()).back(), "b");
  // A map that becomes empty stays, as Python's does.
  ASSERT_TRUE(dumper_.AddTensorData("empty", ValueMap{{"b", view_}}, options).ok());
  EXPECT_TRUE(dumper_.tensors()->map().Find("empty")->map().empty());
}

TEST_F(TensorDumperTest, ExcludedObjectsNeedNoConverter) {
  struct Opaque {};
  Enable();
  AddOptions options;
  options.exclude = {"opaque", "sample_sizes"};
  const int64_t sizes[2] = {1, 2};
  const RaggedBatch batch{{view_, nullptr}, {TensorView(sizes, {2}), nullptr}};
  dumper_.EnableRaggedBatchDumping();
  ASSERT_TRUE(
      dumper_
          .AddTensorData(
              "model",
              ValueMap{{"a", view_}, {"opaque", Value::Object(Opaque())}, {"batch", Value::Object(batch)}},
              options)
          .ok());
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("model.a", "model.batch.data"));
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
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("box", "boxes.0", "boxes.1"));
  EXPECT_EQ(static_cast<const float*>(ListTensors(*dumper_.tensors())[2].tensor.view.data())[1], 6);
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
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("a"));
}

TEST_F(TensorDumperTest, MapsAreMergedAndListsIndexed) {
  Enable();
  ASSERT_TRUE(
      dumper_.AddTensorData("a", ValueMap{{"b", view_}, {"list", Value::List{ValueMap{}, ValueMap{}}}}).ok());
  ASSERT_TRUE(dumper_.AddTensorData("a", ValueMap{{"c", view_}}).ok());
  ASSERT_TRUE(dumper_.AddTensorData("a.list.1.d", view_).ok());
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("a.b", "a.list.1.d", "a.c"));
  EXPECT_EQ(dumper_.AddTensorData("a", ValueMap{{"e", view_}, {"c", 1}}).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(dumper_.AddTensorData("a.list.2.d", view_).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(dumper_.AddTensorData("a.list.x", view_).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("a.b", "a.list.1.d", "a.c"));
}

TEST_F(TensorDumperTest, PausedCallsDoNothingAndPendingDataStays) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  dumper_.Pause();
  EXPECT_TRUE(dumper_.AddTensorData("b", view_).ok());
  EXPECT_TRUE(dumper_.Dump().ok());
  dumper_.SetDumpCount(7);
  dumper_.Resume();
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("a"));
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_TRUE(ReadDump(dir_ + "/7").ok());
}

TEST_F(TensorDumperTest, ResumeDoesNotEnable) {
  dumper_.Resume();
  EXPECT_FALSE(dumper_.enabled());
  EXPECT_FALSE(dumper_.active());
}

TEST_F(TensorDumperTest, DiscardForgets) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  dumper_.Discard();
  EXPECT_TRUE(dumper_.tensors()->map().empty());
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

TEST_F(TensorDumperTest, OnlyLargeFilesAreMapped) {
  Enable();
  const std::vector<float> large(4096);
  const TensorView large_view(large.data(), {4096});
  for (const DumpFormat format : {DumpFormat::kBinary, DumpFormat::kNpy, DumpFormat::kSafetensors}) {
    const std::string name(Name(format));
    ASSERT_TRUE(dumper_.AddTensorData(name, ValueMap{{"small", view_}, {"large", large_view}}, format).ok());
  }
  ASSERT_TRUE(dumper_.Dump().ok());
  const Dump dump = ReadDump(dir_ + "/0").value();
  for (const NamedTensor& tensor : ListTensors(dump.tensors)) {
    EXPECT_EQ(tensor.tensor.file_backed, tensor.tensor.view.num_elements() == 4096) << tensor.path;
  }
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

  // The comparison is as if all had been dumped.
  const TreeComparison comparison = CompareDumps(dir_ + "/0", options.dir + "/0");
  EXPECT_EQ(comparison.results[0].comparison.status, CompareStatus::kBitwiseEqual);
  EXPECT_EQ(comparison.first_failure()->path, "other");
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
  options.selection.iterations.every = 2;
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
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("model.w", "list.1.w"));
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
  EXPECT_EQ(dumper_.CompareToDumpedData()->verdict(), Verdict::kCouldNotCompare);
}

TEST_F(TensorDumperTest, OnlyAComparisonThatPassesSaysSoInOneLine) {
  Enable();
  ASSERT_TRUE(dumper_.AddTensorData("a", view_).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  const auto said = [&](double value, auto compare) {
    dumper_.ResetDumpCount();
    EXPECT_TRUE(value == 0 ? dumper_.AddTensorData("a", view_).ok() : dumper_.AddTensorData("a", value).ok());
    testing::internal::CaptureStderr();
    compare();
    return testing::internal::GetCapturedStderr();
  };
  const std::string line =
      "ott: compared with the dump " + dir_ + "/0: equal (bit for bit): 1 bitwise equal\n";
  EXPECT_EQ(said(0, [&] { EXPECT_TRUE(dumper_.CompareToDumpedData().ok()); }), line);
  EXPECT_EQ(said(1, [&] { EXPECT_TRUE(dumper_.CompareToDumpedData().ok()); }), "");
  dumper_.SetDumpIsCompare({});
  EXPECT_EQ(said(0, [&] { EXPECT_TRUE(dumper_.Dump().ok()); }), line);
  EXPECT_EQ(said(1, [&] { EXPECT_FALSE(dumper_.Dump().ok()); }), "");
}

TEST_F(TensorDumperTest, DumpsWithoutNumbersThatAgreePassUnlessThatIsRefused) {
  Enable();
  dumper_.SetDumpCount(1);
  ASSERT_TRUE(dumper_.AddTensorData("note", "only a text").ok());
  for (const int64_t count : {1, 2}) {
    dumper_.SetDumpCount(count);
    ASSERT_TRUE(dumper_.Dump().ok());
  }
  const auto compare = [&](int64_t count, const CompareOptions& options) {
    dumper_.SetDumpCount(count);
    const Value data = count == 1 ? ValueMap{{"note", "only a text"}} : ValueMap();
    EXPECT_TRUE(dumper_.AddTensorData("", data).ok());
    return dumper_.CompareToDumpedData(options)->verdict();
  };
  CompareOptions refuse;
  refuse.allow_empty = false;
  for (const int64_t count : {1, 2}) {
    EXPECT_EQ(compare(count, {}), Verdict::kEqual) << count;
    EXPECT_EQ(compare(count, refuse), Verdict::kCouldNotCompare) << count;
  }
  // Not compared, and so not counted.
  dumper_.SetDumpCount(2);
  EXPECT_EQ(dumper_.CompareToDumpedData({}, /*compare_if_empty=*/false)->verdict(),
            Verdict::kCouldNotCompare);
  EXPECT_EQ(dumper_.dump_count(), 2);
}

TEST_F(TensorDumperTest, AComparisonWaitsForTheWriterThreads) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.num_writer_threads = 1;
  Enable(options);
  const std::vector<float> large(1'000'000, 1.25f);
  const auto add = [&] {
    dumper_.ResetDumpCount();
    EXPECT_TRUE(dumper_.AddTensorData("a", TensorView(large.data(), {1'000'000})).ok());
  };
  add();
  ASSERT_TRUE(dumper_.Dump().ok());
  add();
  EXPECT_TRUE(dumper_.CompareToDumpedData()->bitwise_equal());
  add();
  ASSERT_TRUE(dumper_.Dump().ok());
  dumper_.SetDumpIsCompare({});
  add();
  EXPECT_TRUE(dumper_.Dump().ok());
}

TEST_F(TensorDumperTest, TheOrderOfAddingIsKeptAcrossTheTree) {
  Enable();
  for (const char* const path : {"data.0", "loss.0", "data.1"}) {
    ASSERT_TRUE(dumper_.AddTensorData(path, view_).ok());
  }
  EXPECT_THAT(dumper_.tensor_order(), ElementsAre("data.0", "loss.0", "data.1"));
  ASSERT_TRUE(dumper_.Dump().ok());
  const Manifest manifest = ReadManifest(dir_ + "/0")->value();
  EXPECT_THAT(manifest.tensor_order, ElementsAre("data.0", "loss.0", "data.1"));
  std::vector<std::string> paths;
  for (const ManifestTensor& tensor : manifest.tensors) paths.push_back(tensor.path);
  EXPECT_EQ(paths, manifest.tensor_order);
  // Tensors that are added in the order of the tree need no list.
  ASSERT_TRUE(dumper_.AddTensorData("data.0", view_).ok());
  ASSERT_TRUE(dumper_.AddTensorData("loss.0", view_).ok());
  ASSERT_TRUE(dumper_.Dump().ok());
  EXPECT_THAT(ReadManifest(dir_ + "/1")->value().tensor_order, IsEmpty());
}

TEST_F(TensorDumperTest, OrderOfAddingIsNoDifference) {
  Enable();
  const auto add = [&](std::vector<const char*> names) {
    for (const char* const name : names) EXPECT_TRUE(dumper_.AddTensorData(name, view_).ok());
  };
  add({"a", "b.x", "b.y"});
  ASSERT_TRUE(dumper_.Dump().ok());
  dumper_.ResetDumpCount();
  add({"b.y", "b.x", "a"});
  EXPECT_TRUE(dumper_.CompareToDumpedData()->bitwise_equal());
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
  EXPECT_THAT(std::string(status.message()), ContainsRegex("[^.]a: shape differs"));

  dumper_.SetDumpIsCompare({}, TensorDumper::OnDifference::kWarn);
  dumper_.ResetDumpCount();
  ASSERT_TRUE(dumper_.AddTensorData("a", 2.0).ok());
  testing::internal::CaptureStderr();
  EXPECT_TRUE(dumper_.Dump().ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), ContainsRegex("[^.]a: shape differs"));
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
  EXPECT_THAT(PathsOf(*TensorDumper::Get().tensors()), ElementsAre("scope.a"));
  {
    const DumpRange range("paused within");
    TensorDumper::Get().Pause();
  }
  TensorDumper::RunIfEnabled(count);
  EXPECT_EQ(calls, 1);
  TensorDumper::Get().Resume();
  EXPECT_EQ(TensorDumper::Get().PopRange().code(), absl::StatusCode::kFailedPrecondition);
}

void DumpAndExit(const std::string& dir) {
  TensorDumperOptions options = OptionsFor(dir);
  options.num_writer_threads = 1;
  TensorDumper& dumper = TensorDumper::Get();
  if (!dumper.Enable(options).ok()) std::abort();
  dumper.PerformAfterDumpCount(1, [] { std::exit(0); });
  const std::vector<float> large(1'000'000, 1.25f);
  if (!dumper.AddTensorData("a", TensorView(large.data(), {1'000'000})).ok()) std::abort();
  dumper.Dump().IgnoreError();
}

TEST(TensorDumperDeathTest, WhatIsStillWrittenIsWaitedForAsTheProgramEnds) {
  const std::string dir = MakeTestDir();
  EXPECT_EXIT(DumpAndExit(dir), testing::ExitedWithCode(0), "");
  EXPECT_THAT(PathsOf(ReadDump(dir + "/0")->tensors), ElementsAre("a"));
}

TEST(TensorDumperDeathTest, ErrorsAsTheProgramEndsArePrinted) {
  EXPECT_EXIT(DumpAndExit("/proc/ott_dumps"), testing::ExitedWithCode(0), "tensor dumper: .*/proc/ott_dumps");
}

}  // namespace
}  // namespace ott
