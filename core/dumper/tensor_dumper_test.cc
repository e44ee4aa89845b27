#include "ott/core/dumper/tensor_dumper.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/tensor/ragged_batch.h"
#include "tensor_dumper_for_test.h"

namespace ott {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST_F(TensorDumperTest, OffIgnoresAllCountsAndComparesNothingAndCallsNobody) {
  int calls = 0;
  const auto make = [&] {
    ++calls;
    return view_;
  };
  EXPECT_TRUE(dumper_.AddTensorData("a", make).ok());
  EXPECT_TRUE(dumper_.AddTensorData("a..b", view_).ok());
  EXPECT_TRUE(dumper_.PushRange("range").ok());
  EXPECT_TRUE(dumper_.PopRange().ok());
  DumpNow();
  dumper_.PerformAfterDumpCount(1, [&] { ++calls; });
  dumper_.SetDumpCount(5);
  EXPECT_EQ(dumper_.dump_count(), 0);
  EXPECT_FALSE(dumper_.active());
  // Two empty sides are not taken for equal.
  EXPECT_EQ(dumper_.CompareToDumpedData().value().verdict(), Verdict::kCouldNotCompare);
  Enable();
  dumper_.SetDumpCount(5);
  EXPECT_EQ(calls, 0);
  dumper_.PerformAfterDumpCount(6, [&] { ++calls; });
  DumpNow();
  EXPECT_EQ(calls, 1);
}

TEST_F(TensorDumperTest, OfATensorThatAFormatCannotHoldIsSaidOnce) {
  Enable();
  testing::internal::CaptureStderr();
  dumper_.SetDumpTypeForAll(DumpFormat::kNpy);
  for (int i = 0; i < 2; ++i) {
    Add("half", TensorView(data_, DType::kBFloat16, {2}));
    EXPECT_THAT(DumpedFormats(), ElementsAre(Pair("half", DumpFormat::kBinary)));
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_THAT(text, HasSubstr("'half': NumPy has no bfloat16"));
}

TEST_F(TensorDumperTest, EnablingTwiceOrWithoutADirectoryIsAnError) {
  EXPECT_EQ(dumper_.Enable({}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(dumper_.active());
  Enable();
  const absl::Status status = dumper_.Enable(OptionsFor(dir_));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is enabled already, with the directory " + dir_));
}

TEST_F(TensorDumperTest, TheFirstDumpIsCopiedIntoMemoryThatIsThereAlready) {
  constexpr int64_t kBytes = 4 << 20;
  TensorDumperOptions options = OptionsFor(dir_);
  options.reserved_bytes = 2 * kBytes;
  Enable(options);
  const std::vector<char> large(kBytes);
  Add("a", TensorView(large.data(), DType::kUInt8, {kBytes}), DumpFormat::kBinary);
  // The rest of the reserve follows the copy.
  const char* const copy = static_cast<const char*>(ListTensors(*dumper_.tensors())[0].tensor.view.data());
  const auto rest_is_there = [&] {
    unsigned char page = 0;
    EXPECT_EQ(mincore(const_cast<char*>(copy) + kBytes + kBytes / 2, 1, &page), 0);
    return (page & 1) != 0;
  };
  EXPECT_TRUE(rest_is_there());
  const Value keeps_the_memory = *dumper_.tensors();
  DumpNow();
  EXPECT_FALSE(rest_is_there());
}

TEST_F(TensorDumperTest, WhatIsAddedForOthersAloneIsNeitherDumpedNorCompared) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.selection.include_globs = {"a"};
  options.adds_all = true;
  Enable(options);
  const auto add = [&] {
    dumper_.ResetDumpCount();
    for (const char* const name : {"a", "b"}) Add(name, view_);
    ASSERT_TRUE(dumper_.AddGradData("b", view_).ok());
    ASSERT_TRUE(dumper_
                    .SetGradients([&](auto) {
                      return std::vector<Gradient>{{Gradient::Kind::kComputed, Tensor{view_, nullptr}}};
                    })
                    .ok());
  };
  add();
  DumpNow();
  EXPECT_FALSE(Read(0).grads.has_value());
  add();
  EXPECT_EQ(dumper_.CompareToDumpedData()->verdict(), Verdict::kEqual);
  // Gradients of nothing are gradients.
  EXPECT_EQ(dumper_.AddGradData("", ValueMap()), absl::OkStatus());
  EXPECT_EQ(dumper_.SetGradients([](auto) { return std::vector<Gradient>(); }), absl::OkStatus());
  const int64_t count = dumper_.dump_count();
  DumpNow();
  EXPECT_TRUE(Read(count).grads.has_value());
  dumper_.SetDumpIsCompare({});
  add();
  DumpNow();
}

TEST_F(TensorDumperTest, ExcludedObjectsNeedNoConverterAndWhatBecomesEmptyStays) {
  struct Opaque {};
  Enable();
  AddOptions options;
  options.exclude = {"opaque", "sample_sizes"};
  const int64_t sizes[2] = {1, 2};
  const RaggedBatch batch{{view_, nullptr}, {TensorView(sizes, {2}), nullptr}};
  dumper_.EnableRaggedBatchDumping();
  const ValueMap opaque{{"opaque", Value::Object(Opaque())}};
  Add("model",
      ValueMap{
          {"a", view_}, {"opaque", opaque}, {"list", Value::List{opaque}}, {"batch", Value::Object(batch)}},
      options);
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("model.a", "model.batch.data"));
  // The Python dumper leaves it out, too.
  Add("empty", ValueMap{{"opaque", view_}}, options);
  EXPECT_TRUE(dumper_.tensors()->map().Find("empty")->map().empty());
  // Maps and lists of which nothing is selected are left out.
  TensorDumper others;
  TensorDumperOptions of_others = OptionsFor(MakeTestDir());
  of_others.selection.exclude_globs = {"model.*"};
  ASSERT_TRUE(others.Enable(of_others).ok());
  ASSERT_TRUE(others.AddTensorData("model", ValueMap{{"a", view_}}).ok());
  EXPECT_TRUE(others.tensors()->map().empty());
}

TEST_F(TensorDumperTest, ObjectsAreConverted) {
  struct Box {
    float corners[2];
  };
  TensorDumperOptions options = OptionsFor(dir_);
  int calls = 0;
  options.around_add = [&](const auto& add) {
    ++calls;
    add();
  };
  Enable(options);
  EXPECT_THAT(std::string(dumper_.AddTensorData("box", Box()).message()), HasSubstr("no converter"));
  dumper_.RegisterConverter<Box>([](const Box& box) { return TensorView(box.corners, {2}); });
  Add("box", Box{{1, 2}});
  Add("boxes", [] { return std::vector<Box>{{{3, 4}}, {{5, 6}}}; });
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("box", "boxes.0", "boxes.1"));
  EXPECT_EQ(static_cast<const float*>(ListTensors(*dumper_.tensors())[2].tensor.view.data())[1], 6);
  EXPECT_EQ(calls, 3);
}

TEST_F(TensorDumperTest, RaggedBatchesAreDumpedAsStructureOrPerSample) {
  Enable();
  const int64_t sizes[2] = {1, 2};
  const RaggedBatch batch{{view_, nullptr}, {TensorView(sizes, {2}), nullptr}};
  dumper_.EnableRaggedBatchDumping();
  Add("structure", batch);
  dumper_.EnableRaggedBatchDumping(/*as_per_sample=*/true);
  Add("samples", batch, DumpFormat::kBinary);
  DumpNow();
  const Dump dump = Read(0);
  EXPECT_THAT(PathsOf(dump.tensors),
              ElementsAre("structure.data", "structure.sample_sizes", "samples.0", "samples.1"));
  EXPECT_EQ(dump.tensors.map().Find("structure")->map().Find("non_uniform_dim")->int_value(), 1);
  EXPECT_EQ(dump.tensors.map().Find("samples")->list()[0].tensor().view.shape(), Dims({1}));
}

TEST_F(TensorDumperTest, WhatCannotBeInsertedChangesNothing) {
  Enable();
  Add("a", ValueMap{{"b", view_}});
  Add("a", ValueMap{{"c", view_}});
  EXPECT_EQ(dumper_.AddTensorData("a", ValueMap{{"e", view_}, {"c", 1}}).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("a.b", "a.c"));
}

TEST_F(TensorDumperTest, PausedCallsDoNothingAndPendingDataStaysUntilItIsDiscarded) {
  dumper_.Resume();
  EXPECT_FALSE(dumper_.enabled() || dumper_.active());
  Enable();
  Add("discarded", view_);
  dumper_.Discard();
  Add("a", view_);
  dumper_.Pause();
  EXPECT_TRUE(dumper_.AddTensorData("b", view_).ok());
  EXPECT_TRUE(dumper_.SetGradients([](auto) { return absl::InternalError("called"); }).ok());
  DumpNow();
  dumper_.SetDumpCount(7);
  dumper_.Resume();
  EXPECT_THAT(PathsOf(*dumper_.tensors()), ElementsAre("a"));
  DumpNow();
  EXPECT_TRUE(ReadDump(dir_ + "/7").ok());
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
    gradients[0].kind = Gradient::Kind::kRequiresNoGrad;
    gradients[1] = {Gradient::Kind::kComputed, Tensor{TensorView(gradient, {2, 2}), nullptr}};
    gradients[2].kind = Gradient::Kind::kNotInGraph;
    return gradients;
  };
  ASSERT_TRUE(dumper_.SetGradients(provider).ok());
  gradient[0] = 0;
  DumpNow();
  const Value grads = Read(0).grads.value();
  const ValueMap& w = grads.map().Find("w")->map();
  EXPECT_EQ(w.Find("a")->string_value(), "`.requires_grad == False`");
  EXPECT_EQ(static_cast<const float*>(w.Find("b")->tensor().view.data())[0], 5);
  EXPECT_TRUE(w.Find("c")->is_null());
}

TEST_F(TensorDumperTest, GradientsThatWereNotSetOrAreSomethingElseAreErrors) {
  Enable();
  const auto message = [&](const GradientProvider& provider) {
    EXPECT_TRUE(dumper_.AddGradData("w", view_).ok());
    return std::string(dumper_.SetGradients(provider).message());
  };
  EXPECT_EQ(message([](auto) { return std::vector<Gradient>(); }),
            "the gradient provider returned 0 gradients for 1 tensors");
  EXPECT_EQ(
      message([&](auto) {
        return std::vector<Gradient>{{Gradient::Kind::kComputed, Tensor{TensorView(data_, {4}), nullptr}}};
      }),
      "the gradient provider returned no gradient of shape [2, 2] for 'w'");
  ASSERT_TRUE(dumper_.AddGradData("w", view_).ok());
  const absl::Status status = dumper_.Dump();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'w'"));
}

TEST_F(TensorDumperTest, FullDataIsKeptWhereTheReferenceDiffers) {
  Enable();
  Add("", ValueMap{{"same", view_}, {"other", view_}});
  DumpNow();
  TensorDumper second;
  TensorDumperOptions options = OptionsFor(MakeTestDir());
  options.reference_dir = dir_;
  ASSERT_TRUE(second.Enable(options).ok());
  ASSERT_TRUE(second.AddTensorData("", ValueMap{{"same", view_}, {"other", 5.0}}).ok());
  ASSERT_TRUE(second.Dump().ok());
  EXPECT_THAT(ReadDump(options.dir + "/0")->tensors.map().Find("other")->double_value(), 5);
  EXPECT_FALSE(ReadDump(options.dir + "/0")->tensors.map().Find("same")->is_tensor());
  // The reference has no other iteration.
  ASSERT_TRUE(second.AddTensorData("same", view_).ok());
  ASSERT_TRUE(second.Dump().ok());
  EXPECT_TRUE(ReadDump(options.dir + "/1")->tensors.map().Find("same")->is_tensor());
  // The comparison is as if all had been dumped.
  const TreeComparison comparison = CompareDumps(dir_ + "/0", options.dir + "/0");
  EXPECT_EQ(comparison.results[0].comparison.status, CompareStatus::kBitwiseEqual);
  EXPECT_EQ(comparison.first_failure()->path, "other");
  // The dump is whole if its reference was cut off.
  std::filesystem::resize_file(dir_ + "/0/manifest.json", 10);
  second.ResetDumpCount();
  ASSERT_TRUE(second.AddTensorData("same", view_).ok());
  EXPECT_THAT(std::string(second.Dump().message()),
              AllOf(HasSubstr("is dumped in full"), HasSubstr(dir_ + "/0/manifest.json")));
  EXPECT_TRUE(ReadDump(options.dir + "/0")->tensors.map().Find("same")->is_tensor());
}

TEST_F(TensorDumperTest, OnlySelectedIterationsAreDumped) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.selection.iterations.every = 2;
  Enable(options);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(dumper_.active(), i % 2 == 0);
    Add("a", view_);
    DumpNow();
    EXPECT_EQ(ReadDump(dir_ + "/" + std::to_string(i)).ok(), i % 2 == 0);
  }
  dumper_.SetDumpCount(11);
  EXPECT_FALSE(dumper_.active());
  dumper_.SetDumpCount(12);
  EXPECT_TRUE(dumper_.active());
  TensorDumper of_other_rank;
  options.selection.ranks = {0};
  options.rank = 1;
  ASSERT_TRUE(of_other_rank.Enable(options).ok());
  EXPECT_FALSE(of_other_rank.active());
  TensorDumper of_others;
  options.adds_all = true;
  ASSERT_TRUE(of_others.Enable(options).ok());
  EXPECT_TRUE(of_others.active());
}

TEST_F(TensorDumperTest, WriterThreadsWriteAllDumps) {
  TensorDumperOptions options = OptionsFor(dir_);
  options.num_writer_threads = 2;
  options.max_queued_bytes = 2 * sizeof(data_);
  Enable(options);
  float value = 0;
  for (int i = 0; i < 20; ++i) {
    value = static_cast<float>(i);
    Add("a", TensorView(&value, {}), DumpFormat::kBinary);
    value = -1;
    DumpNow();
  }
  ASSERT_TRUE(dumper_.Flush().ok());
  for (int i = 0; i < 20; ++i) {
    const Dump dump = ReadDump(dir_ + "/" + std::to_string(i)).value();
    EXPECT_EQ(*static_cast<const float*>(ListTensors(dump.tensors)[0].tensor.view.data()), i);
  }
  EXPECT_EQ(dumper_.num_dropped_dumps(), 0);
}

TEST_F(TensorDumperTest, ErrorsOfWriterThreadsReachTheCaller) {
  EnableWriter();
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/0", "a file").ok());
  Add("a", view_);
  absl::Status status = dumper_.Dump();
  status.Update(dumper_.Flush());
  EXPECT_EQ(status.message(), dir_ + "/0: is a file where a directory is needed");
  // Dump() itself says it where no thread writes.
  ASSERT_TRUE(dumper_.Disable().ok());
  Enable();
  Add("a", view_);
  EXPECT_EQ(dumper_.Dump(), status);
}

TEST_F(TensorDumperTest, DumpedDataIsComparedInPlaceWhateverTheOrder) {
  Enable();
  const auto compare = [&](const std::vector<const char*>& names, const CompareOptions& options) {
    dumper_.ResetDumpCount();
    for (const char* const name : names) Add(name, view_);
    return dumper_.CompareToDumpedData(options)->verdict();
  };
  for (const char* const name : {"a", "b.x", "b.y"}) Add(name, view_);
  DumpNow();
  EXPECT_EQ(compare({"b.y", "b.x", "a"}, {}), Verdict::kEqual);
  EXPECT_EQ(dumper_.dump_count(), 1);
  EXPECT_EQ(compare({"a", "b.x", "b.y", "c"}, {}), Verdict::kDifferent);
  CompareOptions options;
  options.allow_extra = true;
  EXPECT_EQ(compare({"a", "b.x", "b.y", "c"}, options), Verdict::kEqual);
  dumper_.Pause();
  EXPECT_EQ(compare({"a"}, {}), Verdict::kCouldNotCompare);
}

TEST_F(TensorDumperTest, OnlyAComparisonThatPassesSaysSoInOneLine) {
  Enable();
  Add("a", view_);
  DumpNow();
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
  EXPECT_EQ(said(0, [&] { DumpNow(); }), line);
  EXPECT_EQ(said(1, [&] { EXPECT_FALSE(dumper_.Dump().ok()); }), "");
}

TEST_F(TensorDumperTest, DumpsWithoutNumbersThatAgreePassUnlessThatIsRefused) {
  Enable();
  CompareOptions refuse;
  refuse.allow_empty = false;
  for (const Value& data : {Value(ValueMap{{"note", "only a text"}}), Value(ValueMap())}) {
    const auto add = [&] {
      dumper_.SetDumpCount(1);
      Add("", data);
    };
    add();
    DumpNow();
    add();
    EXPECT_EQ(dumper_.CompareToDumpedData()->verdict(), Verdict::kEqual);
    add();
    EXPECT_EQ(dumper_.CompareToDumpedData(refuse)->verdict(), Verdict::kCouldNotCompare);
  }
  // Not compared, and so not counted.
  dumper_.SetDumpCount(1);
  EXPECT_EQ(dumper_.CompareToDumpedData({}, /*compare_if_empty=*/false)->verdict(),
            Verdict::kCouldNotCompare);
  EXPECT_EQ(dumper_.dump_count(), 1);
}

TEST_F(TensorDumperTest, AComparisonWaitsForTheWriterThreads) {
  EnableWriter();
  const std::vector<float> large(1'000'000, 1.25f);
  const auto add = [&] {
    dumper_.ResetDumpCount();
    EXPECT_TRUE(dumper_.AddTensorData("a", TensorView(large.data(), {1'000'000})).ok());
  };
  add();
  DumpNow();
  add();
  EXPECT_TRUE(dumper_.CompareToDumpedData()->bitwise_equal());
  add();
  DumpNow();
  dumper_.SetDumpIsCompare({});
  add();
  DumpNow();
}

TEST_F(TensorDumperTest, TheOrderOfAddingIsKeptAcrossTheTree) {
  Enable();
  for (const char* const path : {"data.0", "loss.0", "data.1"}) {
    Add(path, view_);
    ASSERT_TRUE(dumper_.AddGradData(path, view_).ok());
  }
  ASSERT_TRUE(dumper_.SetGradients([](auto tensors) { return std::vector<Gradient>(tensors.size()); }).ok());
  EXPECT_THAT(dumper_.tensor_order(), ElementsAre("data.0", "loss.0", "data.1"));
  EXPECT_THAT(dumper_.grad_order(), ElementsAre("data.0", "loss.0", "data.1"));
  DumpNow();
  EXPECT_THAT(ReadManifest(dir_ + "/0")->value().tensor_order, ElementsAre("data.0", "loss.0", "data.1"));
}

TEST_F(TensorDumperTest, ADumpThatDiffersIsAnErrorOrAWarning) {
  Enable();
  Add("a", view_);
  DumpNow();
  dumper_.SetDumpIsCompare({});
  dumper_.ResetDumpCount();
  Add("a", 2.0);
  const absl::Status status = dumper_.Dump();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ContainsRegex("[^.]a: shape differs"));

  dumper_.SetDumpIsCompare({}, TensorDumper::OnDifference::kWarn);
  dumper_.ResetDumpCount();
  Add("a", 2.0);
  testing::internal::CaptureStderr();
  DumpNow();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), ContainsRegex("[^.]a: shape differs"));

  // A dumper that is enabled again dumps, and compares no more.
  ASSERT_TRUE(dumper_.Disable().ok());
  EXPECT_FALSE(dumper_.active());
  Enable();
  Add("a", 2.0);
  DumpNow();
  EXPECT_EQ(Read(0).tensors.map().Find("a")->double_value(), 2);
}

TEST_F(TensorDumperTest, DumpForwardsEveryOptionOfTheComparison) {
  Enable();
  Add("", ValueMap{{"a", 1.0}, {"gone", 1.0}});
  DumpNow();
  for (int strict = 0; strict < 4; ++strict) {
    CompareOptions options;
    options.tensors.tolerance.atol = strict == 1 ? 0 : 1;
    options.allow_extra = strict != 2;
    options.allow_missing = strict != 3;
    dumper_.SetDumpIsCompare(options);
    dumper_.ResetDumpCount();
    Add("", ValueMap{{"a", 1.5}, {"new", 1.0}});
    EXPECT_EQ(dumper_.Dump().ok(), strict == 0) << strict;
  }
}

TEST_F(TensorDumperTest, NothingPendingIsDumpedOnlyWhereAsked) {
  Enable();
  ASSERT_TRUE(dumper_.Dump(/*dump_if_empty=*/false).ok());
  EXPECT_EQ(dumper_.dump_count(), 0);
  EXPECT_FALSE(ReadDump(dir_ + "/0").ok());
  DumpNow();
  EXPECT_TRUE(ReadDump(dir_ + "/0").ok());
  dumper_.SetDumpIsCompare({});
  EXPECT_TRUE(dumper_.Dump(/*dump_if_empty=*/false).ok());
  EXPECT_EQ(dumper_.dump_count(), 1);
  // Gradients alone are something.
  ASSERT_TRUE(dumper_.AddGradData("w", view_).ok());
  ASSERT_TRUE(dumper_.SetGradients([](auto) { return std::vector<Gradient>(1); }).ok());
  EXPECT_FALSE(dumper_.Dump(/*dump_if_empty=*/false).ok());
  EXPECT_EQ(dumper_.dump_count(), 2);
}

TEST_F(TensorDumperTest, WhatManyThreadsAddAtOnceIsAllThere) {
  constexpr int kThreads = 8, kTensors = 200;
  Enable();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      for (int j = 0; j < kTensors; ++j) {
        const std::string path = "t" + std::to_string(i) + ".x" + std::to_string(j);
        Add(path, view_);
        EXPECT_EQ(dumper_.AddGradData(path, view_), absl::OkStatus());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto none = [](auto tensors) { return std::vector<Gradient>(tensors.size()); };
  ASSERT_EQ(dumper_.SetGradients(none), absl::OkStatus());
  EXPECT_EQ(PathsOf(*dumper_.tensors()).size(), static_cast<size_t>(kThreads * kTensors));
  EXPECT_EQ(dumper_.tensor_order().size(), static_cast<size_t>(kThreads * kTensors));
  EXPECT_EQ(dumper_.grad_order().size(), static_cast<size_t>(kThreads * kTensors));
}

TEST_F(TensorDumperTest, ActionsAreCalledOnceTheirCountIsReached) {
  Enable();
  int calls = 0;
  dumper_.PerformAfterDumpCount(2, [&] { ++calls; });
  for (const int expected : {0, 1, 1}) {
    DumpNow();
    EXPECT_EQ(calls, expected);
  }
  dumper_.PerformAfterDumpCount(30, [&] { calls = -1; });
  dumper_.PerformAfterDumpCount(30, [&] { ++calls; });
  // Also if it is passed over, in the order of counts.
  dumper_.PerformAfterDumpCount(7, [&] { calls *= 10; });
  dumper_.SetDumpCount(30);
  EXPECT_EQ(calls, 11);
  // Nor by what is enabled next.
  dumper_.PerformAfterDumpCount(31, [&] { ++calls; });
  ASSERT_TRUE(dumper_.Disable().ok());
  Enable();
  dumper_.SetDumpCount(31);
  EXPECT_EQ(calls, 11);
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
  EXPECT_EXIT(DumpAndExit(dir), testing::ExitedWithCode(0), testing::Not(HasSubstr("tensor dumper")));
  EXPECT_THAT(PathsOf(ReadDump(dir + "/0")->tensors), ElementsAre("a"));
}

TEST(TensorDumperDeathTest, ErrorsAsTheProgramEndsArePrinted) {
  EXPECT_EXIT(DumpAndExit("/proc/ott_dumps"), testing::ExitedWithCode(0), "tensor dumper: .*/proc/ott_dumps");
}

}  // namespace
}  // namespace ott
