#include "ott/core/dump/manifest.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/json_writer.h"

namespace ott {
namespace {

using testing::HasSubstr;

Manifest TwoTensors() {
  const Digest digest = {1, 2}, of_file = {3, 4};
  Manifest manifest;
  manifest.complete = true;
  manifest.iteration = 7;
  manifest.rank = 3;
  manifest.world_size = 4;
  manifest.has_grads = true;
  manifest.tensors = {
      {"tensors.json", "a", DType::kFloat32, {2, 3}, DumpFormat::kImageI, "a.png", 24, digest, of_file},
      {"grads.json", "b", DType::kInt8, {}, DumpFormat::kJson, "grads.json", 1, digest}};
  manifest.tensor_order = {"c", "a"};
  manifest.grad_order = {"b", "d"};
  return manifest;
}

// The map with another value of a name, or none.
ValueMap With(const ValueMap& map, const std::string& name, const Value* value) {
  ValueMap changed;
  for (const auto& [other, old] : map) {
    if (other != name) {
      changed.Insert(other, old);
    } else if (value != nullptr) {
      changed.Insert(other, *value);
    }
  }
  return changed;
}

// Returns what is read from a manifest in which a value, at the top or in its first tensor, is another one.
absl::StatusOr<Manifest> ReadWith(bool of_tensor, const std::string& name, const Value* value) {
  Value manifest = ManifestToValue(TwoTensors());
  if (of_tensor) {
    Value& tensor = manifest.map().Find("tensors")->list()[0];
    tensor = With(tensor.map(), name, value);
  } else {
    manifest = With(manifest.map(), name, value);
  }
  return ManifestFromValue(ParseJson(ToJson(manifest).value()).value());
}

TEST(Manifest, EachEntryThatIsMissingOrOfAnotherKindIsNamed) {
  const std::set<std::string> optional = {"tensor_order", "grad_order", "file_digest"};
  const Value manifest = ManifestToValue(TwoTensors()), number = 1.5;
  for (const bool of_tensor : {false, true}) {
    const ValueMap& entries = of_tensor ? manifest.map().Find("tensors")->list()[0].map() : manifest.map();
    for (const auto& [name, value] : entries) {
      const absl::Status missing = ReadWith(of_tensor, name, nullptr).status();
      const absl::Status wrong = ReadWith(of_tensor, name, &number).status();
      EXPECT_EQ(missing.ok(), optional.count(name) > 0) << name;
      EXPECT_FALSE(wrong.ok()) << name;
      for (const absl::Status& status : {missing, wrong}) {
        if (status.ok()) continue;
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
        EXPECT_THAT(std::string(status.message()),
                    name == "shape" ? "tensor 0: the shape is missing or no list of integers"
                                    : absl::StrCat(of_tensor ? "tensor 0: " : "", "\"", name,
                                                   "\" is missing or no ", std::string(Name(value.kind()))));
      }
    }
  }
}

TEST(Manifest, EntriesThatSayWhatCannotBeAreNamed) {
  struct Case {
    bool of_tensor;
    std::string name;
    Value value;
    std::string message;
  };
  for (const auto& [of_tensor, name, value, message] : std::vector<Case>{
           {false, "format_version", 2, "format version 2, while this program knows version 1"},
           {false, "format_version", 0, "format version 0, while this program knows version 1"},
           {false, "num_tensors", 1, "\"num_tensors\" is 1, but 2 are listed"},
           {false, "num_tensors", 3, "\"num_tensors\" is 3, but 2 are listed"},
           {false, "tensor_order", Value::List{"a", 1}, "\"tensor_order\" is no list of texts"},
           {false, "grad_order", Value::List{Value()}, "\"grad_order\" is no list of texts"},
           {true, "group", "x", "tensor 0: \"group\" is 'x', not \"tensors.json\" or \"grads.json\""},
           {true, "dtype", "float", "tensor 0: "},
           {true, "format", "gif", "tensor 0: 'gif' is not the name of a dump format"},
           {true, "digest", "12", "tensor 0: "},
           {true, "bytes", 4, "tensor 0: \"bytes\" is 4, but dtype and shape make 24"},
           {true, "bytes", 40, "tensor 0: \"bytes\" is 40, but dtype and shape make 24"},
           {true, "shape", Value::List{-1}, "tensor 0: "},
           {true, "shape", Value::List{Value::List{1}}, "tensor 0: the shape is missing or no list of"},
           {true, "shape", Value::List{1.5}, "tensor 0: the shape is missing or no list of integers"}}) {
    const absl::Status status = ReadWith(of_tensor, name, &value).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace ott
