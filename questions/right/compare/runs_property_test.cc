// Random runs in random formats, each with one change of a kind: what `ott compare` and `ott crosscheck` say
// of them.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/compare/compare_runs.h"
#include "ott/questions/right/crosscheck/check_reference.h"
#include "ott/questions/right/crosscheck/check_replicas.h"

namespace ott::compare {
namespace {

namespace fs = std::filesystem;
using Random = std::mt19937_64;

constexpr int kNumRanks = 3;
constexpr int kIterations[] = {0, 10};

int Pick(Random& random, int size) { return std::uniform_int_distribution<int>(0, size - 1)(random); }

struct Leaf {
  std::string name;
  DType dtype;
  Dims shape;
  std::string bytes;
};

// The tensors that a rank dumps in an iteration.
struct State {
  std::vector<Leaf> tensors;
  double rate = 0.1;
  std::string note = "cosine";
};

// Replicas: all ranks have the same.
State MakeState(uint64_t seed) {
  Random random(seed);
  State state;
  state.tensors = {{"w.a", DType::kFloat32, {4, 3}, ""},  {"w.b", DType::kFloat64, {2, 1, 3}, ""},
                   {"w.c", DType::kBFloat16, {5}, ""},    {"w.d", DType::kComplex64, {3}, ""},
                   {"w.e", DType::kInt64, {2, 2}, ""},    {"w.f", DType::kFloat8E4M3, {7}, ""},
                   {"scalar", DType::kFloat32, {}, ""},   {"bool", DType::kBool, {4}, ""},
                   {"empty", DType::kFloat32, {0, 4}, ""}};
  for (Leaf& leaf : state.tensors) {
    leaf.bytes.resize(*CheckedNumBytes(leaf.dtype, leaf.shape));
    for (char& byte : leaf.bytes)
      byte = static_cast<char>(leaf.dtype == DType::kBool ? Pick(random, 2) : random());
    // The highest bits of numbers that are neither NaN nor infinite; some are tiny, and some of these
    // denormal.
    const int64_t size = SizeOf(leaf.dtype) / (leaf.dtype == DType::kComplex64 ? 2 : 1);
    for (size_t at = size - 1; leaf.dtype != DType::kBool && at < leaf.bytes.size(); at += size) {
      leaf.bytes[at] = static_cast<char>(leaf.bytes[at] & (Pick(random, 4) == 0 ? 0x80 : 0xbf));
    }
  }
  return state;
}

using Formats = std::map<std::string, DumpFormat>;

Formats MakeFormats(Random& random, const State& state) {
  Formats formats;
  for (const Leaf& leaf : state.tensors) {
    std::vector<DumpFormat> possible = {DumpFormat::kBinary, DumpFormat::kBinary,
                                        DumpFormat::kJson,   DumpFormat::kSafetensors,
                                        DumpFormat::kNpy,    DumpFormat::kStatistics};
    if (leaf.name == "w.a") possible.push_back(DumpFormat::kImageI);
    formats[leaf.name] = possible[Pick(random, static_cast<int>(possible.size()))];
  }
  return formats;
}

void Write(const std::string& run, int rank, int iteration, const State& state, const Formats& formats) {
  ValueMap weights;
  ValueMap tree;
  for (const Leaf& leaf : state.tensors) {
    const TensorView view(leaf.bytes.data(), leaf.dtype, leaf.shape);
    const size_t dot = leaf.name.find('.');
    dot == leaf.name.npos ? tree.Insert(leaf.name, view) : weights.Insert(leaf.name.substr(dot + 1), view);
  }
  tree.Insert("w", std::move(weights));
  tree.Insert("rate", state.rate);
  tree.Insert("note", state.note);
  const Value value = std::move(tree);
  DumpContents contents;
  contents.iteration = iteration;
  contents.rank = rank;
  contents.world_size = kNumRanks;
  contents.tensors = {&value, [&](std::string_view path) {
                        const auto found = formats.find(std::string(path));
                        return found == formats.end() ? DumpFormat::kBinary : found->second;
                      }};
  fs::create_directories(DumpsDirectory(run, rank));
  ASSERT_TRUE(WriteDump(DumpPath(run, rank, iteration), contents).ok());
}

void WriteRun(const std::string& run, uint64_t seed, const Formats& formats) {
  fs::create_directories(run);
  RunInfo info;
  info.set_world_size(kNumRanks);
  ASSERT_TRUE(WriteRunInfo(run, info).ok());
  for (int rank = 0; rank < kNumRanks; ++rank) {
    for (const int iteration : kIterations) Write(run, rank, iteration, MakeState(seed + iteration), formats);
  }
}

enum class Change {
  kNone,
  kStartedAgain,
  kLowestBit,
  kNumber,
  kText,
  kName,
  kOtherPlace,
  kDumpMissing,
  kRankMissing,
  kFileCut,
  kDumpNotComplete,
  kTreeLost,
  kLinkToReference,
  kLinkToOtherRank,
  kNumChanges,
};

// The expected verdicts: of the current run, and of its replicas in the iteration concerned.
struct Expected {
  Verdict of_runs;
  Outcome of_replicas;
  // Images may differ, or not, where one bit does.
  bool or_different = false;
};

class ChangedRun {
 public:
  ChangedRun(const std::string& dir, uint64_t seed)
      : random_(seed), reference_(dir + "/reference"), current_(dir + "/current"), seed_(seed) {
    fs::remove_all(dir);
    formats_ = MakeFormats(random_, MakeState(seed));
    other_formats_ = MakeFormats(random_, MakeState(seed));
    WriteRun(reference_, seed, formats_);
    WriteRun(current_, seed, other_formats_);
    rank_ = Pick(random_, kNumRanks);
    iteration_ = kIterations[Pick(random_, 2)];
  }

  Expected Apply(Change change) {
    constexpr Expected kCannotTell = {Verdict::kCouldNotCompare, NOT_COMPARED};
    constexpr Expected kDiffers = {Verdict::kDifferent, DIFFERENT};
    const std::string dump = DumpPath(current_, rank_, iteration_);
    State state = MakeState(seed_ + iteration_);
    switch (change) {
      case Change::kNone:
      case Change::kNumChanges:
        return {Verdict::kEqual, BITWISE_EQUAL};
      case Change::kStartedAgain:
        // The first start was another one.
        fs::rename(current_, current_ + "_latest");
        WriteRun(current_, seed_ + 1000, other_formats_);
        fs::rename(current_ + "_latest", current_ + "/attempt_2");
        return {Verdict::kEqual, BITWISE_EQUAL};
      case Change::kLowestBit: {
        Leaf& leaf = state.tensors[Pick(random_, 8)];
        const auto element = Pick(random_, static_cast<int>(leaf.bytes.size() / SizeOf(leaf.dtype)));
        leaf.bytes[element * SizeOf(leaf.dtype)] ^= 1;
        Rewrite(state);
        const auto is_any = [&](DumpFormat format) {
          return formats_.at(leaf.name) == format || other_formats_.at(leaf.name) == format;
        };
        const bool is_image = is_any(DumpFormat::kImageI);
        const bool is_told = !is_image && !is_any(DumpFormat::kStatistics);
        return {is_told ? Verdict::kDifferent : Verdict::kCouldNotCompare, DIFFERENT, is_image};
      }
      case Change::kNumber:
        state.rate = 0.2;
        Rewrite(state);
        return kDiffers;
      case Change::kText:
        state.note = "cosinE";
        Rewrite(state);
        return kDiffers;
      case Change::kName:
        state.tensors[Pick(random_, 9)].name = "renamed";
        Rewrite(state);
        return kDiffers;
      case Change::kOtherPlace:
        // An element's place counts, too: the bytes of a row are in another order.
        std::rotate(state.tensors[0].bytes.begin(), state.tensors[0].bytes.begin() + 4,
                    state.tensors[0].bytes.end());
        other_formats_["w.a"] = DumpFormat::kBinary;
        WriteRun(reference_, seed_, other_formats_);
        WriteRun(current_, seed_, other_formats_);
        Rewrite(state);
        return kDiffers;
      case Change::kDumpMissing:
        fs::remove_all(dump);
        return kCannotTell;
      case Change::kRankMissing:
        fs::remove_all(RankDirectory(current_, rank_));
        return kCannotTell;
      case Change::kFileCut:
        Cut(dump);
        return kCannotTell;
      case Change::kDumpNotComplete:
        Replace(dump + "/manifest.json", "\"complete\": true", "\"complete\": false");
        return kCannotTell;
      case Change::kTreeLost:
        fs::remove(dump + "/tensors.json");
        return kCannotTell;
      case Change::kLinkToReference:
        fs::remove_all(dump);
        fs::create_directory_symlink(DumpPath(reference_, rank_, iteration_), dump);
        return {Verdict::kCouldNotCompare, BITWISE_EQUAL};
      case Change::kLinkToOtherRank: {
        fs::remove_all(dump);
        fs::create_directory_symlink(DumpPath(current_, (rank_ + 1) % kNumRanks, iteration_), dump);
        return {Verdict::kEqual, NOT_COMPARED};
      }
    }
    return kCannotTell;
  }

  const std::string& reference() const { return reference_; }
  const std::string& current() const { return current_; }
  int rank() const { return rank_; }
  int iteration() const { return iteration_; }

 private:
  void Rewrite(const State& state) {
    fs::remove_all(DumpPath(current_, rank_, iteration_));
    Write(current_, rank_, iteration_, state, other_formats_);
  }

  // Any file that is needed to read the dump, to half its length.
  void Cut(const std::string& dump) {
    std::vector<std::string> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(dump)) {
      const std::string path = entry.path().string();
      const bool is_needed = path.find(".meta.json") == path.npos || path.find(".png") != path.npos;
      if (is_needed && entry.file_size() > 0) files.push_back(path);
    }
    std::sort(files.begin(), files.end());
    const std::string& path = files[Pick(random_, static_cast<int>(files.size()))];
    fs::resize_file(path, fs::file_size(path) / 2);
  }

  static void Replace(const std::string& path, const std::string& from, const std::string& to) {
    std::string text = ReadFile(path).value();
    const size_t at = text.find(from);
    ASSERT_NE(at, text.npos);
    ASSERT_TRUE(WriteFileAtomically(path, text.replace(at, from.size(), to)).ok());
  }

  Random random_;
  const std::string reference_;
  const std::string current_;
  const uint64_t seed_;
  Formats formats_;
  Formats other_formats_;
  int rank_ = 0;
  int iteration_ = 0;
};

Verdict VerdictOf(const absl::StatusOr<std::vector<CrossCheckVerdict>>& verdicts) {
  if (!verdicts.ok()) return Verdict::kCouldNotCompare;
  Verdict verdict = Verdict::kEqual;
  for (const CrossCheckVerdict& one : *verdicts) {
    if (one.outcome() == DIFFERENT) return Verdict::kDifferent;
    if (one.outcome() != BITWISE_EQUAL) verdict = Verdict::kCouldNotCompare;
  }
  return verdict;
}

TEST(RandomRuns, OneChangeIsWhatComparisonsSay) {
  const std::string dir = testing::TempDir() + "random_runs";
  CrossCheckConfig config;
  config.add_replicated("*");
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    for (int i = 0; i < static_cast<int>(Change::kNumChanges); ++i) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", change ", i));
      ChangedRun run(dir, 100 * seed);
      const Expected expected = run.Apply(static_cast<Change>(i));
      const auto compared = CompareRuns(run.reference(), run.current(), {}).value();
      config.set_reference_run(run.reference());
      for (const Verdict verdict :
           {compared.verdict(), VerdictOf(crosscheck::CheckRunAgainstReference(run.current(), config))}) {
        if (expected.or_different && verdict == Verdict::kDifferent) continue;
        EXPECT_EQ(verdict, expected.of_runs);
      }

      const auto replicas = crosscheck::CheckReplicasOfRun(run.current(), config).value();
      ASSERT_EQ(replicas.size(), 2u);
      for (const CrossCheckVerdict& verdict : replicas) {
        const bool is_concerned =
            verdict.iteration() == run.iteration() || static_cast<Change>(i) == Change::kRankMissing;
        EXPECT_EQ(verdict.outcome(), is_concerned ? expected.of_replicas : BITWISE_EQUAL);
        for (const int culprit : verdict.culprit_ranks()) EXPECT_EQ(culprit, run.rank());
        EXPECT_EQ(verdict.culprit_ranks_size(), verdict.outcome() == DIFFERENT ? 1 : 0);
      }
    }
  }
}

}  // namespace
}  // namespace ott::compare
