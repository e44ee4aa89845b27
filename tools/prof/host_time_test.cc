#include "tools/prof/host_time.h"

#include <string>

#include "gtest/gtest.h"
#include "tools/prof/capture_for_test.h"
#include "tools/prof/profile_reader.h"

namespace ott::prof {
namespace {

TEST(HostTime, SelfTimeIsWithoutTheRangesWithin) {
  const Profile profile =
      ReadProfile(CaptureSql()
                      .Range(1, 11, 0, 100, "forward")
                      .Range(1, 11, 10, 60, "linear, seq = 1, sizes = [[2, 3]]")
                      .Range(1, 11, 11, 59, R"({"op":"linear","direction":"forward","seq":1})")
                      .Range(1, 11, 20, 30, "layer:inner")
                      .Range(1, 11, 60, 80, "linear, seq = 2, sizes = [[2, 3]]")
                      .Range(1, 12, 0, 40, "autograd::engine::evaluate_function: LinearBackward0, op_id = 9")
                      .Range(1, 12, 5, 35, "LinearBackward0, seq = 1")
                      .Write("host.sqlite"))
          .value();
  std::string text;
  WriteHostTimes(profile, {}, 10, [&](std::string_view part) { text += part; });
  EXPECT_EQ(text,
            "kind dir name count total self share mean min max\n"
            "op fprop linear 2 70 60 42.857 35 20 50\n"
            "op bprop LinearBackward0 1 40 40 28.571 40 40 40\n"
            "range - forward 1 100 30 21.429 100 100 100\n"
            "layer - inner 1 10 10 7.1429 10 10 10\n");
}

}  // namespace
}  // namespace ott::prof
