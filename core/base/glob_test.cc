#include "ott/core/base/glob.h"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

// A star stands for any characters, a question mark for one, and everything else for itself.
bool ByDefinition(std::string_view text, std::string_view glob) {
  if (glob.empty()) return text.empty();
  if (glob[0] == '*' && ByDefinition(text, glob.substr(1))) return true;
  if (text.empty() || (glob[0] != '*' && glob[0] != '?' && glob[0] != text[0])) return false;
  return ByDefinition(text.substr(1), glob[0] == '*' ? glob : glob.substr(1));
}

TEST(MatchesGlob, SaysOfAnyTextWhatTheDefinitionSays) {
  std::mt19937 random(1);
  const auto draw = [&](const std::string& characters) {
    std::string text(random() % 8, ' ');
    for (char& c : text) c = characters[random() % characters.size()];
    return text;
  };
  for (int trial = 0; trial < 20000; ++trial) {
    const std::string text = draw("ab.[\\*"), glob = draw("ab.[\\**?");
    // Nothing behind the glob is read.
    const std::string longer = glob + "*", other = draw("ab*");
    EXPECT_EQ(MatchesGlob(text, std::string_view(longer).substr(0, glob.size())), ByDefinition(text, glob))
        << text << " " << glob;
    EXPECT_EQ(MatchesAnyGlob(text, std::vector<std::string>{glob, other}),
              ByDefinition(text, glob) || ByDefinition(text, other));
  }
  EXPECT_FALSE(MatchesAnyGlob("a", std::vector<std::string>()));
}

TEST(MatchesTensorGlob, ATensorMatchesByEitherOfItsNames) {
  for (const char* const path : {"parameters.w", "tensors.parameters.w"}) {
    for (const char* const glob :
         {"parameters.*", "tensors.parameters.*", "*.parameters.w", "*parameters.w", "tens*.w", "*"}) {
      EXPECT_TRUE(MatchesTensorGlob(path, glob)) << path << " " << glob;
    }
    for (const char* const glob : {"grads.parameters.w", "w", "tensors.tensors.parameters.w", "tensor?"})
      EXPECT_FALSE(MatchesTensorGlob(path, glob)) << path << " " << glob;
  }
  EXPECT_TRUE(MatchesTensorGlob("grads.w", "grads.*"));
  EXPECT_FALSE(MatchesTensorGlob("grads.w", "tensors.*"));
}

}  // namespace
}  // namespace ott
