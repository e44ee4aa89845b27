#include "ott/questions/waiting/time_split.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "ott/questions/waiting/traces_for_test.h"

namespace ott::waiting {
namespace {

using kernels::kNone;
using kernels::OpLabel;
using kernels::Profile;

// Holds an activity of a device, and when the host called it.
struct ActivityForTest {
  enum Kind { kCompute, kCollective, kCopy, kMemset };
  Kind kind;
  int64_t call, begin, end;
};

// The definition: nanosecond by nanosecond. `in_collective`: when the host was in one. All begin apart.
TimeSplit SplitByNanoseconds(const std::vector<ActivityForTest>& activities,
                             const std::set<int64_t>& in_collective) {
  int64_t first = INT64_MAX, last = 0;
  for (const ActivityForTest& activity : activities) {
    first = std::min(first, activity.begin);
    last = std::max(last, activity.end);
  }
  TimeSplit split;
  split.total = last - first;
  int64_t idle_since = 0;
  for (int64_t now = first; now < last; ++now) {
    bool is[4] = {};
    const ActivityForTest* next = nullptr;
    for (const ActivityForTest& activity : activities) {
      if (activity.begin <= now && now < activity.end) is[activity.kind] = true;
      if (activity.begin > now && (next == nullptr || activity.begin < next->begin)) next = &activity;
    }
    const bool computes = is[ActivityForTest::kCompute] || is[ActivityForTest::kMemset];
    const bool reduces = is[ActivityForTest::kCollective], copies = is[ActivityForTest::kCopy];
    split.compute += computes;
    split.memsets += computes && !is[ActivityForTest::kCompute];
    split.communication += reduces;
    split.exposed_communication += reduces && !computes;
    split.copies += copies;
    split.exposed_copies += copies && !computes && !reduces;
    if (computes || reduces || copies) {
      ++split.busy;
      idle_since = now + 1;
      continue;
    }
    ++split.idle;
    int64_t& why = next->call <= idle_since       ? split.idle_queued
                   : next->call <= now            ? split.idle_launch
                   : in_collective.count(now) > 0 ? split.idle_collective
                                                  : split.idle_host;
    ++why;
  }
  return split;
}

// Without activities of devices, operators compute and collectives of the host communicate.
TimeSplit SplitOfHost(const Profile& profile, const std::set<int64_t>& in_op) {
  TimeSplit split;
  split.of_host = true;
  split.total = profile.last_time - profile.first_time;
  for (int64_t now = profile.first_time; now < profile.last_time; ++now) {
    const bool communicates =
        std::any_of(profile.host_collectives.begin(), profile.host_collectives.end(),
                    [&](const Profile::HostCollective& one) { return one.start <= now && now < one.end; });
    split.compute += in_op.count(now) > 0;
    split.communication += communicates;
    split.exposed_communication += communicates && in_op.count(now) == 0;
    split.busy += communicates || in_op.count(now) > 0;
  }
  split.idle = split.idle_host = split.total - split.busy;
  return split;
}

void ExpectSame(const TimeSplit& split, const TimeSplit& expected, int trial) {
  TracedJob jobs[2];
  jobs[0].ranks.emplace_back().split = split;
  jobs[1].ranks.emplace_back().split = expected;
  EXPECT_EQ(SplitsToJson(jobs[0]), SplitsToJson(jobs[1])) << trial;
  EXPECT_EQ(split.of_host, expected.of_host) << trial;
  EXPECT_EQ(split.num_left_out, expected.num_left_out) << trial;
}

// Ranges of the host have labels: the first of collectives, the next of other operators.
constexpr int64_t kCollectiveLabels = 5, kOpLabels = 8, kLabels = 9;

void AddLabels(Profile& profile) {
  for (const auto& [module, op] : std::vector<std::pair<const char*, const char*>>{{"c10d", "barrier"},
                                                                                   {"", "record_param_comms"},
                                                                                   {"gloo", "work"},
                                                                                   {"mpi", "work"},
                                                                                   {"", "wait_tensor"},
                                                                                   {"aten", "mm"},
                                                                                   {"aten", "mul"},
                                                                                   {"torch", "linear"},
                                                                                   {"c10d", "barrier"}}) {
    OpLabel& label = profile.labels.emplace_back();
    label.kind = profile.labels.size() % 2 == 0 ? OpLabel::Kind::kOp : OpLabel::Kind::kMarker;
    label.description.module = module;
    label.description.op = op;
  }
  profile.labels.back().kind = OpLabel::Kind::kOther;  // a name that the program gave
}

TEST(TimeSplit, IsTheSumOfItsNanoseconds) {
  std::mt19937 random(1);
  const auto draw = [&](int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  };
  for (int trial = 0; trial < 400; ++trial) {
    Profile profile = EmptyTraceForTest();
    profile.transfer_names.emplace_back("memset (Host)");
    AddLabels(profile);
    const bool has_launches = draw(4) > 0;
    std::set<int64_t> begins, in_collective, in_op;
    while (begins.size() < (trial % 8 == 0 ? 0 : 10)) begins.insert(draw(200));
    std::vector<ActivityForTest> activities;
    for (const int64_t begin : begins) {
      const auto kind = static_cast<ActivityForTest::Kind>(draw(4));
      activities.push_back({kind, begin - draw(40), begin, begin + 1 + draw(20)});
    }
    std::shuffle(activities.begin(), activities.end(), random);
    int64_t num_left_out = 0;
    for (ActivityForTest& activity : activities) {
      AddKernelForTest(&profile, activity.kind == ActivityForTest::kCollective ? 1 : 0, activity.call,
                       activity.begin, activity.end);
      const int64_t what_is_told = has_launches ? draw(10) : draw(2);
      if (what_is_told == 0) profile.kernels.back().launch = kNone;
      if (what_is_told == 1) profile.launches.back().thread = kNone;
      if (what_is_told == 2) profile.launches.back().nanoseconds = kNone;
      if (what_is_told <= 2) activity.call = 0;  // nobody knows that it waited for its call
      if (what_is_told <= 1 && has_launches) {
        ++num_left_out;
        activity.end = activity.begin;
      }
      if (activity.kind < ActivityForTest::kCopy) continue;
      const Profile::Kernel kernel = profile.kernels.back();
      profile.kernels.pop_back();
      const auto name = static_cast<uint32_t>(activity.kind == ActivityForTest::kCopy ? 0 : 1 + draw(2));
      profile.transfers.push_back({kernel.start, kernel.end, 64, name, kernel.launch, 0, 0, 0});
    }
    activities.erase(
        std::remove_if(activities.begin(), activities.end(),
                       [](const ActivityForTest& activity) { return activity.end == activity.begin; }),
        activities.end());
    profile.first_time = 20;
    profile.last_time = 240;
    for (int i = 0; i < 6; ++i) {
      const int64_t begin = 30 + draw(180), end = begin + 1 + draw(20), label = draw(kLabels);
      profile.threads[0].ranges.push_back({begin, end, static_cast<uint32_t>(label), kNone});
      for (int64_t now = begin; now < end; ++now) {
        if (label < kOpLabels) (label < kCollectiveLabels ? in_collective : in_op).insert(now);
      }
      profile.host_collectives.push_back({end - 5, end + 5, 0});
    }
    TimeSplit expected =
        activities.empty() ? SplitOfHost(profile, in_op) : SplitByNanoseconds(activities, in_collective);
    expected.num_left_out = activities.empty() ? 0 : num_left_out;
    ExpectSame(SplitTime(profile), expected, trial);
  }
}

}  // namespace
}  // namespace ott::waiting
