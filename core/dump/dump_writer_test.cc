// WriteDump() writes what a list says that it was given.

#include "ott/core/dump/dump_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/dump/adding_order.h"
#include "ott/core/dump/dump_for_test.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/image.h"
#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/dump/stand_in.h"

namespace ott {
namespace {

using testing::HasSubstr;

constexpr double kData[64] = {-0.25, 0.5, 1, 3, -7, 11.5};

// A tree of lists, maps and tensors, each of which is to be in a format by chance.
class RandomTree {
 public:
  explicit RandomTree(uint64_t seed) : random_(seed) {
    // Numbers of any type are finite: the highest bit of each exponent is 0.
    for (char& byte : bytes_) byte = static_cast<char>(random_() & 0xbf);
    for (char& byte : bools_) byte = static_cast<char>(random_() & 1);
    root_ = MakeMap("", 0);
  }

  const Value& root() const { return root_; }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  DumpGroup Group() const {
    return {&root_, [this](std::string_view path) { return formats_.at(std::string(path)); }};
  }
  DumpFormat FormatOf(const std::string& path) const { return formats_.at(path); }

 private:
  Value MakeMap(const std::string& path, int depth) {
    ValueMap map;
    for (int i = 0; i < 4; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      map.Insert(name, Make(JoinPath(path, name), depth));
    }
    return map;
  }

  Value Make(const std::string& path, int depth) {
    if (depth < 3 && random_() % 4 == 0) return MakeMap(path, depth + 1);
    if (depth < 3 && random_() % 4 == 0) return Value::List{Make(JoinPath(path, "0"), depth + 1), "text"};
    const std::vector<Dims> shapes = {{}, {3}, {2, 3}, {0, 3}, {2, 1, 3}, {2, 2, 1, 3}};
    const Dims& shape = shapes[random_() % 6];
    const auto dtype = static_cast<DType>(random_() % kNumDTypes);
    Dims strides(shape.size());
    int64_t stride = 1 + static_cast<int64_t>(random_() % 2);
    const bool is_turned = random_() % 2 == 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      const size_t dim = is_turned ? i : shape.size() - 1 - i;
      strides[dim] = random_() % 6 == 0 ? 0 : stride;
      stride *= shape[dim];
    }
    const TensorView view(dtype == DType::kBool ? bools_ : bytes_, dtype, shape, strides);
    formats_[path] = static_cast<DumpFormat>(random_() % 8);
    tensors_.push_back({path, Tensor{view, nullptr}});
    return view;
  }

  std::mt19937_64 random_;
  std::map<std::string, DumpFormat> formats_;
  std::vector<NamedTensor> tensors_;
  alignas(16) char bytes_[512], bools_[64];
  Value root_;
};

struct Expected {
  std::string group;
  NamedTensor tensor;
  DumpFormat format;
};

// The tensors as they are to be stored: images one by one, others in a format that can hold them, and without
// elements those that the reference has or that are beyond the limit.
std::vector<Expected> ListExpected(const RandomTree& tree, const std::string& group,
                                   const std::set<std::string>& in_reference, int64_t& bytes_left) {
  std::vector<Expected> all;
  for (const NamedTensor& tensor : tree.tensors()) {
    const TensorView& view = tensor.tensor.view;
    const bool is_complex = IsComplex(view.dtype());
    const bool is_beyond_numpy =
        view.dtype() == DType::kBFloat16 || (IsFloatingPoint(view.dtype()) && SizeOf(view.dtype()) == 1);
    DumpFormat format = tree.FormatOf(tensor.path);
    size_t dims = view.shape().size();
    if (IsImage(format)) {
      const size_t dims_of_image = format == DumpFormat::kImageI ? 2 : 3;
      if (view.num_elements() == 0) {
        format = DumpFormat::kJson;
      } else if (is_complex || dims < dims_of_image) {
        format = DumpFormat::kBinary;
      } else {
        dims = dims_of_image;
      }
    }
    if (format == DumpFormat::kNpy && is_beyond_numpy) format = DumpFormat::kBinary;
    if (format == DumpFormat::kSafetensors && is_complex) format = DumpFormat::kBinary;
    std::vector<NamedTensor> items = {tensor};
    while (items[0].tensor.view.shape().size() > dims) {
      std::vector<NamedTensor> split;
      for (const NamedTensor& item : items) {
        for (int64_t i = 0; i < item.tensor.view.shape()[0]; ++i)
          split.push_back({JoinPath(item.path, std::to_string(i)), ItemOf(item.tensor, i)});
      }
      items = std::move(split);
    }
    for (const NamedTensor& item : items) {
      const int64_t bytes = item.tensor.view.num_bytes();
      DumpFormat stored = format;
      if (in_reference.count(group + item.path) > 0 || bytes > bytes_left) stored = DumpFormat::kStatistics;
      if (stored != DumpFormat::kStatistics) bytes_left -= bytes;
      all.push_back({group, item, stored});
    }
  }
  return all;
}

TEST(WriteDump, EachTensorIsListedAndReadBackAsItWasToBeStored) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const RandomTree tensors(seed), grads(seed + 1000);
    DumpContents contents;
    contents.tensors = tensors.Group();
    if (seed % 3 != 0) contents.grads = grads.Group();
    contents.iteration = 12;
    contents.rank = 3;
    contents.world_size = 8;
    if (seed % 2 == 0) contents.max_bytes = 300;
    // The reference has every third tensor, and every third one with another digest.
    Manifest reference;
    std::set<std::string> in_reference;
    uint64_t number = 0;
    for (const RandomTree* const tree : {&tensors, &grads}) {
      const std::string group = tree == &tensors ? "tensors.json" : "grads.json";
      for (const NamedTensor& tensor : tree->tensors()) {
        if (++number % 3 == 0) in_reference.insert(group + tensor.path);
        if (number % 3 == 1) continue;
        ManifestTensor& known = reference.tensors.emplace_back();
        known.group = group;
        known.path = tensor.path;
        known.digest = ComputeDigest(tensor.tensor.view)->root;
        known.digest.low += number % 3;
      }
    }
    if (seed % 4 == 1) contents.reference = &reference;
    if (contents.reference == nullptr) in_reference.clear();
    const auto backwards = [](const RandomTree& tree) {
      std::vector<std::string> paths;
      for (const NamedTensor& tensor : tree.tensors()) paths.insert(paths.begin(), tensor.path);
      return paths;
    };
    const std::vector<std::string> order_of_tensors = backwards(tensors), order_of_grads = backwards(grads);
    if (seed % 5 == 0) contents.tensors.order = &order_of_tensors;
    if (seed % 5 == 0) contents.grads.order = &order_of_grads;

    int64_t bytes_left = contents.max_bytes;
    std::vector<Expected> expected;
    for (const RandomTree* const tree : {&tensors, &grads}) {
      if (tree == &grads && seed % 3 == 0) continue;
      std::vector<Expected> some =
          ListExpected(*tree, tree == &tensors ? "tensors.json" : "grads.json", in_reference, bytes_left);
      if (seed % 5 == 0) {
        std::stable_sort(some.begin(), some.end(), [&](const Expected& a, const Expected& b) {
          const AddingOrder order(backwards(*tree));
          return order.PlaceOf(a.tensor.path) < order.PlaceOf(b.tensor.path);
        });
      }
      expected.insert(expected.end(), some.begin(), some.end());
    }
    const std::string dir = MakeTestDir();
    ASSERT_EQ(WriteDump(dir, contents, /*sync=*/seed == 0), absl::OkStatus()) << seed;

    const Dump dump = ReadDump(dir).value();
    EXPECT_EQ(dump.manifest->iteration, 12);
    EXPECT_EQ(dump.manifest->rank, 3);
    EXPECT_EQ(dump.manifest->world_size, 8);
    EXPECT_EQ(dump.manifest->has_grads, seed % 3 != 0);
    EXPECT_EQ(dump.grads.has_value(), seed % 3 != 0);
    const auto order_of = [&](const RandomTree& tree) {
      return seed % 5 == 0 ? OrderUnlikeTrees(tree.root(), backwards(tree)) : std::vector<std::string>();
    };
    EXPECT_EQ(dump.manifest->tensor_order, order_of(tensors)) << seed;
    EXPECT_EQ(dump.manifest->grad_order, seed % 3 == 0 ? std::vector<std::string>() : order_of(grads))
        << seed;
    ASSERT_EQ(dump.manifest->tensors.size(), expected.size()) << seed;
    std::map<std::string, NamedTensor> read;
    for (const NamedTensor& tensor : ListComparable(dump.tensors))
      read.emplace("tensors.json" + tensor.path, tensor);
    for (const NamedTensor& tensor : ListComparable(dump.grads.value_or(Value())))
      read.emplace("grads.json" + tensor.path, tensor);
    std::set<std::string> files = {"manifest.json", "tensors.json"};
    if (dump.grads) files.insert("grads.json");
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto& [group, tensor, format] = expected[i];
      const ManifestTensor& listed = dump.manifest->tensors[i];
      const TensorView& view = tensor.tensor.view;
      const std::string where = absl::StrCat(seed, " ", group, " ", tensor.path);
      EXPECT_EQ(listed.group, group) << where;
      EXPECT_EQ(listed.path, tensor.path) << where;
      EXPECT_EQ(listed.dtype, view.dtype()) << where;
      EXPECT_EQ(listed.shape, view.shape()) << where;
      EXPECT_EQ(Name(listed.format), Name(format)) << where;
      EXPECT_EQ(listed.num_bytes, view.num_bytes()) << where;
      EXPECT_EQ(listed.digest, ComputeDigest(view)->root) << where;
      EXPECT_EQ(listed.file_digest.has_value(), IsImage(format)) << where;
      const std::string extension(Extension(format));
      EXPECT_EQ(listed.file,
                extension.empty() ? group : absl::StrCat("[", group, "]", tensor.path, extension))
          << where;
      files.insert(listed.file);
      if (format == DumpFormat::kBinary || IsImage(format)) files.insert(listed.file + ".meta.json");
      const NamedTensor& back = read.at(group + tensor.path);
      EXPECT_EQ(back.tensor.view.dtype(), view.dtype()) << where;
      EXPECT_EQ(back.tensor.view.shape(), view.shape()) << where;
      const bool has_elements = format != DumpFormat::kStatistics && !IsImage(format);
      EXPECT_EQ(back.content, has_elements ? NamedTensor::Content::kElements : NamedTensor::Content::kDigest)
          << where;
      EXPECT_EQ(back.digest, has_elements ? "" : listed.digest.ToString()) << where;
      if (has_elements) {
        const Tensor contiguous = CloneToHost(view).value();
        EXPECT_EQ(std::memcmp(back.tensor.view.data(), contiguous.view.data(), view.num_bytes()), 0) << where;
      }
    }
    EXPECT_EQ(NamesIn(dir), files) << seed;
  }
}

TEST(WriteDump, ValuesThatAreNoTensorsReadBackAsTheyWere) {
  const Value tree = ValueMap{{"list", Value::List{Value::List{1, 2}, Value::List{3, 4}}},
                              {"some", Value::List{1, -2.5, true, "x", Value(), Value::List{}, ValueMap{}}},
                              {"bools", Value::List{true, false}},
                              {"doubles", Value::List{0.5, 1.5, -3.0}},
                              {"tensors", Value::List{TensorView(kData, DType::kFloat64, {2}),
                                                      TensorView(kData + 2, DType::kFloat64, {2})}},
                              {"map", ValueMap{{"n", 3}, {"l", Value::List{7}}}}};
  const Value read = ReadDump(DumpForTest(tree, DumpFormat::kJson)).value().tensors;
  EXPECT_EQ(ToJson(read).value(), ToJson(tree).value());
  const auto kinds = [](const Value& value) {
    std::vector<Value::Kind> found;
    const std::function<void(const Value&)> add = [&](const Value& one) {
      found.push_back(one.kind());
      if (one.is_list()) std::for_each(one.list().begin(), one.list().end(), add);
      if (one.is_map()) {
        for (const auto& [name, child] : one.map()) add(child);
      }
    };
    add(value);
    return found;
  };
  EXPECT_EQ(kinds(read), kinds(tree));
}

TEST(WriteDump, StatisticsAreThoseOfTheTensor) {
  const float data[6] = {1, -2, 4, NAN, INFINITY, 2};
  const Value tree = ValueMap{{"some", TensorView(data, {2, 3})}, {"none", TensorView(data, {0})}};
  const Dump dump = ReadDump(DumpForTest(tree, DumpFormat::kStatistics)).value();
  for (const ManifestTensor& listed : dump.manifest->tensors) {
    const bool is_some = listed.path == "some";
    const std::string figures =
        is_some ? R"("shape":"[2, 3]","num_elements":6,"min":-2.0,"max":4.0,"mean":1.25,"l2_norm":5.0)"
                : R"("shape":"[0]","num_elements":0,"min":null,"max":null,"mean":null,"l2_norm":0.0)";
    const std::string json = ToJson(*dump.tensors.map().Find(listed.path)).value();
    EXPECT_EQ(absl::StrReplaceAll(json, {{"\n", ""}, {"  ", ""}, {": ", ":"}}),
              absl::StrCat(R"({"tensor_statistics":{"dtype":"float32",)", figures, R"(,"num_nan":)", is_some,
                           R"(,"num_inf":)", is_some, R"(,"digest":")", listed.digest.ToString(), "\"}}"));
  }
}

Value Nested(Value value, int depth) {
  for (; depth > 0; --depth) value = Value::List{std::move(value)};
  return value;
}

TEST(CheckDumpable, WhatCannotBeDumpedIsNamedWithItsPath) {
  const TensorView matrix(kData, DType::kFloat32, {2, 3});
  constexpr int kMost = kMaxJsonDepth;
  const std::string deep = absl::StrJoin(std::vector<std::string>(kMost, "a"), ".");
  const auto many = [](int64_t count) { return Value::List(static_cast<size_t>(count), Value(1)); };
  const auto empty = [](const Dims& shape) { return TensorView(nullptr, DType::kFloat32, shape); };
  struct Case {
    std::string path;
    Value value;
    std::string message;  // empty: it can be dumped
  };
  const std::string reserved = ": the name is reserved for what stands for a tensor";
  for (const auto& [path, value, message] : std::vector<Case>{
           {"a", 1, ""},
           {"", ValueMap{{"a", Value::List{1, ValueMap{{"b", "\xff"}}}}}, "'a.1.b': \"\\xff\" is not UTF-8"},
           {"x", Value::List{1, "\xff"}, "'x.1': \"\\xff\" is not UTF-8"},
           {"x", ValueMap{{"\xff", 1}}, "is not UTF-8"},
           {"x.\xff", 1, "is not UTF-8"},
           {"x", Value::List{ValueMap{{"", 1}}}, "'x.0.': a name is empty"},
           {"x..y", 1, "'x.': a name is empty"},
           {"x", ValueMap{{"tensor_image", 1}}, "'x.tensor_image'" + reserved},
           {"x", ValueMap{{"a", 1}, {"tensor_statistics", 1}}, "'x.tensor_statistics'" + reserved},
           {"x.tensor_image.y", 1, "'x.tensor_image'" + reserved},
           {"", Nested(1, kMost), ""},
           {"", Nested(1, kMost + 1), "nested deeper than 512 levels, tensors included"},
           {deep, 1, ""},
           {deep + ".a", 1, "nested deeper than 512 levels, tensors included"},
           {"", Nested(matrix, kMost - 3), ""},
           {"", Nested(matrix, kMost - 2), "nested deeper than 512 levels, tensors included"},
           {"", ValueMap{{"m", Nested(1, kMost)}}, "'m.0"},
           {"", many(kMaxJsonValues - 1), ""},
           {"p", many(kMaxJsonValues), "'p': more than the 1048576 values that a dump may have beside"},
           {"", ValueMap{{"l", many(kMaxJsonValues - 2)}}, ""},
           {"", ValueMap{{"l", many(kMaxJsonValues - 1)}}, "more than the 1048576 values"},
           {"", empty({1024, 1024, 0}), ""},
           {"", Value::List{empty({1024, 1024, 0})}, "more than the 1048576 values"},
           {"", empty({1024, 1025, 0}), "more than the 1048576 values"},
           {"", empty({1 << 20, 1 << 20, 1 << 20, 0}), "more than the 1048576 values"},
           {"", empty({0, 1 << 20, 1 << 20, 1 << 20}), ""},
           {"", TensorView(kData, DType::kInt8, {1 << 11, 1 << 11}, {0, 0}), ""}}) {
    const absl::Status status = CheckDumpable(path, value);
    EXPECT_EQ(status.ok(), message.empty()) << message << status;
    if (message.empty()) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(WriteDump, WhatCannotBeWrittenIsAnError) {
  const auto write = [](const Value& tree, const std::string& dir) {
    DumpContents contents;
    contents.tensors = {&tree};
    return WriteDump(dir, contents);
  };
  const std::string dir = MakeTestDir();
  const TensorView view(kData, DType::kFloat32, {2});
  EXPECT_EQ(write(ValueMap{{"a.b", view}, {"a", ValueMap{{"b", view}}}}, dir),
            absl::InvalidArgumentError(
                "two tensors have the path 'a.b'; names with dots in them look like names within names"));
  EXPECT_EQ(
      write(ValueMap{{"d", TensorView(kData, DType::kFloat32, {2}, Device{Device::Kind::kCuda, 0})}}, dir),
      absl::InvalidArgumentError("'d': the tensor is not in host memory"));
  EXPECT_THAT(std::string(write(ValueMap{{"t", "\xff"}}, dir).message()), HasSubstr("'t': "));
  // A dump that was begun and not ended is none.
  EXPECT_EQ(ReadDump(dir).status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::create_symlink(dir, dir + "_link");
  EXPECT_EQ(write(ValueMap{{"a", view}}, dir + "_link"),
            absl::FailedPreconditionError(
                dir + "_link: is a symbolic link; nothing is dumped through it, since it may lead anywhere"));
  EXPECT_EQ(write(ValueMap{{"a", view}}, dir + "/new/one"), absl::OkStatus());
  std::filesystem::create_directory(dir + "/[tensors.json]a.png");
  const Value image = ValueMap{{"a", TensorView(kData, {8, 8})}};
  DumpContents contents;
  contents.tensors = {&image, [](std::string_view) { return DumpFormat::kImageI; }};
  EXPECT_THAT(std::string(WriteDump(dir, contents).message()), HasSubstr("'a': " + dir));
}

}  // namespace
}  // namespace ott
