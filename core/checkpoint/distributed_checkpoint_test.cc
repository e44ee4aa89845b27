// Writes distributed checkpoints as PyTorch and Megatron-core do, and reads them.

#include "ott/core/checkpoint/distributed_checkpoint.h"

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/checkpoint/checkpoint_for_test.h"
#include "core/checkpoint/torch_file_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_for_test.h"

namespace ott {
namespace {

std::string IntegerInPickle(int64_t number) { return "J" + InBytes(static_cast<uint64_t>(number), 4); }

std::string DimsInPickle(const Dims& dims) {
  std::string items;
  for (const int64_t dim : dims) items += IntegerInPickle(dim);
  return Call("torch:Size", "(" + items + "t");
}

std::string ObjectInPickle(const std::string& attributes) { return "cm\nC\n)\x81}(" + attributes + "ub"; }

// A checkpoint while it is written. All but the files are the entries of maps in its metadata.
struct Distributed {
  std::string entries, places, paths, whole_shapes;
  std::string files[2];

  // `offset`: of a chunk of a tensor, or nothing.
  void AddBytes(const std::string& name, const std::string& offset, int file, const std::string& bytes) {
    places +=
        ObjectInPickle(TextInPickle("fqn") + TextInPickle(name) + offset) +
        ObjectInPickle(TextInPickle("relative_path") + TextInPickle(absl::StrCat("__", file, "_0.distcp")) +
                       TextInPickle("offset") + IntegerInPickle(static_cast<int64_t>(files[file].size())) +
                       TextInPickle("length") + IntegerInPickle(static_cast<int64_t>(bytes.size())));
    files[file] += bytes;
  }

  // Returns the chunk as the metadata has it.
  std::string AddChunk(const std::string& name, const Dims& offset, const Dims& shape, int file,
                       const std::vector<float>& elements, Dims strides = {}) {
    if (strides.empty()) strides = TensorView(elements.data(), shape).strides();
    const std::string pickle =
        Call("torch._utils:_rebuild_tensor_v2",
             StorageInPickle("FloatStorage", static_cast<char>(elements.size())) + IntegerInPickle(0) +
                 DimsInPickle(shape) + DimsInPickle(strides) + "\x89}");
    const std::string data(reinterpret_cast<const char*>(elements.data()), 4 * elements.size());
    AddBytes(name, TextInPickle("offset") + DimsInPickle(offset), file,
             Zip({{"a/data.pkl", "\x80\x02" + pickle + "."}, {"a/data/K", data}}));
    return ObjectInPickle(TextInPickle("offsets") + DimsInPickle(offset) + TextInPickle("sizes") +
                          DimsInPickle(shape));
  }

  void AddTensor(const std::string& name, const Dims& shape, const std::string& chunks) {
    // Without chunks, the properties tell the dtype.
    const std::string properties = TextInPickle("properties") + "cm\nP\n)\x81(ctorch\nfloat32\ntb";
    entries += TextInPickle(name) +
               ObjectInPickle(TextInPickle("size") + DimsInPickle(shape) + TextInPickle("chunks") + "](" +
                              chunks + "e" + (chunks.empty() ? properties : ""));
  }

  std::string Metadata() const {
    const auto map = [](const std::string& of) { return "}(" + of + "u"; };
    return "\x80\x02" +
           ObjectInPickle(TextInPickle("state_dict_metadata") + map(entries) + TextInPickle("storage_data") +
                          map(places) + TextInPickle("planner_data") + map(paths) +
                          TextInPickle("mcore_data") + map(whole_shapes)) +
           ".";
  }

  absl::StatusOr<Value> Read(const std::string& metadata) const {
    const std::string dir = MakeTestDir();
    EXPECT_TRUE(WriteFileAtomically(dir + "/.metadata", metadata).ok());
    for (const int file : {0, 1})
      EXPECT_TRUE(WriteFileAtomically(absl::StrCat(dir, "/__", file, "_0.distcp"), files[file]).ok());
    return ReadDistributedCheckpoint(dir);
  }
};

// Returns the error behind the metadata's path.
std::string ErrorOf(const Distributed& written) {
  const std::string message(written.Read(written.Metadata()).status().message());
  return message.substr(message.find("/.metadata: ") + 12);
}

// Each rank of a grid holds a box of a tensor, or ranges of the elements of its box, as Megatron-core before
// 0.14 wrote them. The elements count from 0.
TEST(DistributedCheckpoint, OfAnyPartsTheTensorIsWholeAndAtItsPath) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](int64_t end) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(end));
    };
    Distributed written;
    std::map<std::string, std::string> expected;
    for (const int tensor : {1, 0, 2}) {
      const std::string name = absl::StrCat("t", tensor);
      const bool is_flat = below(2) == 0;
      Dims whole, grid, local;
      int64_t num_ranks = 1, num_local = 1, num_all = 1;
      for (int64_t dim = 1 + below(3); dim > 0; --dim) {
        num_ranks *= grid.emplace_back(1 + below(3));
        num_local *= local.emplace_back(1 + below(3));
        num_all *= whole.emplace_back(grid.back() * local.back());
      }
      std::string chunks;
      for (int64_t rank = 0; rank < num_ranks; ++rank) {
        const Dims at = IndexAt(grid, rank);
        for (int64_t begin = 0, end = 0; begin < num_local; begin = end) {
          end = is_flat ? begin + 1 + below(num_local - begin) : num_local;
          std::vector<float> elements;
          for (int64_t i = begin; i < end; ++i) {
            const Dims within = IndexAt(local, i);
            int64_t number = 0;
            for (size_t dim = 0; dim < whole.size(); ++dim)
              number = number * whole[dim] + at[dim] * local[dim] + within[dim];
            elements.push_back(static_cast<float>(number));
          }
          Dims offset = at, shape(at.size(), 1);
          for (size_t dim = 0; dim < whole.size() && !is_flat; ++dim) offset[dim] *= local[dim];
          if (is_flat) offset.push_back(begin), shape.push_back(end - begin);
          chunks +=
              written.AddChunk(name, offset, is_flat ? shape : local, static_cast<int>(below(2)), elements);
        }
      }
      Dims flat = grid;
      flat.push_back(num_local);
      written.AddTensor(name, is_flat ? flat : whole, chunks);
      if (is_flat) {
        written.whole_shapes += TextInPickle(name) + "}" + TextInPickle("nd_reformulated_orig_global_shape") +
                                DimsInPickle(whole) + "s";
      }
      std::string path = name;
      if (below(2) == 0) {
        path = absl::StrCat("model.list.", tensor);
        written.paths += TextInPickle(name) + "(" + TextInPickle("model") + TextInPickle("list") +
                         IntegerInPickle(tensor) + "t";
      }
      std::string& text = expected[path] = absl::StrCat("float32", ShapeToString(whole), ":");
      for (int64_t i = 0; i < num_all; ++i) absl::StrAppend(&text, " ", i);
    }
    written.AddTensor("nothing", {0, 2}, "");
    expected["nothing"] = "float32[0, 2]:";
    written.entries += TextInPickle("epoch") + "N";
    written.AddBytes("epoch", "", 1, Zip({{"a/data.pkl", "\x80\x02K\5."}}));
    const absl::StatusOr<Value> tree = written.Read(written.Metadata());
    ASSERT_TRUE(tree.ok()) << tree.status();
    EXPECT_EQ(At(*tree, "epoch").int_value(), 5);
    std::map<std::string, std::string> found = AllElements(*tree);
    found.erase("epoch");
    EXPECT_EQ(found, expected);
  }
}

// A bucket's parameters begin at multiples of 64 elements, or have as many. Behind them lies padding, which
// Megatron took from memory that it did not set.
TEST(DistributedCheckpoint, PaddingOfMegatronsBucketsIsZero) {
  const std::string bucket = "optimizer.distributed.x.bucket_idx_0.param", other = "x.bucket_idx_0.param";
  for (const auto& [name, rank_of_padding] :
       {std::pair(bucket, 0), {bucket, 1}, {other, 1}, {"optimizer.distributed.x.param", 1}}) {
    Distributed written;
    std::string chunks;
    for (const auto& [offset, size, rank] :
         {std::tuple(72, 56, rank_of_padding), {0, 64, 0}, {64, 8, 0}, {128, 8, 1}, {136, 64, 1}})
      chunks += written.AddChunk(name, {offset}, {size}, rank, std::vector<float>(size, 1));
    written.AddTensor(name, {200}, chunks);
    if (name == bucket && rank_of_padding == 1) {
      EXPECT_THAT(
          ErrorOf(written),
          testing::HasSubstr("whether its 56 elements at 72 are a parameter's or padding cannot be told"));
      continue;
    }
    std::string expected = "float32[200]:";
    for (int i = 0; i < 200; ++i) expected += name == bucket && i >= 72 && i < 128 ? " 0" : " 1";
    EXPECT_EQ(AllElements(written.Read(written.Metadata()).value()).at(name), expected);
  }
  Distributed table;
  table.AddTensor(bucket, {1, 2}, table.AddChunk(bucket, {0, 0}, {1, 2}, 0, {1, 2}));
  EXPECT_EQ(AllElements(table.Read(table.Metadata()).value()).at(bucket), "float32[1, 2]: 1 2");
  for (const auto& [offset, message] :
       {std::pair(Dims{8}, "its 1 elements at 8 are a parameter's or padding"),
        {Dims{0, 0}, "a chunk of a bucket that is no range"}}) {
    Distributed written;
    written.AddTensor(bucket, {16}, written.AddChunk(bucket, offset, Dims(offset.size(), 1), 0, {1}));
    EXPECT_THAT(ErrorOf(written), testing::HasSubstr(message));
  }
}

TEST(DistributedCheckpoint, WhatIsWrongInTheMetadataIsNamed) {
  Distributed written;
  const auto text = TextInPickle;
  // Two ranks have a row each, in two parts.
  std::string chunks;
  for (const int64_t rank : {0, 1})
    for (const int64_t i : {0, 2}) chunks += written.AddChunk("w", {rank, 0, i}, {1, 1, 2}, 0, {1, 2});
  written.AddTensor("w", {2, 1, 4}, chunks);
  written.whole_shapes =
      text("w") + "}" + text("nd_reformulated_orig_global_shape") + DimsInPickle({2, 4}) + "s";
  const std::string good = written.Metadata(), ranges = "a part that is no range of a rank's elements",
                    not_of_shape = "a tensor of parts that are not those of its shape";
  ASSERT_TRUE(written.Read(good).ok());
  const auto offset = [](int64_t rank, int64_t place, int64_t i) { return DimsInPickle({rank, place, i}); };
  const auto shape = [](const Dims& of) { return "shape" + DimsInPickle(of); };
  const auto num_bytes = [](int64_t of) { return TextInPickle("length") + IntegerInPickle(of); };
  const auto size = static_cast<int64_t>(written.files[0].size());
  const std::tuple<std::string, std::string, std::string> rows[] = {
      {text("state_dict_metadata"), text("s"), "no map of what was saved"},
      {text("storage_data"), text("s"), "no map of where it lies"},
      {"}(" + text("w") + "cm", "}(K\1cm", "a name that is no text"},
      {text("fqn"), text("f"), "a place that is none"},
      {text("length"), text("l"), "a place that is none"},
      {text("relative_path"), text("r"), "a place that is none"},
      {text("__0_0.distcp"), text(".."), "the file of 'w', '..', leads out of the folder"},
      {text("__0_0.distcp"), text("a/b"), "the file of 'w', 'a/b', leads out of the folder"},
      {text("size"), text("s"), "a tensor without a shape"},
      {text("size") + offset(2, 1, 4), text("size") + "cm\nS\n]q\xf0Rq\xf1" + "0h\xf0h\xf1" + "a0h\xf1",
       "a tensor without a shape"},  // of a size
      {text("chunks") + "](", text("chunks") + "N" + text("c") + "](", "a tensor without a shape"},
      {text("offsets"), text("o"), "a chunk without a place"},
      {text("sizes"), text("s"), "a chunk without a place"},
      {text("sizes") + offset(1, 1, 2), text("sizes") + offset(1, 2, 1),
       "its chunk at [0, 0, 0] is no tensor of [1, 2, 1], as the metadata says"},
      {text("offset") + offset(1, 0, 2), text("offset") + offset(1, 0, 3),
       "the metadata does not say where its chunk at [1, 0, 2] lies"},
      {text("size") + offset(2, 1, 4), text("size") + offset(0, 1, 4), not_of_shape},
      {shape({2, 4}), shape({3, 4}), not_of_shape},
      {shape({2, 4}), shape({4, 4}), not_of_shape},
      {shape({2, 4}), shape({}), not_of_shape},
      {shape({2, 4}), shape({8}), not_of_shape},
      {shape({2, 4}), shape({2, int64_t{1} << 30}), not_of_shape},
      {offset(1, 0, 2), DimsInPickle({1, 0}), ranges},
      {offset(1, 0, 2), offset(2, 0, 2), ranges},
      {offset(1, 0, 2), offset(1, 0, 3), ranges},
      {offset(0, 0, 0), offset(1, 0, 2), "overlap"},
      {num_bytes(size / 4), num_bytes(size / 4 - 1), "'w': __0_0.distcp, behind byte 0: a ZIP archive cut"},
      {num_bytes(size / 4), num_bytes(-1),
       absl::StrCat("__0_0.distcp has ", size, " bytes, but the metadata says -1 behind byte 0")},
      {text("offset") + IntegerInPickle(size / 4 * 3), text("offset") + IntegerInPickle(size / 4 * 3 + 1),
       absl::StrCat("the metadata says ", size / 4, " behind byte ", size / 4 * 3 + 1)},
      {text("offset") + IntegerInPickle(0), text("offset") + IntegerInPickle(-1), " behind byte -1"},
      {text("__0_0.distcp"), text("__2_0.distcp"), "__2_0.distcp: "}};
  for (const auto& [from, to, message] : rows) {
    const std::string metadata = absl::StrReplaceAll(good, {{from, to}});
    EXPECT_NE(metadata, good) << message;
    EXPECT_THAT(std::string(written.Read(metadata).status().message()), testing::HasSubstr(message));
  }
  for (const auto& [other_shape, strides] :
       {std::pair(Dims{2, 1, 1}, Dims()), {Dims{1, 1, 2}, Dims{2, 2, 2}}}) {
    Distributed other;
    other.AddTensor("w", {2, 1, 4}, other.AddChunk("w", {0, 0, 0}, other_shape, 0, {1, 2, 3}, strides));
    other.whole_shapes = written.whole_shapes;
    EXPECT_EQ(ErrorOf(other), "'w': the metadata has " + ranges);
  }
  EXPECT_THAT(std::string(written.Read("text").status().message()), testing::HasSubstr("/.metadata: "));
  for (const auto& [pickle, message] :
       {std::pair("\x80\x02K\5.", "'e': its chunk at [0] is no tensor of [1], as the metadata says"),
        {"\x80\x02K", "'e': __0_0.distcp, behind byte 0: data.pkl: "},
        {"", "'e': __0_0.distcp, behind byte 0: the metadata has something else than torch.save's"}}) {
    Distributed other;
    const std::string chunk = other.AddChunk("e", {0}, {1}, 0, {1});
    other.places = other.files[0] = "";
    other.AddBytes("e", text("offset") + DimsInPickle({0}), 0,
                   Zip({{*pickle == 0 ? "a/x" : "a/data.pkl", pickle}}));
    other.AddTensor("e", {1}, chunk);
    EXPECT_THAT(ErrorOf(other), testing::StartsWith(message));
  }
  const std::string x = text("x"), y = text("y"), far = IntegerInPickle(1'048'560);
  const std::string no_fit = "the metadata has a path of 'b' that does not fit the others";
  // Lists of one item each, a million items in, are among them.
  for (const auto& [path, other_path, message] :
       {std::tuple(x, x, std::string("the metadata has two values at the path of 'b'")),
        {x + far, y + far, no_fit},
        {x + y, x + IntegerInPickle(0), no_fit},
        {x + IntegerInPickle(0), x + y, no_fit},
        {y, x + IntegerInPickle(-1), no_fit}}) {
    Distributed at_paths;
    for (const char* const name : {"a", "b"}) {
      at_paths.AddTensor(name, {0}, "");
      at_paths.paths += text(name) + "(" + (*name == 'a' ? path : other_path) + "t";
    }
    EXPECT_EQ(ErrorOf(at_paths), message);
  }
  for (const char* const properties :
       {"N", "cm\nP\n)\x81", "cm\nP\n)\x81}(ctorch\nfloat32\nK\1ub", "cm\nP\n)\x81)b"}) {
    Distributed none;
    none.AddTensor("e", {0}, "");
    none.entries.replace(none.entries.find("cm\nP"), std::string::npos, std::string(properties) + "ub");
    EXPECT_EQ(ErrorOf(none), "'e': the metadata has a tensor without a dtype");
  }
}

}  // namespace
}  // namespace ott
