// Shows checkpoints and dumps, and random contents in all forms.

#include "ott/questions/right/show/show.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "ott/core/base/csv.h"
#include "ott/core/base/text_table.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/dump/dump_for_test.h"
#include "ott/core/tensor/scattered_elements.h"
#include "ott/questions/answer/command_for_test.h"
#include "ott/questions/right/show/show_command.h"

namespace ott::show {
namespace {

using testing::HasSubstr;

Contents ShownAt(const std::string& path) { return Show(path).value(); }

auto FieldsOf(const TensorStatistics& of) {
  return std::tuple(of.min, of.max, of.mean, of.l2_norm, of.num_nan, of.num_inf);
}

Contents Shown(const std::string& name) { return ShownAt("core/checkpoint/testdata/" + name); }

TEST(Show, EachTensorHasItsFigures) {
  for (const char* const name : {"values.pt", "whole.pt", "dcp_2", "weights.npz"}) {
    const Checkpoint checkpoint = ReadCheckpoint(std::string("core/checkpoint/testdata/") + name).value();
    std::vector<NamedTensor> tensors = ListValues(checkpoint.state);
    tensors.erase(
        std::remove_if(tensors.begin(), tensors.end(),
                       [](const NamedTensor& of) { return of.content == NamedTensor::Content::kText; }),
        tensors.end());
    const Contents contents = Shown(name);
    std::map<std::pair<const void*, DType>, std::string> first;
    ASSERT_EQ(contents.tensors.size(), tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const ShownTensor& shown = contents.tensors[i];
      const TensorView& view = tensors[i].tensor.view;
      EXPECT_EQ(std::tuple(shown.path, shown.kind, shown.dtype, shown.shape, shown.num_bytes),
                std::tuple(tensors[i].path, StateKindOf(tensors[i].path, !view.shape().empty()), view.dtype(),
                           view.shape(), view.num_bytes()));
      const auto& scattered = tensors[i].tensor.scattered;
      const bool may_share = scattered == nullptr && view.num_elements() > 0;
      const std::string& owner =
          may_share ? first.emplace(std::pair(view.data(), view.dtype()), shown.path).first->second
                    : shown.path;
      EXPECT_EQ(shown.shares_with, owner == shown.path ? "" : owner);
      EXPECT_EQ(shown.num_parts, scattered == nullptr ? 1 : scattered->parts().size());
      EXPECT_EQ(FieldsOf(shown.statistics), FieldsOf(*ComputeStatistics(Gathered(tensors[i].tensor)->view)));
    }
  }
  // It is the first elements of what "transposed" is laid over.
  EXPECT_EQ(Shown("values.pt").tensors[2].shares_with, "transposed");
}

TEST(Show, GradientsOfADumpStandInIt) {
  const std::vector<double> numbers = {3, -4, std::numeric_limits<double>::infinity()};
  const TensorView vector(numbers.data(), {3});
  const Value tensors = ValueMap{{"note", "text"}, {"w", vector}}, grads = ValueMap{{"v", vector}};
  DumpContents dumped;
  dumped.tensors.tree = &tensors;
  dumped.grads.tree = &grads;
  const std::string dir = MakeTestDir();
  ASSERT_TRUE(WriteDump(dir, dumped).ok());
  const Contents contents = ShownAt(dir);
  EXPECT_EQ(contents.format, "a dump");
  ASSERT_EQ(contents.tensors.size(), 2);
  EXPECT_EQ(contents.tensors[0].path, "w");
  EXPECT_EQ(contents.tensors[1].path, "grads.v");
  EXPECT_EQ(contents.tensors[1].statistics.num_inf, 1);
}

TEST(Show, WhatIsEmptySharesNothing) {
  const std::string path = testing::TempDir() + "/empty.safetensors";
  const std::string header = R"({"a":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
                             R"("b":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}})";
  std::ofstream(path) << static_cast<char>(header.size()) << std::string(7, '\0') << header;
  const Contents contents = ShownAt(path);
  ASSERT_EQ(contents.tensors.size(), 2);
  for (const ShownTensor& shown : contents.tensors) EXPECT_EQ(shown.shares_with, "");
}

// Some share elements with one before them, of which they may be a part or the whole.
Contents RandomContents(std::mt19937& random) {
  Contents contents = {absl::StrCat("run\t", random() % 3), "a format", random() % 2 ? "Program 1" : "", {}};
  std::vector<std::string> first;
  const size_t size = random() % 7;
  for (size_t i = 0; i < size; ++i) {
    ShownTensor& shown = contents.tensors.emplace_back();
    shown.path = absl::StrCat("w,", random() % 9);
    shown.kind = static_cast<StateKind>(random() % kNumStateKinds);
    shown.dtype = random() % 2 ? DType::kFloat32 : DType::kBFloat16;
    shown.shape = {static_cast<int64_t>(random() % 3), 2};
    shown.num_bytes = static_cast<int64_t>(random() % 50);
    shown.num_parts = static_cast<int64_t>(random() % 3) + 1;
    if (random() % 3 > 0) {
      shown.statistics = {-static_cast<double>(random() % 9),
                          static_cast<double>(random() % 9) + 0.25,
                          static_cast<double>(random() % 9) / 8,
                          0,
                          0,
                          0};
    }
    shown.statistics.l2_norm = static_cast<double>(random() % 99) / 7;
    shown.statistics.num_nan = random() % 5;
    shown.statistics.num_inf = random() % 5;
    if (!first.empty() && random() % 2 == 0) {
      shown.shares_with = first[random() % first.size()];
    } else {
      first.push_back(shown.path);
    }
  }
  return contents;
}

std::string Figure(const std::optional<double>& number) {
  return number.has_value() ? absl::StrFormat("%.6g", *number) : "";
}

TEST(Show, RandomContentsReadAlikeInAllForms) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const Contents contents = RandomContents(random);
    const auto json = nlohmann::json::parse(ToJson(contents));
    std::string csv =
        "path,state,dtype,shape,num_bytes,l2_norm,min,max,num_nan,num_inf,num_parts,shares_with\n";
    TextTable table({"tensor", "dtype", "shape", "bytes", "norm", "min", "max", "NaN", "inf", "state"},
                    TextTable::LastColumn::kLeft);
    // The largest of those that begin at the same element, and where it stands.
    std::map<std::string, int64_t> largest;
    std::map<StateKind, int64_t> bytes_of_kind;
    int64_t num_bytes = 0;
    EXPECT_EQ(json["path"], contents.path);
    EXPECT_EQ(json["format"], contents.format);
    EXPECT_EQ(json["written_by"], contents.written_by);
    ASSERT_EQ(json["tensors"].size(), contents.tensors.size());
    for (size_t i = 0; i < contents.tensors.size(); ++i) {
      const ShownTensor& shown = contents.tensors[i];
      const TensorStatistics& of = shown.statistics;
      const std::string shape = absl::StrCat("[", shown.shape[0], ", 2]"), kind(Name(shown.kind)),
                        dtype(Name(shown.dtype));
      absl::StrAppend(&csv, "\"", shown.path, "\",", CsvField(kind), ",", dtype, ",\"", shape, "\",",
                      shown.num_bytes, ",", Figure(of.l2_norm), ",", Figure(of.min), ",", Figure(of.max));
      absl::StrAppend(&csv, ",", of.num_nan, ",", of.num_inf, ",", shown.num_parts, ",",
                      shown.shares_with.empty() ? "" : absl::StrCat("\"", shown.shares_with, "\""), "\n");
      const auto number = [](const std::optional<double>& value) {
        return value.has_value() ? nlohmann::json(*value) : nlohmann::json();
      };
      const nlohmann::json expected = {{"path", shown.path},
                                       {"state", kind},
                                       {"dtype", dtype},
                                       {"shape", shown.shape},
                                       {"num_bytes", shown.num_bytes},
                                       {"l2_norm", of.l2_norm},
                                       {"min", number(of.min)},
                                       {"max", number(of.max)},
                                       {"mean", number(of.mean)},
                                       {"num_nan", of.num_nan},
                                       {"num_inf", of.num_inf},
                                       {"num_parts", shown.num_parts},
                                       {"shares_with", shown.shares_with}};
      EXPECT_EQ(json["tensors"][i], expected);
      const std::string remark =
          absl::StrCat(kind, shown.num_parts > 1 ? absl::StrCat(", in ", shown.num_parts, " parts") : "",
                       shown.shares_with.empty() ? "" : ", is " + shown.shares_with);
      table.AddRow({shown.path, dtype, shape, absl::StrCat(shown.num_bytes), Figure(of.l2_norm),
                    Figure(of.min), Figure(of.max), absl::StrCat(of.num_nan), absl::StrCat(of.num_inf),
                    remark});
      const std::string& first = shown.shares_with.empty() ? shown.path : shown.shares_with;
      if (shown.shares_with.empty()) largest[first] = 0;
      const int64_t more = std::max<int64_t>(shown.num_bytes - largest[first], 0);
      largest[first] = std::max(largest[first], shown.num_bytes);
      bytes_of_kind[shown.kind] += more;
      num_bytes += more;
    }
    EXPECT_EQ(ToCsv(contents), csv);
    std::string kinds;
    for (const auto& [kind, bytes] : bytes_of_kind) {
      if (bytes > 0) absl::StrAppend(&kinds, std::string(Name(kind)), ": ", bytes, " bytes\n");
    }
    EXPECT_EQ(ToText(contents),
              absl::StrCat("run\\t", contents.path.substr(4), ": a format",
                           contents.written_by.empty() ? "" : ", written by Program 1", ", ",
                           contents.tensors.size(), " tensors and numbers, ", num_bytes, " bytes\n",
                           contents.tensors.empty() ? "" : table.ToString(), kinds));
  }
}

TEST(Show, ReportsStandNamesOfFoldersThatAreNotUtf8) {
  const std::string dir = testing::TempDir() + "/latest";
  std::filesystem::create_directories(dir + "/step\xff");
  std::filesystem::copy_file("core/checkpoint/testdata/weights.pt", dir + "/step\xff/weights.pt");
  std::ofstream(dir + "/latest") << "step\xff";
  EXPECT_THAT(ToJson(ShownAt(dir)), HasSubstr("of step"));
}

// Maps in maps, each with some versions; and the programs of those that are not too far down.
ValueMap RandomVersions(std::mt19937& random, int depth, std::set<std::string>* programs) {
  ValueMap map;
  for (const auto& [entry, program] : {std::pair("ds_version", "DeepSpeed "),
                                       {"pytorch-lightning_version", "Lightning "},
                                       {"transformers_version", "Transformers "},
                                       {"checkpoint_version", "Megatron, checkpoint version "},
                                       {"version", ""}}) {
    const std::string number = absl::StrCat(random() % 3, ".5");
    const uint64_t kind = random() % 8;
    if (kind > 2) continue;
    map.Insert(entry, kind == 0 ? Value(number) : kind == 1 ? Value(std::stod(number)) : Value(3));
    if (depth <= 4 && kind < 2 && *program != 0) programs->insert(program + number);
  }
  if (depth < 6) map.Insert(random() % 2 ? "args" : "module", RandomVersions(random, depth + 1, programs));
  return map;
}

TEST(Show, TheFormatAndTheProgramsThatWroteItAreNamed) {
  EXPECT_THAT(ToText(Shown("zero_3")),
              HasSubstr("DeepSpeed ZeRO of global_step2, written by DeepSpeed 0.19."));
  EXPECT_EQ(Shown("weights.npz").format, "NumPy .npz");
  std::mt19937 random(1);
  for (int trial = 0; trial < 40; ++trial) {
    std::set<std::string> programs;
    const Value tree = RandomVersions(random, 0, &programs);
    EXPECT_EQ(ShownAt(DumpForTest(tree, DumpFormat::kJson)).written_by, absl::StrJoin(programs, ", "));
  }
}

TEST(ShowCommand, PrintsEachForm) {
  const std::string path = "core/checkpoint/testdata/values.pt";
  const auto run = [](std::vector<std::string> words) {
    words.insert(words.begin(), "show");
    return RunForTest(&AddShowCommand, words);
  };
  const Contents contents = ShownAt(path);
  for (const auto& [format, text] :
       {std::pair("text", ToText(contents)), {"json", ToJson(contents)}, {"csv", ToCsv(contents)}}) {
    EXPECT_EQ(run({path, "--format", format}), std::pair(0, text));
  }
  EXPECT_EQ(run({path}), std::pair(0, ToText(contents)));
  EXPECT_EQ(run({path + "x"}).first, 2);
  EXPECT_EQ(run({path, "--format", "xml"}).first, -2);
}

}  // namespace
}  // namespace ott::show
