#include "ott/core/dump/insert.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
  const auto taken = [](const char* kind, const char* path, const char* there) {
    return absl::AlreadyExistsError(absl::StrCat("cannot insert a value of kind ", kind, " at '", path,
                                                 "': there is a ", there, " already"));
  };
  const auto invalid = [](const std::string& message) { return absl::InvalidArgumentError(message); };
  const auto names_nothing = [&](const std::string& path, const std::string& outer, const char* kind) {
    const std::string name = path.substr(outer.size() + 1);
    return invalid(absl::StrCat("cannot insert at '", path, "': '", name, "' names nothing in '", outer,
                                "', which is a value of kind ", kind));
  };
  for (const auto& [root, path, value, status] : std::vector<Case>{
           {R"({"a":1})", "a", "2.5", taken("number", "a", "value of kind integer")},
           {R"({"a":{"b":[1,2]}})", "a", R"({"c":1,"b":"x"})",
            taken("string", "a.b", "int64 tensor of shape [2]")},
           {R"({"a":{"b":1}})", "a", "true", taken("bool", "a", "value of kind map")},
           {R"({"a":["x"]})", "a", "{}", taken("map", "a", "value of kind list")},
           {R"({"a":1})", "", "[]", invalid("cannot insert a value of kind list without a path")},
           {"{}", "a..b", "1", invalid("the path 'a..b' has an empty part")},
           {"{}", "a.", "1", invalid("the path 'a.' has an empty part")},
           {R"({"a":{"b":1}})", "a.b.c", "1", names_nothing("a.b.c", "a.b", "integer")},
           {R"({"a":["x"]})", "a.1", "1", names_nothing("a.1", "a", "list")},
           {R"({"a":["x",{}]})", "a.01", "1", names_nothing("a.01", "a", "list")},
           {R"({"a":[{}]})", "a.0x", "1", names_nothing("a.0x", "a", "list")},
           {R"({"a":[{}]})", "a.x", "1", names_nothing("a.x", "a", "list")},
           {R"({"a":[{}]})", "a.99999999999999999999", "1",
            names_nothing("a.99999999999999999999", "a", "list")}}) {
    Value tree = ParseJson(root).value();
    EXPECT_EQ(InsertAt(path, ParseJson(value).value(), tree), status);
    EXPECT_EQ(ToJson(tree).value(), Same(root)) << path;
  }
}

}  // namespace
}  // namespace ott
