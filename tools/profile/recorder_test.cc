#include "tools/profile/recorder.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace ott::profile {
namespace {

TEST(Recorder, EachTextHasANumberByWhichItIsFound) {
  EXPECT_EQ(Recorder::StringOf(1), "");
  for (uint32_t i = 1; i <= 3; ++i) {
    const std::string text = absl::StrCat("text ", i);
    EXPECT_EQ(Recorder::StringId(text), i);
    EXPECT_EQ(Recorder::StringId(text), i);
    for (uint32_t known = 1; known <= i; ++known)
      EXPECT_EQ(Recorder::StringOf(known), absl::StrCat("text ", known));
    EXPECT_EQ(Recorder::StringOf(0), "");
    EXPECT_EQ(Recorder::StringOf(i + 1), "");
  }
  // Domains are counted by themselves.
  EXPECT_EQ(Recorder::DomainId("text 1"), 1u);
  EXPECT_EQ(Recorder::DomainId("another"), 2u);
  EXPECT_EQ(Recorder::DomainId("text 1"), 1u);
}

}  // namespace
}  // namespace ott::profile
