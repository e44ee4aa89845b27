#include "ott/core/trace/schedule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/config.pb.h"

namespace ott {

Schedule::Options Schedule::FromConfig(const ProfileConfig& config) {
  Options options;
  options.skip_first = config.skip_first();
  options.wait = config.wait();
  options.warmup = config.warmup();
  options.active = config.active();
  options.repeat = config.repeat();
  options.skip_first_wait = config.skip_first_wait();
  return options;
}

absl::StatusOr<Schedule> Schedule::Create(const Options& options) {
  const std::pair<const char*, int64_t> numbers[] = {{"skip_first", options.skip_first},
                                                     {"wait", options.wait},
                                                     {"warmup", options.warmup},
                                                     {"repeat", options.repeat}};
  for (const auto& [name, number] : numbers) {
    if (number < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("profile: ", name, " is ", number, "; at least 0 is needed"));
    }
  }
  if (options.active < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("profile: active is ", options.active, "; at least 1 step is needed to record"));
  }
  // A step and the lengths of a cycle are added up.
  constexpr int64_t kMost = int64_t{1} << 60;
  if (options.wait > kMost || options.warmup > kMost || options.active > kMost) {
    return absl::InvalidArgumentError(absl::StrCat("profile: wait is ", options.wait, ", warmup is ",
                                                   options.warmup, ", active is ", options.active,
                                                   "; at most ", kMost, " steps each can be counted"));
  }
  return Schedule(options);
}

ProfilerAction Schedule::Action(int64_t step) const {
  OTT_CHECK(step >= 0) << "step " << step;
  if (step < options_.skip_first) return ProfilerAction::kNone;
  step -= options_.skip_first;
  if (options_.skip_first_wait) step += options_.wait;
  const int64_t cycle = options_.wait + options_.warmup + options_.active;
  if (options_.repeat > 0 && step / cycle >= options_.repeat) return ProfilerAction::kNone;
  const int64_t place = step % cycle;
  if (place < options_.wait) return ProfilerAction::kNone;
  if (place < options_.wait + options_.warmup) return ProfilerAction::kWarmUp;
  return place + 1 < cycle ? ProfilerAction::kRecord : ProfilerAction::kRecordAndSave;
}

}  // namespace ott
