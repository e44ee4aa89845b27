#include "ott/core/dump/insert.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/json_writer.h"

namespace ott {
namespace {

std::string Same(const std::string& json) { return ToJson(ParseJson(json).value()).value(); }

TEST(InsertAt, PathsLeadThroughMapsAndListsToWhatIsFree) {
  struct Case {
    std::string root, path, value, result;
  };
  for (const auto& [root, path, value, result] :
       std::vector<Case>{{"{}", "a.b.c", "1", R"({"a":{"b":{"c":1}}})"},
                         {R"({"a":{"b":2}})", "a.c.d", "1", R"({"a":{"b":2,"c":{"d":1}}})"},
                         {R"({"a":{"b":2}})", "a", R"({"c":1,"d":3})", R"({"a":{"b":2,"c":1,"d":3}})"},
                         {R"({"a":{}})", "a", "1", R"({"a":1})"},
                         {R"({"a":[]})", "a", "[\"x\"]", R"({"a":["x"]})"},
                         {R"({"a":["x",{"b":2}]})", "a.1.c", "1", R"({"a":["x",{"b":2,"c":1}]})"},
                         {R"({"a":["x",{}]})", "a.1", "1", R"({"a":["x",1]})"},
                         {R"({"a":[{},"b","b","b","b","b","b","b","b","b",{}]})", "a.10.c", "1",
                          R"({"a":[{},"b","b","b","b","b","b","b","b","b",{"c":1}]})"},
                         {R"({"a":[{},"b"]})", "a.0", "1", R"({"a":[1,"b"]})"},
                         {R"({"a":1})", "", R"({"b":2})", R"({"a":1,"b":2})"},
                         {R"({"a":{"0":{}}})", "a.0.b", "1", R"({"a":{"0":{"b":1}}})"}}) {
    Value tree = ParseJson(root).value();
    EXPECT_EQ(InsertAt(path, ParseJson(value).value(), tree), absl::OkStatus()) << root << " " << path;
    EXPECT_EQ(ToJson(tree).value(), Same(result)) << root << " " << path;
  }
}

TEST(InsertAt, WhatIsTakenOrNamesNothingIsAnErrorAndChangesNothing) {
  struct Case {
    std::string root, path, value;
    absl::Status status;
  };
  const auto taken = [](const std::string& message) { return absl::AlreadyExistsError(message); };
  const auto invalid = [](const std::string& message) { return absl::InvalidArgumentError(message); };
  const std::string list = "which is a value of kind list";
  for (const auto& [root, path, value, status] : std::vector<Case>{
           {R"({"a":1})", "a", "2.5",
            taken("cannot insert a value of kind number at 'a': there is a value of kind integer already")},
           {R"({"a":{"b":[1,2]}})", "a", R"({"c":1,"b":"x"})",
            taken("cannot insert a value of kind string at 'a.b': there is a int64 tensor of shape [2] "
                  "already")},
           {R"({"a":{"b":1}})", "a", "true",
            taken("cannot insert a value of kind bool at 'a': there is a value of kind map already")},
           {R"({"a":["x"]})", "a", "{}",
            taken("cannot insert a value of kind map at 'a': there is a value of kind list already")},
           {R"({"a":1})", "", "[]", invalid("cannot insert a value of kind list without a path")},
           {"{}", "a..b", "1", invalid("the path 'a..b' has an empty part")},
           {"{}", "a.", "1", invalid("the path 'a.' has an empty part")},
           {R"({"a":{"b":1}})", "a.b.c", "1",
            invalid(
                "cannot insert at 'a.b.c': 'c' names nothing in 'a.b', which is a value of kind integer")},
           {R"({"a":["x"]})", "a.1", "1",
            invalid("cannot insert at 'a.1': '1' names nothing in 'a', " + list)},
           {R"({"a":["x",{}]})", "a.01", "1",
            invalid("cannot insert at 'a.01': '01' names nothing in 'a', " + list)},
           {R"({"a":[{}]})", "a.0x", "1",
            invalid("cannot insert at 'a.0x': '0x' names nothing in 'a', " + list)},
           {R"({"a":[{}]})", "a.x", "1",
            invalid("cannot insert at 'a.x': 'x' names nothing in 'a', " + list)},
           {R"({"a":[{}]})", "a.99999999999999999999", "1",
            invalid(
                "cannot insert at 'a.99999999999999999999': '99999999999999999999' names nothing in 'a', " +
                list)}}) {
    Value tree = ParseJson(root).value();
    EXPECT_EQ(InsertAt(path, ParseJson(value).value(), tree), status);
    EXPECT_EQ(ToJson(tree).value(), Same(root)) << path;
  }
}

}  // namespace
}  // namespace ott
