// Dumps of any formats, with and without manifests and gradients, against what is said of each pair of
// tensors.

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/compare/compare.h"
#include "ott/core/compare/report.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/dump/insert.h"

namespace ott {
namespace {

// Tells what a dump holds whose tensors each have a format by chance.
struct RandomDump {
  struct Dumped {
    size_t numbers;
    bool is_wide, has_dtype;  // when it is read
    DumpFormat format;
    std::optional<size_t> digest;
  };
  bool has_manifest, has_gradients;
  // Tensors are 0, and gradients 1.
  std::vector<std::string> order[2];
  std::map<std::string, Dumped> tensors[2];
};

RandomDump WriteRandomDump(const std::string& dir, bool is_empty, bool is_alike, std::mt19937_64& random) {
  // The second makes the image of the first, and the third the same pixels.
  static constexpr float kNarrow[3][4] = {{0, 1, 2, 1000}, {0, 1, 2.5, 1000}, {0, 2, 4, 2000}};
  static constexpr double kWide[3][4] = {{0, 1, 2, 1000}, {0, 1, 2.5, 1000}, {0, 2, 4, 2000}};
  const std::vector<std::string> paths = {"w", "grads.w", "tensors"};
  RandomDump dump;
  dump.has_manifest = random() % 3 != 0;
  dump.has_gradients = random() % 3 != 0;
  DumpContents contents;
  Value trees[2] = {ValueMap(), ValueMap()};
  std::vector<std::string> orders[2];
  for (const int group : {0, 1}) {
    if (group == 0 && is_empty) continue;
    for (const std::string& path : paths) {
      auto& [numbers, is_wide, has_dtype, format, digest] = dump.tensors[group][path];
      numbers = is_alike ? 0 : random() % 3;
      is_wide = !is_alike && random() % 3 == 0;
      format = std::vector<DumpFormat>{
          DumpFormat::kJson,        DumpFormat::kBinary,     DumpFormat::kNpy,
          DumpFormat::kSafetensors, DumpFormat::kStatistics, DumpFormat::kImageI}[random() % 6];
      const TensorView view =
          is_wide ? TensorView(kWide[numbers], {2, 2}) : TensorView(kNarrow[numbers], {2, 2});
      EXPECT_TRUE(InsertAt(path, view, trees[group]).ok());
      // JSON tells no dtypes.
      has_dtype = format != DumpFormat::kJson || dump.has_manifest;
      is_wide = is_wide || !has_dtype;
      if (format != DumpFormat::kImageI || dump.has_manifest) digest = 2 * numbers + (is_wide ? 1 : 0);
    }
    orders[group] = dump.order[group] = paths;
    if (random() % 2 == 0) continue;
    std::shuffle(orders[group].begin(), orders[group].end(), random);
    (group == 0 ? contents.tensors : contents.grads).order = &orders[group];
    if (dump.has_manifest) dump.order[group] = orders[group];
  }
  const auto format_in = [&](int group) {
    return [&dump, group](std::string_view path) { return dump.tensors[group].at(std::string(path)).format; };
  };
  contents.tensors.tree = &trees[0];
  contents.tensors.format = format_in(0);
  if (dump.has_gradients) contents.grads.tree = &trees[1];
  contents.grads.format = format_in(1);
  std::filesystem::remove_all(dir);
  EXPECT_TRUE(WriteDump(dir, contents).ok());
  if (!dump.has_manifest) std::filesystem::remove(dir + "/manifest.json");
  return dump;
}

TEST(CompareDumps, SaysOfAnyDumpsWhatTheDefinitionSays) {
  std::mt19937_64 random(7);
  const std::string dir = testing::TempDir() + "/any_dumps";
  std::map<Verdict, int> verdicts;
  for (int trial = 0; trial < 150; ++trial) {
    const bool is_empty = random() % 6 == 0, is_alike = random() % 2 == 0;
    const RandomDump a = WriteRandomDump(dir + "/a", is_empty, is_alike, random),
                     b = WriteRandomDump(dir + "/b", is_empty, is_alike, random);
    CompareOptions options;
    options.allow_missing = random() % 2 == 0;
    options.allow_extra = random() % 2 == 0;
    std::vector<std::tuple<std::string, CompareStatus, std::string>> expected, found;
    bool left_out = false;
    for (const int group : {0, 1}) {
      if (group == 1 && a.has_gradients != b.has_gradients) {
        left_out = a.has_gradients ? options.allow_missing : options.allow_extra;
        if (!left_out) {
          expected.emplace_back(
              "grads", a.has_gradients ? CompareStatus::kMissing : CompareStatus::kExtra,
              absl::StrCat("the ", a.has_gradients ? "current" : "reference", " dump has none"));
        }
      }
      if (group == 1 && !(a.has_gradients && b.has_gradients)) continue;
      for (const std::string& path : a.order[group]) {
        // A tensor that is called like a gradient has a longer name if there are gradients.
        const bool is_longer = group == 0 && path == "grads.w" && (a.has_gradients || b.has_gradients);
        const std::string name = absl::StrCat(group == 1 ? "grads." : is_longer ? "tensors." : "", path);
        const RandomDump::Dumped &one = a.tensors[group].at(path), &other = b.tensors[group].at(path);
        const auto is_any = [&](DumpFormat format) { return one.format == format || other.format == format; };
        const bool is_statistics = is_any(DumpFormat::kStatistics);
        if (!is_statistics && !is_any(DumpFormat::kImageI)) {
          const bool is_same_dtype = one.is_wide == other.is_wide;
          const bool differs = !is_same_dtype && one.has_dtype && other.has_dtype;
          expected.emplace_back(name,
                                differs                        ? CompareStatus::kDTypeDiffers
                                : one.numbers != other.numbers ? CompareStatus::kMismatch
                                : is_same_dtype                ? CompareStatus::kBitwiseEqual
                                                               : CompareStatus::kEqual,
                                !differs      ? ""
                                : one.is_wide ? "reference float64, current float32"
                                              : "reference float32, current float64");
        } else if (one.digest && one.digest == other.digest) {
          expected.emplace_back(name, CompareStatus::kBitwiseEqual, "");
        } else {
          expected.emplace_back(
              name, CompareStatus::kCouldNotCompare,
              absl::StrCat(one.digest && other.digest ? "the digests differ" : "there is no digest",
                           ", and only ", is_statistics ? "statistics" : "images", " were dumped"));
          if (is_statistics) continue;
          const bool is_same_range = (one.numbers == 2) == (other.numbers == 2);
          expected.emplace_back(name + ".tensor_image.pixels", CompareStatus::kEqual, "");
          expected.emplace_back(name + ".tensor_image.original_range",
                                is_same_range ? CompareStatus::kEqual : CompareStatus::kMismatch, "");
        }
      }
    }
    if (expected.empty() && left_out)
      expected.emplace_back("", CompareStatus::kEmpty, "there is nothing to compare");
    const TreeComparison comparison = CompareDumps(dir + "/a", dir + "/b", options);
    for (const auto& [path, result] : comparison.results) {
      found.emplace_back(path, result.status, result.detail);
      if (result.status != CompareStatus::kBitwiseEqual) continue;
      EXPECT_EQ(result.num_elements, 4) << path;
      EXPECT_NEAR(result.cosine_similarity, 1, 1e-12) << path;
    }
    ASSERT_EQ(found, expected) << trial;
    EXPECT_EQ(comparison.agree_without_elements, expected.empty()) << trial;
    Verdict verdict = Verdict::kEqual;
    for (const auto& [path, status, detail] : expected) {
      if (Passes(status) || verdict == Verdict::kDifferent) continue;
      const bool is_unknown = status == CompareStatus::kCouldNotCompare || status == CompareStatus::kEmpty;
      verdict = is_unknown ? Verdict::kCouldNotCompare : Verdict::kDifferent;
    }
    ASSERT_EQ(comparison.verdict(), verdict) << trial;
    const Dump current = ReadDump(dir + "/b").value();
    const Value* const gradients = b.has_gradients ? &*current.grads : nullptr;
    EXPECT_EQ(ToJson(CompareToDump(dir + "/a", current.tensors, gradients, options)), ToJson(comparison));
    ++verdicts[verdict];
  }
  for (const Verdict verdict : {Verdict::kEqual, Verdict::kDifferent, Verdict::kCouldNotCompare})
    EXPECT_GT(verdicts[verdict], 10) << Name(verdict);
}

}  // namespace
}  // namespace ott
