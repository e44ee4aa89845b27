#include "ott/core/base/nearest_name.h"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

// The fewest letters that are put in, taken out or replaced.
size_t NumChanges(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  if (a[0] == b[0]) return NumChanges(a.substr(1), b.substr(1));
  return 1 + std::min({NumChanges(a.substr(1), b), NumChanges(a, b.substr(1)),
                       NumChanges(a.substr(1), b.substr(1))});
}

TEST(NearestName, IsTheFirstWithTheFewestChangesUnlessTheseAreMoreThanHalfOfIt) {
  std::mt19937 random(1);
  const auto draw = [&] {
    std::string name(random() % 6, 'a');
    for (char& c : name) c = static_cast<char>('a' + random() % 3);
    return name;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string name = draw();
    std::vector<std::string> names(random() % 4);
    std::generate(names.begin(), names.end(), draw);
    std::string nearest;
    for (const std::string& one : names) {
      if (2 * NumChanges(name, one) > std::max(name.size(), one.size())) continue;
      if (nearest.empty() || NumChanges(name, one) < NumChanges(name, nearest)) nearest = one;
    }
    EXPECT_EQ(NearestName(name, names), nearest) << name << " of " << ::testing::PrintToString(names);
  }
}

}  // namespace
}  // namespace ott
