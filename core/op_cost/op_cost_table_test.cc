// Every row of the tables of ops against a case that was worked out from the op's definition.

#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/op_cost/elementwise_cost.h"
#include "ott/core/op_cost/movement_cost.h"
#include "ott/core/op_cost/op_call.h"
#include "ott/core/op_cost/op_cost.h"

namespace ott {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Not;

std::vector<double> ParseNumbers(std::string_view text) {
  if (!text.empty() && text.front() == '[') text = text.substr(1, text.size() - 2);
  std::vector<double> numbers;
  if (text.empty()) return numbers;
  for (const absl::string_view number : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    numbers.push_back(std::stod(std::string(number)));
  }
  return numbers;
}

// float32[2,3], ?[2,3] of a type that is not told, 7, [0,1], "float16", each with a name or without one:
// dim=7.
// "+" is between items of a list.
// All the tensors, and nothing else, come after "...".
OpArgument ParseArgument(std::string_view text, int position) {
  OpArgument argument;
  argument.position = position;
  if (const size_t equals = text.find('='); equals != std::string_view::npos) {
    argument.name = text.substr(0, equals);
    text.remove_prefix(equals + 1);
  }
  const size_t bracket = text.find('[');
  const auto dtype = ParseDType(text.substr(0, bracket));
  if (bracket != std::string_view::npos && (dtype.ok() || text[0] == '?')) {
    argument.is_tensor = true;
    if (dtype.ok()) argument.dtype = *dtype;
    for (const double size : ParseNumbers(text.substr(bracket))) {
      argument.shape.push_back(static_cast<int64_t>(size));
    }
    return argument;
  }
  if (text.front() == '"') {
    argument.text = text.substr(1, text.size() - 2);
  } else {
    argument.numbers = ParseNumbers(text);
  }
  return argument;
}

struct Case {
  std::string line;
  OpDescription op;
  OpPass pass;
  std::optional<double> flops;
  std::optional<double> bytes;
};

std::optional<double> ParseCost(const std::string& text) {
  return text == "?" ? std::nullopt : std::optional<double>(std::stod(text));
}

std::vector<Case> Cases() {
  std::ifstream file("core/op_cost/op_costs_for_test.tsv");
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields.size() != 6) {
      ADD_FAILURE() << "not six columns: " << line;
      continue;
    }
    Case c;
    c.line = line;
    int position = -1;
    for (const absl::string_view argument : absl::StrSplit(fields[2], ' ', absl::SkipEmpty())) {
      ++position;
      if (argument == "-") continue;
      if (argument == "...") {
        c.op.tensors_only = true;
        continue;
      }
      for (const absl::string_view item : absl::StrSplit(argument, '+'))
        c.op.arguments.push_back(ParseArgument(std::string_view(item.data(), item.size()), position));
    }
    const std::vector<std::string> passes = absl::StrSplit(fields[1], ','),
                                   flops = absl::StrSplit(fields[3], ','),
                                   bytes = absl::StrSplit(fields[4], ',');
    for (const absl::string_view op : absl::StrSplit(fields[0], ',')) {
      const std::vector<std::string> module_and_name = absl::StrSplit(op, "::");
      c.op.op = module_and_name.back();
      if (module_and_name.size() > 1) c.op.module = module_and_name[0];
      for (size_t i = 0; i < passes.size(); ++i) {
        c.pass = passes[i] == "backward" ? OpPass::kBackward
                 : passes[i] == "input"  ? OpPass::kInputGradient
                 : passes[i] == "weight" ? OpPass::kWeightGradient
                                         : OpPass::kForward;
        c.flops = ParseCost(flops.at(i));
        c.bytes = ParseCost(bytes.at(i));
        cases.push_back(c);
      }
    }
  }
  return cases;
}

TEST(OpCostTable, EveryOpCostsWhatItsDefinitionSays) {
  for (const Case& c : Cases()) {
    const OpCost cost = CostOf(c.op, c.pass, std::nullopt);
    EXPECT_EQ(cost.flops, c.flops) << c.op.op << " of " << c.line;
    EXPECT_EQ(cost.bytes, c.bytes) << c.op.op << " of " << c.line;
  }
}

// Names as tables have them.
std::set<std::string> NamesWithACase(OpPass pass) {
  std::set<std::string> names;
  for (const Case& c : Cases()) {
    if (c.pass == pass && c.flops.has_value()) names.insert(OpCall(c.op, std::nullopt).name());
  }
  return names;
}

TEST(OpCostTable, EveryRowHasACase) {
  std::vector<std::string_view> ops = PointwiseOpNames();
  for (const auto& more : {LossOpNames(), MovementOpNames()}) ops.insert(ops.end(), more.begin(), more.end());
  for (const char* const known : {"relu", "eq", "nll_loss", "copy"}) EXPECT_THAT(ops, Contains(known));
  const std::set<std::string> forward = NamesWithACase(OpPass::kForward);
  for (const std::string_view op : ops) {
    EXPECT_TRUE(forward.count(std::string(op)) > 0) << op << " has no case in op_costs_for_test.tsv";
  }
  std::vector<std::string_view> with_backward = PointwiseOpNamesWithBackward();
  EXPECT_THAT(with_backward, AllOf(Contains("relu"), Not(Contains("prelu"))));
  for (const std::string_view op : LossOpNames()) with_backward.push_back(op);
  const std::set<std::string> backward = NamesWithACase(OpPass::kBackward);
  for (const std::string_view op : with_backward) {
    EXPECT_TRUE(backward.count(std::string(op)) > 0)
        << op << " has no case of its backward pass in op_costs_for_test.tsv";
  }
}

}  // namespace
}  // namespace ott
