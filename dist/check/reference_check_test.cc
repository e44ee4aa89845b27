#include "ott/dist/check/reference_check.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dist/check/ranks_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kIteration = 7;

// A whole tensor [4, 6] and two small ones, dumped by rank 0 of a reference run of one rank.
class ReferenceCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(dir_);
    std::iota(experts_.begin(), experts_.end(), 1.0f);
    RunInfo info;
    info.set_world_size(1);
    std::filesystem::create_directories(DumpsDirectory(dir_, 0));
    ASSERT_TRUE(WriteRunInfo(dir_, info).ok());
    Write(Tree(TensorView(experts_.data(), {4, 6})));
  }

  void Write(const Value& tensors) const {
    std::filesystem::remove_all(Dump());
    DumpContents contents;
    contents.tensors.tree = &tensors;
    contents.tensors.format = [](std::string_view) { return DumpFormat::kBinary; };
    ASSERT_TRUE(WriteDump(Dump(), contents).ok());
  }

  std::string Dump() const { return DumpsDirectory(dir_, 0) + "/" + std::to_string(kIteration); }

  Value Tree(const TensorView& experts) const {
    return ValueMap{{"loss", 0.5},
                    {"weights", ValueMap{{"experts", experts}, {"bias", TensorView(bias_.data(), {2})}}}};
  }

  CrossCheckConfig Config(const std::string& more) const {
    CrossCheckConfig config = ConfigOf(more);
    config.set_reference_run(dir_);
    if (config.reference_ranks().empty()) config.add_reference_ranks(0);
    return config;
  }

  // The verdict on `rank` of 4, which holds columns 3 * part to 3 * part + 2 of the experts.
  CrossCheckVerdict CheckShard(int rank, int part, float change = 0, int num_parts = 2) const {
    const auto check =
        ReferenceCheck::Create(Config(R"(sharded { paths: "*.experts" dimension: 1 along: "part" })"),
                               MeshOf("replica", 4 / num_parts, "part", num_parts))
            .value();
    std::vector<float> shard;
    for (int row = 0; row < 4; ++row) {
      for (int column = 0; column < 3; ++column) shard.push_back(experts_[row * 6 + part * 3 + column]);
    }
    shard[7] += change;
    return check.Check(kIteration, rank, Tree(TensorView(shard.data(), {4, 3})), nullptr);
  }

  std::string dir_;
  std::vector<float> experts_ = std::vector<float>(24);
  std::vector<float> bias_ = {0.25f, 0.75f};
};

// Says what happened to a tensor of three elements since the reference was dumped.
enum class Change { kNone, kClose, kFar, kFarAndClose, kNaN, kShape, kDType, kGone };

TEST_F(ReferenceCheckTest, OfAnyChangesTheVerdictIsThatOfTheDefinition) {
  constexpr double kClose = 0x1p-10;
  std::mt19937 random(1);
  for (int trial = 0; trial < 150; ++trial) {
    const auto one_in = [&](int n) { return random() % n == 0; };
    CrossCheckConfig config = Config("");
    const int tolerance = static_cast<int>(random() % 3);
    const double atol = tolerance == 1 ? 0.5 : 0, rtol = tolerance == 2 ? 2 * kClose : 0;
    config.mutable_reference_tolerance()->set_atol(atol);
    config.mutable_reference_tolerance()->set_rtol(rtol);
    const bool only_parameters = one_in(4);
    if (only_parameters) config.add_kinds(TENSOR_KIND_PARAMETER);
    std::vector<std::string> order = {"weights.a", "weights.b", "optimizer.m", "note", "weights.s"};
    if (one_in(2)) std::shuffle(order.begin(), order.end(), random);
    const bool text_differs = one_in(4), has_extra = one_in(5), gradient_differs = one_in(3);
    const bool reference_has_gradients = one_in(2);
    const bool has_gradients = one_in(4) ? !reference_has_gradients : reference_has_gradients;
    std::map<std::string, Change> changes;
    for (const std::string& path : order)
      changes[path] = one_in(2) ? Change::kNone : static_cast<Change>(random() % 8);

    // NaN on both sides is no difference.
    const std::vector<float> elements = {1, 2, 4}, with_nan = {std::nanf(""), 2, 4};
    const std::vector<double> wide = {1, 2, 4};
    std::map<std::string, std::vector<float>> current;
    ValueMap maps[2][2];  // of the reference and the current: weights, optimizer
    ValueMap trees[2];
    for (const auto& [path, change] : changes) {
      if (path == "note") continue;
      const std::vector<float>& before = path == "optimizer.m" ? with_nan : elements;
      std::vector<float>& after = current[path] = before;
      if (change == Change::kClose || change == Change::kFarAndClose) after[1] += 2 * kClose;
      if (change == Change::kFar || change == Change::kFarAndClose) after[2] += 1;
      if (change == Change::kNaN) after[1] = std::nanf("");
      const bool is_weight = path[0] == 'w';
      const std::string name = path.substr(path.find('.') + 1);
      maps[0][is_weight].Insert(name, TensorView(before.data(), {3}));
      if (change == Change::kGone) continue;
      maps[1][is_weight].Insert(name, change == Change::kDType
                                          ? TensorView(wide.data(), {3})
                                          : TensorView(after.data(), {change == Change::kShape ? 2 : 3}));
    }
    for (const int side : {0, 1}) {
      trees[side].Insert("optimizer", maps[side][0]);
      trees[side].Insert("weights", maps[side][1]);
      trees[side].Insert("note", side == 1 && text_differs ? "linear" : "cosine");
    }
    if (has_extra) trees[1].Insert("z", TensorView(elements.data(), {3}));
    const std::vector<float> far = {1, 2, 5};
    const Value gradients[2] = {ValueMap{{"g", TensorView(elements.data(), {3})}},
                                ValueMap{{"g", TensorView((gradient_differs ? far : elements).data(), {3})}}};
    const Value reference = trees[0];
    std::filesystem::remove_all(Dump());
    DumpContents contents;
    contents.tensors.tree = &reference;
    contents.tensors.order = &order;
    contents.tensors.format = [](std::string_view path) {
      return path == "weights.s" ? DumpFormat::kStatistics : DumpFormat::kBinary;
    };
    if (reference_has_gradients) contents.grads.tree = &gradients[0];
    ASSERT_TRUE(WriteDump(Dump(), contents).ok());

    CrossCheckVerdict expected;
    expected.set_outcome(BITWISE_EQUAL);
    std::map<TensorKind, std::pair<int, int>> kinds;
    const auto add = [&](const std::string& path, TensorKind kind, const std::string& problem, double error,
                         double relative, double passing, bool passes, bool is_unknown = false) {
      if (only_parameters && kind != TENSOR_KIND_PARAMETER) return;
      expected.set_num_tensors(expected.num_tensors() + 1);
      ++kinds[kind].first;
      kinds[kind].second += passes ? 0 : 1;
      if (problem.empty() && passing == 0 && error == 0) return;
      expected.set_num_different_tensors(expected.num_different_tensors() + 1);
      TensorError& one = *expected.add_tensor_errors();
      one.set_tensor(path);
      one.set_problem(problem);
      if (is_unknown) one.set_is_unknown(true);
      if (problem.empty()) {
        one.set_max_abs_error(error);
        one.set_max_rel_error(relative);
        one.set_passing_atol(passing);
        one.set_atol(atol);
        one.set_rtol(rtol);
        expected.set_max_abs_error(std::max(expected.max_abs_error(), error));
        expected.set_max_rel_error(std::max(expected.max_rel_error(), relative));
      }
      Worsen(passes ? WITHIN_TOLERANCE : is_unknown ? NOT_COMPARED : DIFFERENT, expected);
      if (passes || !expected.tensor().empty()) return;
      expected.set_tensor(path);
      expected.set_tensor_position(expected.num_tensors() - 1);
      if (problem.empty()) {
        expected.set_dtype("float32");
        expected.add_shape(3);
      } else {
        AddReason(path + ": " + problem, expected);
      }
    };
    Change first = Change::kNone;
    for (const std::string& path : order) {
      const bool had_none = expected.tensor().empty();
      const TensorKind kind = path == "note"   ? TENSOR_KIND_OTHER
                              : path[0] == 'w' ? TENSOR_KIND_PARAMETER
                                               : TENSOR_KIND_OPTIMIZER_STATE;
      const Change change = changes[path];
      if (path == "note") {
        if (text_differs)
          add(path, kind, "mismatch: reference \"cosine\", current \"linear\"", 0, 0, 0, false);
      } else if (change == Change::kGone) {
        add(path, kind, "missing: a tensor", 0, 0, 0, false);
      } else if (path == "weights.s" && change != Change::kNone) {
        add(path, kind, "could not compare: the digests differ, and only statistics were dumped", 0, 0, 0,
            false, true);
      } else if (change == Change::kShape) {
        add(path, kind, "shape differs: reference [3], current [2]", 0, 0, 0, false);
      } else if (change == Change::kDType) {
        add(path, kind, "dtype differs: reference float32, current float64", 0, 0, 0, false);
      } else if (change == Change::kNaN) {
        add(path, kind, "", 0, 0, std::numeric_limits<double>::infinity(), false);
      } else if (change == Change::kNone) {
        add(path, kind, "", 0, 0, 0, true);
      } else if (change == Change::kClose) {
        add(path, kind, "", 2 * kClose, kClose, std::max(0.0, 2 * kClose - 2 * rtol), tolerance > 0);
      } else {
        add(path, kind, "", 1, 0.25, 1 - 4 * rtol, false);
      }
      if (had_none && !expected.tensor().empty()) first = path == "note" ? Change::kNone : change;
    }
    if (has_extra) add("z", TENSOR_KIND_OTHER, "extra: a tensor", 0, 0, 0, false);
    if (reference_has_gradients && has_gradients) {
      if (expected.tensor().empty()) first = Change::kFar;
      add("grads.g", TENSOR_KIND_GRADIENT, "", gradient_differs, 0.25 * gradient_differs,
          gradient_differs ? 1 - 4 * rtol : 0, !gradient_differs);
    } else if ((reference_has_gradients || has_gradients) && !only_parameters) {
      Worsen(DIFFERENT, expected);
      AddReason(has_gradients ? "this run has gradients, the reference has none"
                              : "the reference has gradients, this run has none",
                expected);
    }
    if (only_parameters && maps[1][1].empty()) {
      Worsen(NOT_COMPARED, expected);
      AddReason("no tensor is TENSOR_KIND_PARAMETER", expected);
    }

    const auto check = ReferenceCheck::Create(config, RankMeshes(4)).value();
    CrossCheckVerdict verdict = check.Check(kIteration, 2, trees[1], has_gradients ? &gradients[1] : nullptr);
    const std::string all = verdict.DebugString();
    ASSERT_EQ(verdict.kinds_size(), verdict.outcome() == DIFFERENT ? kinds.size() : 0) << all;
    for (const KindCount& count : verdict.kinds()) {
      EXPECT_EQ(count.num_tensors(), kinds[count.kind()].first) << all;
      EXPECT_EQ(count.num_different(), kinds[count.kind()].second) << all;
    }
    ASSERT_EQ(verdict.differences_size(), verdict.dtype().empty() ? 0 : 1);
    if (!verdict.dtype().empty()) {
      const FirstDifference& difference = verdict.differences(0);
      const bool is_first = first != Change::kFarAndClose;
      EXPECT_THAT(difference.ranks(), ElementsAre(2));
      EXPECT_EQ(difference.element(), first == Change::kNaN || first == Change::kClose ? 1 : 2) << all;
      EXPECT_THAT(difference.index(), ElementsAre(difference.element()));
      EXPECT_EQ(difference.expected(), difference.element() == 1 ? "2" : "4");
      EXPECT_EQ(difference.value(), first == Change::kNaN     ? "nan"
                                    : first == Change::kClose ? "2.0019531"
                                                              : "5");
      EXPECT_EQ(difference.has_ulp_distance(), is_first && first != Change::kNaN);
      EXPECT_EQ(difference.flipped_bits_size() > 0, is_first) << all;
    }
    verdict.clear_kinds();
    verdict.clear_differences();
    expected.set_mode(REFERENCE);
    expected.set_iteration(kIteration);
    expected.set_rank(2);
    expected.set_atol(atol);
    expected.set_rtol(rtol);
    expected.set_reference(Dump());
    EXPECT_EQ(verdict.DebugString(), expected.DebugString());
  }
}

TEST_F(ReferenceCheckTest, WhatCannotBeReachedIsNotComparedAndSaysWhy) {
  const Value tree = Tree(TensorView(experts_.data(), {4, 6}));
  const auto reason = [&](CrossCheckConfig config, int num_ranks, int64_t iteration = kIteration,
                          const absl::Status& problem = absl::OkStatus()) {
    const auto check = ReferenceCheck::Create(config, RankMeshes(num_ranks));
    const CrossCheckVerdict verdict = check->Check(iteration, num_ranks - 1, tree, nullptr, problem);
    EXPECT_EQ(verdict.outcome(), verdict.reason().empty() ? BITWISE_EQUAL : NOT_COMPARED);
    return verdict.reason();
  };
  const auto at = [this](int rank) { return Config(absl::StrCat("reference_ranks: ", rank)); };
  CrossCheckConfig any = Config("");
  any.clear_reference_ranks();
  EXPECT_EQ(reason(any, 1), "");
  EXPECT_EQ(reason(any, 2),
            "reference: " + dir_ +
                " was made by 1 ranks, this run has 2; reference_ranks says which to compare with which");
  EXPECT_EQ(reason(at(0), 3), "");
  EXPECT_EQ(reason(at(1), 3), "reference: " + dir_ + " has no rank 1, only 1 ranks");
  EXPECT_EQ(reason(at(-1), 3), "reference: " + dir_ + " has no rank -1, only 1 ranks");
  EXPECT_EQ(reason(Config("reference_ranks: [1, 0]"), 2), "");
  EXPECT_EQ(reason(at(0), 1, 8),
            "the reference has no dump of rank 0 in iteration 8; it has 1, from iteration 7 to "
            "7; dump the same iterations in both runs");
  std::filesystem::create_directory(DumpPath(dir_, 0, 12));
  EXPECT_THAT(reason(at(0), 1, 8), HasSubstr("; it has 2, from iteration 7 to 12; "));
  EXPECT_THAT(reason(at(0), 1, 12), HasSubstr(DumpPath(dir_, 0, 12)));
  EXPECT_EQ(reason(at(0), 1, kIteration, absl::InternalError("no copy")), "no copy");
  std::filesystem::remove_all(DumpsDirectory(dir_, 0));
  EXPECT_THAT(reason(at(0), 1), HasSubstr("iteration 7, nor in any other; "));
  const std::string loop = dir_ + "/loop";
  std::filesystem::create_symlink(loop, loop);
  for (const std::string& reference : {dir_ + "/none", loop, std::string(100000, 'x')}) {
    any.set_reference_run(reference);
    EXPECT_THAT(reason(any, 1), HasSubstr("reference: "));
  }
}

TEST_F(ReferenceCheckTest, WhatTheReferenceSelectsForNoDumpIsLeftOut) {
  RunInfo info = ReadRunInfo(dir_).value();
  info.mutable_config()->mutable_dump()->add_include_globs("weights.*");
  info.mutable_config()->mutable_dump()->add_exclude_regexes(".*bias");
  ASSERT_TRUE(WriteRunInfo(dir_, info).ok());
  const TensorView experts(experts_.data(), {4, 6}), bias(bias_.data(), {2});
  const Value list = Value::List{bias};
  Write(ValueMap{
      {"none", ValueMap()}, {"rate", 0.5}, {"weights", ValueMap{{"experts", experts}, {"list", list}}}});
  const auto check = ReferenceCheck::Create(Config(""), RankMeshes(1));
  const Value grads = ValueMap{{"bias", bias}};
  for (const float change : {0.0f, 1.0f}) {
    std::vector<float> changed = experts_;
    changed[3] += change;
    const Value tensors =
        ValueMap{{"batch", bias},
                 {"none", ValueMap()},
                 {"rate", 0.5},
                 {"weights",
                  ValueMap{{"experts", TensorView(changed.data(), {4, 6})}, {"list", list}, {"bias", bias}}}};
    const CrossCheckVerdict verdict = check->Check(kIteration, 0, tensors, &grads);
    EXPECT_EQ(verdict.outcome(), change == 0 ? BITWISE_EQUAL : DIFFERENT) << FormatVerdict(verdict);
    EXPECT_EQ(verdict.num_tensors(), 3);
  }
}

TEST_F(ReferenceCheckTest, EachTensorOfAListIsCompared) {
  const float other[] = {0.25f, 0.5f};
  const auto tree = [&](int changed) -> Value {
    Value::List layers(3, TensorView(bias_.data(), {2}));
    if (changed >= 0) layers[changed] = TensorView(other, {2});
    return ValueMap{{"layers", layers}, {"norm", ValueMap{{"w", TensorView(bias_.data(), {2})}}}};
  };
  Write(tree(-1));
  const auto check = ReferenceCheck::Create(Config(""), RankMeshes(1));
  for (const int changed : {0, 1, 2}) {
    const CrossCheckVerdict verdict = check->Check(kIteration, 0, tree(changed), nullptr);
    EXPECT_EQ(verdict.tensor(), absl::StrCat("layers.", changed));
    EXPECT_EQ(verdict.num_tensors(), 4);
  }
  const CrossCheckVerdict numbers =
      check->Check(kIteration, 0, ValueMap{{"layers", 1.0}, {"norm", 1.0}}, nullptr);
  EXPECT_EQ(numbers.outcome(), DIFFERENT);
  EXPECT_THAT(numbers.reason(), HasSubstr("layers: "));
}

TEST_F(ReferenceCheckTest, AShardIsComparedWithItsPartOfTheWhole) {
  EXPECT_EQ(CheckShard(0, 0).outcome(), BITWISE_EQUAL) << FormatVerdict(CheckShard(0, 0));
  EXPECT_EQ(CheckShard(3, 1).outcome(), BITWISE_EQUAL);
  EXPECT_EQ(CheckShard(3, 0).outcome(), DIFFERENT);
  const CrossCheckVerdict verdict = CheckShard(1, 1, 0.5f);
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_EQ(verdict.tensor(), "weights.experts");
  EXPECT_EQ(verdict.num_different_tensors(), 1);
  EXPECT_THAT(verdict.differences(0).index(), ElementsAre(2, 1));
  EXPECT_EQ(CheckShard(0, 0, 0, 4).outcome(), DIFFERENT);
  EXPECT_EQ(CheckShard(0, 0, 0, 4).reason(),
            "weights.experts: shape differs: reference [4, 2], current [4, 3]");
  // The last rank of few elements has none.
  const auto tree = [&](int64_t size) -> Value {
    return ValueMap{{"v", Value::List{TensorView(experts_.data(), {size})}}};
  };
  Write(tree(5));
  const auto check = ReferenceCheck::Create(Config("sharded { paths: 'v.0' along: 'part' }"),
                                            MeshOf("replica", 1, "part", 4));
  EXPECT_EQ(check->Check(kIteration, 3, tree(0), nullptr).reason(), "");
  EXPECT_EQ(check->Check(kIteration, 3, tree(1), nullptr).reason(),
            "v.0: shape differs: reference [0], current [1]");
}

TEST_F(ReferenceCheckTest, AKindThatIsNotThereIsNoPassNorIsNothing) {
  const std::string absent = "no tensor is TENSOR_KIND_GRADIENT", nothing = "nothing to compare";
  struct Case {
    bool has_tensor;
    std::string config, reason;
  };
  for (const auto& [has_tensor, config, reason] : std::vector<Case>{
           {true, "kinds: TENSOR_KIND_PARAMETER", ""},
           {true, "kinds: [TENSOR_KIND_PARAMETER, TENSOR_KIND_GRADIENT]", absent},
           {true, "kinds: TENSOR_KIND_GRADIENT", absent + "; " + nothing},
           {false, "", ""},
           {false, "kinds: TENSOR_KIND_GRADIENT", absent + "; " + nothing},
           {false, "kinds: TENSOR_KIND_OTHER tensor_kinds { kind: TENSOR_KIND_PARAMETER paths: 'rate' }",
            nothing}}) {
    ValueMap tree = {{"note", "the same"}, {"rate", 1.0}};
    if (has_tensor) tree.Insert("weights", ValueMap{{"w", TensorView(bias_.data(), {2})}});
    Write(tree);
    const CrossCheckVerdict verdict =
        ReferenceCheck::Create(Config(config), RankMeshes(4))->Check(kIteration, 0, tree, nullptr);
    EXPECT_EQ(verdict.reason(), reason);
    EXPECT_EQ(verdict.outcome(), reason.empty() ? BITWISE_EQUAL : NOT_COMPARED);
  }
  const Value weights = ValueMap{{"weights", ValueMap{{"w", TensorView(bias_.data(), {2})}}}};
  Write(weights);
  const auto check = ReferenceCheck::Create(Config("kinds: TENSOR_KIND_PARAMETER"), RankMeshes(4));
  EXPECT_EQ(check->Check(kIteration, 0, ValueMap(), nullptr).outcome(), DIFFERENT) << "all are gone";
  Write(ValueMap());
  EXPECT_EQ(check->Check(kIteration, 0, weights, nullptr).outcome(), DIFFERENT) << "all are new";
  const CrossCheckVerdict of_nothing =
      ReferenceCheck::Create(Config(""), RankMeshes(4))->Check(kIteration, 0, ValueMap(), nullptr);
  EXPECT_EQ(of_nothing.reason(), nothing);
  EXPECT_EQ(of_nothing.outcome(), NOT_COMPARED);
}

// The tree has an image of a selected tensor, and lists of another kind.
TEST_F(ReferenceCheckTest, KindsSelectTensorsHoweverTheyWereDumped) {
  const auto check = ReferenceCheck::Create(
      Config("kinds: TENSOR_KIND_PARAMETER tensor_kinds { kind: TENSOR_KIND_PARAMETER paths: ['w', 'v'] }"),
      RankMeshes(4));
  const float swapped[] = {0.75f, 0.25f};
  const auto tree = [&](bool is_swapped, double rate) -> Value {
    return ValueMap{
        {"w", TensorView(is_swapped ? swapped : bias_.data(), {1, 2})},
        {"v", TensorView(bias_.data(), {2})},
        {"rates", Value::List{1.0, rate}},
        {rate == 1 ? "once" : "now", ValueMap{{"layers", Value::List{ValueMap{{"rate", rate}}}}}}};
  };
  const auto write = [](const std::string& dir, const Value& of) {
    std::filesystem::remove_all(dir);
    DumpContents contents;
    contents.tensors.tree = &of;
    contents.tensors.format = [](std::string_view path) {
      return path == "w" ? DumpFormat::kImageI : DumpFormat::kJson;
    };
    ASSERT_TRUE(WriteDump(dir, contents).ok());
  };
  write(Dump(), tree(false, 1));
  for (const bool is_swapped : {false, true}) {
    for (const double rate : {1.0, 2.0}) {
      const Value current = tree(is_swapped, rate);
      write(dir_ + "/current", current);
      for (const CrossCheckVerdict& verdict : {check->Check(kIteration, 0, current, nullptr),
                                               check->CheckDump(kIteration, 0, dir_ + "/current")}) {
        EXPECT_EQ(verdict.outcome(), is_swapped ? DIFFERENT : BITWISE_EQUAL) << FormatVerdict(verdict);
      }
    }
  }
}

TEST_F(ReferenceCheckTest, ToleranceOfATensorComesFromTheFile) {
  const std::string path = dir_ + "/tolerances.textproto";
  ASSERT_TRUE(WriteFileAtomically(path, R"(iterations: [0, 7]
      tensors { path: "weights.experts" atol_at: [0, 0.5] })")
                  .ok());
  const auto check =
      ReferenceCheck::Create(Config("reference_tolerances: \"" + path + "\""), RankMeshes(4)).value();
  // NaN on both sides is no difference.
  experts_[7] = std::nanf("");
  Write(Tree(TensorView(experts_.data(), {4, 6})));
  const auto verdict_with = [&](float of_experts, float of_bias) {
    experts_[5] += of_experts;
    bias_[0] += of_bias;
    return check.Check(kIteration, 0, Tree(TensorView(experts_.data(), {4, 6})), nullptr);
  };
  const CrossCheckVerdict verdict = verdict_with(0.5f, 0);
  EXPECT_EQ(verdict.outcome(), WITHIN_TOLERANCE) << FormatVerdict(verdict);
  ASSERT_EQ(verdict.tensor_errors_size(), 1);
  EXPECT_EQ(verdict.tensor_errors(0).tensor(), "weights.experts");
  EXPECT_EQ(verdict.tensor_errors(0).max_abs_error(), 0.5);
  EXPECT_EQ(verdict_with(0.5f, 0).outcome(), DIFFERENT);
  EXPECT_EQ(verdict_with(-1, 0.125f).outcome(), DIFFERENT) << "what the file does not name";
}

TEST_F(ReferenceCheckTest, ADumpIsComparedAsTheTensorsInMemoryAre) {
  const auto check = ReferenceCheck::Create(Config(""), RankMeshes(4));
  std::filesystem::copy(Dump(), dir_ + "/copy", std::filesystem::copy_options::recursive);
  EXPECT_EQ(check->CheckDump(kIteration, 2, dir_ + "/copy").outcome(), BITWISE_EQUAL);
  std::filesystem::create_directory_symlink(Dump(), dir_ + "/link");
  for (const std::string& itself : {Dump(), dir_ + "/link"}) {
    const CrossCheckVerdict verdict = check->CheckDump(kIteration, 2, itself);
    EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
    EXPECT_EQ(verdict.reason(), itself + " is " + Dump() + ", or links to it, and always agrees");
  }
  const CrossCheckVerdict verdict = check->CheckDump(kIteration, 2, dir_ + "/nothing");
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr("nothing"));
  // The latest start of a reference counts.
  std::filesystem::create_directory(dir_ + "/attempt_2");
  EXPECT_EQ(ReferenceCheck::Create(Config(""), RankMeshes(4))->ReferenceDump(kIteration, 2),
            DumpPath(dir_ + "/attempt_2", 0, kIteration));
}

}  // namespace
}  // namespace ott
