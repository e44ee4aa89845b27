// Headers that many files of a program include bring along little, so that these files compile fast.

#include "ott/stopwatch_scope.h"

#ifdef ABSL_BASE_CONFIG_H_
#error "ott/stopwatch_scope.h includes Abseil"
#endif

#include <cstddef>
#include <type_traits>

#include "gtest/gtest.h"
#include "ott/training_run.h"

namespace {

template <typename T, typename = void>
constexpr bool kIsComplete = false;
template <typename T>
constexpr bool kIsComplete<T, std::void_t<decltype(sizeof(T))>> = true;

TEST(LightHeaders, TrainingRunKnowsMessagesByNameAlone) {
  EXPECT_TRUE(kIsComplete<ott::TrainingRun>);
  EXPECT_FALSE(kIsComplete<ott::Config>);
  EXPECT_FALSE(kIsComplete<ott::CrossCheckVerdict>);
  EXPECT_FALSE(kIsComplete<ott::HangVerdict>);
}

TEST(LightHeaders, AScopeNeedsNothingElse) {
  OTT_STOPWATCH_SCOPE("step");
  ott::StopwatchName name("by name");
  name.Start();
  name.End();
  EXPECT_STREQ(name.name(), "by name");
}

}  // namespace
