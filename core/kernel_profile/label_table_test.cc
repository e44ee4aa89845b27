#include "ott/core/kernel_profile/label_table.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ott::kernels {
namespace {

// Texts that differ in what matters and in what does not, of every kind, some of which only look like labels.
std::vector<std::string> Texts() {
  std::vector<std::string> texts;
  for (const std::string name : {"aten::mm", "MmBackward0", "step", "", "a, seq = x"}) {
    for (const std::string sequence_number :
         {"", ", seq = 0", ", seq = 17", ", seq = 4294967296", ", seq = "}) {
      for (const std::string op_id : {"", ", op_id = 5", ", op_id = 6"}) {
        for (const std::string sizes :
             {"", ", sizes = [[2, 3]]", ", sizes = [[3, 3]]", ", sizes = [[], []]"}) {
          texts.push_back(name + sequence_number + op_id + sizes);
          texts.push_back(name + sizes + op_id + sequence_number);
          texts.push_back(name + sequence_number + sizes + ", input_op_ids = [(1,0)]");
        }
      }
    }
  }
  for (const std::string sequence_number : {"", R"(,"seq":1)", R"(,"seq":23)", R"(,"seq":"1")"}) {
    texts.push_back(R"({"op":"mm")" + sequence_number + "}");
    texts.push_back(R"({"op":"mm")" + sequence_number + R"(,"source":"a.cc:1"})");
    texts.push_back(R"({"op":"add")" + sequence_number + R"(,"seq":2})");
    texts.push_back("aten::mm" + sequence_number);
  }
  return texts;
}

TEST(LabelTable, SaysWhatSplittingSaysInAnyOrderOfTexts) {
  const std::vector<std::string> texts = Texts();
  std::mt19937 random(20261121);
  // Few texts at a time, so that guesses are right, and then others, so that they are wrong.
  for (int round = 0; round < 3000; ++round) {
    LabelTable table;
    std::vector<std::pair<std::string, uint32_t>> labels;
    std::vector<const std::string*> some;
    for (int i = 0; i < 4; ++i) some.push_back(&texts[random() % texts.size()]);
    for (int i = 0; i < 40; ++i) {
      const std::string& text = *some[random() % some.size()];
      const LabelParts parts = SplitLabel(text);
      const std::string label = std::string(parts.head) + '\0' + std::string(parts.tail);
      const auto [number, sequence_number] = table.Find(text);
      EXPECT_EQ(sequence_number, parts.sequence_number) << text;
      for (const auto& [known, known_number] : labels) {
        ASSERT_EQ(known == label, known_number == number) << text << " after " << known;
      }
      labels.emplace_back(label, number);
    }
  }
}

}  // namespace
}  // namespace ott::kernels
