#include "ott/core/trace/schedule.h"

#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"

namespace ott {
namespace {

using ::testing::HasSubstr;

Schedule::Options Make(int64_t wait, int64_t warmup, int64_t active, int64_t repeat = 0,
                       int64_t skip_first = 0) {
  Schedule::Options options;
  options.wait = wait;
  options.warmup = warmup;
  options.active = active;
  options.repeat = repeat;
  options.skip_first = skip_first;
  return options;
}

// A letter a step: none ".", warm-up "w", record "R", record and save "S".
std::string Steps(const Schedule::Options& options, int64_t count) {
  const absl::StatusOr<Schedule> schedule = Schedule::Create(options);
  if (!schedule.ok()) return std::string(schedule.status().message());
  std::string result;
  for (int64_t step = 0; step < count; ++step) result += ".wRS"[static_cast<int>(schedule->Action(step))];
  return result;
}

// The schedule is that of torch.profiler.schedule (PyTorch 2.x): skip_first=10, wait=20 with skip_first_wait
// warms up after 10 steps, then after 20 more.
TEST(Schedule, CyclesOfWaitWarmUpAndActiveStepsFollowTheSkippedOnes) {
  for (int code = 0; code < 2 * 3 * 3 * 3 * 3 * 3; ++code) {
    Schedule::Options options =
        Make(code / 2 % 3, code / 6 % 3, 1 + code / 18 % 3, code / 54 % 3, code / 162 % 3);
    options.skip_first_wait = code % 2 == 1;
    std::string expected(options.skip_first, '.');
    for (int64_t cycle = 0; cycle < (options.repeat > 0 ? options.repeat : 20); ++cycle) {
      if (cycle > 0 || !options.skip_first_wait) expected += std::string(options.wait, '.');
      expected += std::string(options.warmup, 'w') + std::string(options.active - 1, 'R') + "S";
    }
    expected.resize(20, '.');
    EXPECT_EQ(Steps(options, 20), expected) << code;
  }
}

TEST(Schedule, NumbersThatMakeNoScheduleOrCannotBeCountedAreNamed) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const auto& [options, message] :
       {std::pair(Make(0, 0, 0), "active is 0"),
        {Make(-1, 0, 1), "wait is -1"},
        {Make(0, -2, 1), "warmup is -2"},
        {Make(0, 0, 1, -3), "repeat is -3"},
        {Make(0, 0, 1, 0, -4), "skip_first is -4"},
        {Make(kMax, kMax, 2), "wait is 9223372036854775807"},  // their sum would be 0
        {Make(0, kMax, 1), "can be counted"},
        {Make(0, 0, kMax), "can be counted"}}) {
    EXPECT_THAT(Steps(options, 1), HasSubstr(message));
  }
}

TEST(Schedule, ConfigHasEveryField) {
  ProfileConfig config;
  config.set_skip_first(1);
  config.set_wait(2);
  config.set_warmup(3);
  config.set_active(4);
  config.set_repeat(5);
  config.set_skip_first_wait(true);
  const Schedule::Options of = Schedule::FromConfig(config);
  EXPECT_EQ(std::tuple(of.skip_first, of.wait, of.warmup, of.active, of.repeat, of.skip_first_wait),
            std::tuple(1, 2, 3, 4, 5, true));
}

}  // namespace
}  // namespace ott
