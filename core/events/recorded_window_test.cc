#include "ott/core/events/recorded_window.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

constexpr int64_t kUnixOffset = 1'000'000;

std::atomic<uint64_t> now_ns{0};

uint64_t Now() { return now_ns; }

class RecordedWindowTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(100); }

  void Open(uint64_t time) {
    now_ns = time;
    recorder_.Open();
  }

  void Close(uint64_t time) {
    now_ns = time;
    recorder_.Close();
  }

  // Times from the opening of the window.
  void Begin(uint64_t time, const char* name, EventCategory category = EventCategory::kRange,
             uint64_t key = 0) {
    recorder_.BeginRange(category, std::string_view(name), 100 + time, key);
  }
  void End(uint64_t time, EventCategory category = EventCategory::kRange, uint64_t key = 0) {
    recorder_.EndRange(category, 100 + time, key);
  }

  // "name start+duration", with what is special behind it.
  static std::string TextOf(const TraceEvent& event) {
    std::string text = absl::StrCat(std::string(event.name), " ", event.start);
    if (event.type == TraceEvent::Type::kSlice) absl::StrAppend(&text, "+", event.duration);
    if (event.type == TraceEvent::Type::kOverlappingSlice)
      absl::StrAppend(&text, "+", event.duration, " overlapping");
    if (event.type == TraceEvent::Type::kMark) text += " mark";
    if (event.type == TraceEvent::Type::kCounter) absl::StrAppend(&text, " = ", event.value);
    if (event.flow != TraceEvent::Flow::kNone)
      absl::StrAppend(&text, event.flow == TraceEvent::Flow::kStart ? " ->" : " <-", event.flow_id);
    return event.args.empty() ? text : absl::StrCat(text, " ", std::string(event.args));
  }

  std::vector<std::string> Events() {
    std::vector<std::string> result;
    RecordedWindow(recorder_).Visit([&](const TraceEvent& event) { result.push_back(TextOf(event)); });
    return result;
  }

  EventRecorder recorder_{Clock(&Now), [] {
                            const auto now = static_cast<int64_t>(now_ns.load());
                            return ClockReading{now_ns, now, now + kUnixOffset};
                          }};
};

// An operation that a thread recorded, and the event that a window shows of it.
struct Recorded {
  std::string track, name, category, args;
  uint64_t key = 0;
  EventFlow flow = {};
  int64_t begin = 0;
  int64_t end = 0;  // 0: not ended
  int64_t end_of_thread = 0;
  bool overlaps = false;
};

TEST_F(RecordedWindowTest, OfAnyOperationsOfThreadsTheWindowShowsWhatTheyWere) {
  static const char kNames[2][8] = {"measure", "domain"};
  const std::string args_of_any[] = {"", R"({"a":1})", "{}", "{ }", R"( {"b":[2]})"};
  const std::string unfinished[] = {R"({"unfinished":true})", R"({"unfinished":true,"a":1})",
                                    R"({"unfinished":true})", R"({"unfinished":true})",
                                    R"({"unfinished":true,"b":[2]})"};
  const int64_t tracks[] = {recorder_.AddTrack("track0"), recorder_.AddTrack("track1")};
  EXPECT_EQ(recorder_.AddTrack("track0"), tracks[0]);
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](uint32_t end) { return static_cast<int>(random() % end); };
    std::vector<Recorded> all, ends;
    std::vector<std::string> expected;
    std::set<std::string> tracks_of_any;
    // Starts of a flow are of one thread, and so are its ends.
    std::map<std::pair<uint64_t, EventFlow::End>, std::string> thread_of_flow;
    int num_threads = 0;
    const std::function<void(int)> run = [&](int depth) {
      const std::string thread = absl::StrCat("thread", num_threads++);
      pthread_setname_np(pthread_self(), thread.c_str());
      std::vector<size_t> open;
      const auto any_flow = [&] {
        const EventFlow flow = {static_cast<EventFlow::End>(below(3)), FlowId(below(2), 12)};
        const auto [known, is_new] = thread_of_flow.try_emplace({flow.id, flow.end}, thread);
        return known->second == thread ? flow : EventFlow();
      };
      for (int i = below(15); i > 0; --i) {
        const int what = below(9);
        if (what == 0 && depth < 2) {
          std::thread(run, depth + 1).join();
          continue;
        }
        tracks_of_any.insert(thread);
        // Ranges begin one after the other, and may end as another begins.
        now_ns += static_cast<uint64_t>(what < 5 ? 1 : below(2));
        Recorded one{thread, absl::StrCat("name", below(9)), "nvtx", args_of_any[below(5)]};
        one.begin = static_cast<int64_t>(now_ns);
        const std::string& args = one.args;
        if (what < 5) {
          if (what < 2) {
            one.name = kNames[below(2)];
            one.key = reinterpret_cast<uintptr_t>(one.name == kNames[0] ? kNames[0] : kNames[1]);
            one.category = "stopwatch";
            one.args.clear();
            recorder_.BeginRange(EventCategory::kMeasurement, reinterpret_cast<const char*>(one.key), now_ns,
                                 one.key);
          } else if (what < 4) {
            one.key = below(2) == 0 ? 0 : reinterpret_cast<uintptr_t>(kNames[1]);
            one.args.clear();
            recorder_.BeginRange(EventCategory::kRange, std::string_view(one.name), now_ns, one.key);
            if (one.key != 0) one.name = "domain: " + one.name;
          } else {
            one.category = "op";
            one.flow = any_flow();
            recorder_.BeginRange(EventCategory::kOp, one.name, now_ns, args, one.flow);
          }
          open.push_back(all.size());
          all.push_back(one);
        } else if (what < 7) {
          const EventCategory category = std::vector<EventCategory>{
              EventCategory::kMeasurement, EventCategory::kRange, EventCategory::kOp}[random() % 3];
          one.category = EventCategoryName(category);
          one.key = reinterpret_cast<uintptr_t>(kNames[below(2)]);
          if (category == EventCategory::kOp || (category == EventCategory::kRange && below(2) == 0))
            one.key = 0;
          recorder_.EndRange(category, now_ns, one.key);
          const auto begun = std::find_if(open.rbegin(), open.rend(), [&](size_t at) {
            return all[at].category == one.category && all[at].key == one.key;
          });
          if (begun == open.rend()) {
            ends.push_back(one);
            continue;
          }
          all[*begun].end = one.begin;
          all[*begun].overlaps = begun != open.rbegin();
          open.erase(std::next(begun).base());
        } else if (what == 7) {
          const bool is_mark = below(2) == 0;
          if (is_mark) recorder_.Mark(EventCategory::kUser, one.name, args);
          if (!is_mark) recorder_.Counter(one.name, 0.5);
          expected.push_back(absl::StrCat(thread, " user ", one.name, " ", one.begin - 1000,
                                          is_mark ? " mark" : " = 0.5", is_mark && !args.empty() ? " " : "",
                                          is_mark ? args : ""));
        } else {
          EventRecorder::Slice slice;
          const int track = below(2);
          one.track = absl::StrCat("track", track);
          one.category = "device";
          one.flow = any_flow();
          one.end = std::max<int64_t>(one.begin, one.begin + below(9) - 3);
          slice.track = tracks[track];
          slice.name = one.name;
          slice.args = args;
          slice.flow = one.flow;
          slice.start_unix_nanoseconds = kUnixOffset + one.begin;
          slice.end_unix_nanoseconds = kUnixOffset + (one.end > one.begin ? one.end : one.begin - below(2));
          recorder_.AddSlice(slice);
          all.push_back(one);
        }
      }
      for (const size_t at : open) all[at].end_of_thread = static_cast<int64_t>(now_ns);
    };
    // The second window forgets ranges that began in the first.
    for (const uint64_t opened : {500, 1000}) {
      all.clear(), ends.clear(), expected.clear(), thread_of_flow.clear();
      tracks_of_any = {"track0", "track1"};
      num_threads = 0;
      Open(opened);
      run(0);
      Close(opened + 400);
    }
    int64_t num_unfinished = 0, num_without_begin = 0;
    for (const Recorded& end : ends) {
      Recorded* latest = nullptr;
      for (Recorded& one : all) {
        if (one.end == 0 && one.category == "stopwatch" && one.key == end.key && one.begin <= end.begin)
          latest = &one;
      }
      if (latest == nullptr || end.category != "stopwatch") {
        ++num_without_begin;
        continue;
      }
      latest->end = end.begin;
      latest->overlaps = true;
    }
    for (const Recorded& one : all) {
      const auto is_of = [&](const Recorded& other, EventFlow::End end) {
        return other.flow.end == end && other.flow.id == one.flow.id;
      };
      const Recorded *start = nullptr, *finish = nullptr;
      for (const Recorded& other : all) {
        if (is_of(other, EventFlow::End::kStart)) start = &other;
        if (is_of(other, EventFlow::End::kFinish) && finish == nullptr) finish = &other;
      }
      num_unfinished += one.end == 0;
      const bool is_on_main = one.track == "thread0";
      const int64_t end = one.end != 0 ? one.end : is_on_main ? 1400 : one.end_of_thread;
      std::string args = one.args;
      if (one.end == 0) args = unfinished[std::find(args_of_any, args_of_any + 5, args) - args_of_any];
      const bool has_both = start != nullptr && finish != nullptr;
      const char* const arrow = !has_both ? "" : start == &one ? " ->" : finish == &one ? " <-" : "";
      expected.push_back(absl::StrCat(one.track, " ", one.category, " ", one.name, " ", one.begin - 1000, "+",
                                      end - one.begin, one.overlaps ? " overlapping" : "", arrow,
                                      *arrow == 0 ? "" : absl::StrCat(one.flow.id), args.empty() ? "" : " ",
                                      args));
    }
    const RecordedWindow window(recorder_, 7);
    std::map<int64_t, std::string> names;
    int64_t index = 0;
    for (const TraceTrack& track : window.Tracks()) {
      names[track.track] = track.name;
      EXPECT_EQ(track.process, 7);
      ++index;
      EXPECT_EQ(track.sort_index, track.track == getpid()    ? 0
                                  : track.track >= tracks[0] ? track.track
                                                             : index);
    }
    std::vector<std::string> found;
    std::set<std::string> shown;
    for (const auto& [track, name] : names) shown.insert(name);
    window.Visit([&](const TraceEvent& event) {
      EXPECT_EQ(event.process, 7);
      found.push_back(absl::StrCat(names[event.track], " ", std::string(event.category), " ", TextOf(event)));
    });
    EXPECT_EQ(shown, tracks_of_any);
    ASSERT_THAT(found, UnorderedElementsAreArray(expected));
    EXPECT_EQ(window.num_unfinished_ranges(), num_unfinished);
    EXPECT_EQ(window.num_ends_without_begin(), num_without_begin);
    EXPECT_EQ(window.num_lost_events(), 0);
  }
}

TEST_F(RecordedWindowTest, NamesBeyondAMebibyteAreCutAndArgumentsLeftOut) {
  constexpr size_t kMost = 1 << 20;
  for (const size_t size : {kMost, kMost + 1}) {
    recorder_.Mark(EventCategory::kUser, std::string(size, 'x'), std::string(size, 'y'));
    EXPECT_EQ(Events().back(),
              std::string(kMost, 'x') + " 0 mark" + (size > kMost ? "" : " " + std::string(size, 'y')));
  }
}

TEST_F(RecordedWindowTest, WhatDoesNotFitIsCountedForTheLastThreadAndOpenRangesStillEnd) {
  Close(150);
  recorder_.SetThreadBufferBytes(8 * sizeof(EventRecord));
  Open(200);
  // The record and the name of a thread take up to two, and its end one. The second thread has the buffer of
  // the first.
  for (const int num_ranges : {1, 10}) {
    std::thread([this, num_ranges] {
      Begin(110, "a");
      for (int i = 1; i < num_ranges; ++i) {
        Begin(130, "b");
        End(131);
      }
      End(145);
    }).join();
  }
  Close(300);
  const RecordedWindow window(recorder_);
  EXPECT_EQ(window.num_unfinished_ranges(), 0);
  EXPECT_GT(window.num_lost_events(), 5);
  EXPECT_THAT(Events().front(), "a 10+35");
  EXPECT_THAT(Events().back(), HasSubstr("events lost: the thread's buffer was full"));
  std::vector<int64_t> lost;
  window.Visit([&](const TraceEvent& event) {
    if (event.category == "profiler") lost.push_back(event.track);
  });
  EXPECT_THAT(lost, ElementsAre(window.Tracks().back().track));
}

TEST_F(RecordedWindowTest, RangesDeeperThanTheLimitAreCountedAndTheOthersEndInTheirTurn) {
  constexpr int kDepth = 600;
  for (int i = 0; i < kDepth; ++i) Begin(10, "deep");
  for (int i = 0; i < kDepth; ++i) End(i + 20);
  Begin(700, "after");
  End(710);
  Close(900);
  const RecordedWindow window(recorder_);
  EXPECT_EQ(window.num_unfinished_ranges(), 0);
  EXPECT_EQ(window.num_ends_without_begin(), 0);
  EXPECT_EQ(window.num_lost_events(), 100);
  EXPECT_THAT(Events(), Contains("deep 10+" + std::to_string(kDepth - 1 + 10)));
  EXPECT_THAT(Events(), Contains("after 700+10"));
}

TEST_F(RecordedWindowTest, AfterRangesThatWereTooDeepAnotherThreadAndAnotherWindowBeginAnew) {
  const auto too_deep = [this] {
    for (int i = 0; i < 502; ++i) Begin(10, "deep");
  };
  const auto record = [this] {
    Begin(20, "outer", EventCategory::kMeasurement, 1);
    Begin(30, "inner");
    for (int i = 0; i < 2; ++i) End(35, EventCategory::kMeasurement, 2);
    End(40);
    End(50, EventCategory::kMeasurement, 1);
    now_ns = 160;
  };
  std::thread(too_deep).join();
  std::thread(record).join();
  Close(200);
  EXPECT_THAT(Events(), IsSupersetOf({"outer 20+30", "inner 30+10"}));
  EXPECT_EQ(Events().back(), "2 events lost: the thread's buffer was full, or they lay too deep 60 mark");
  Open(100);
  too_deep();
  Open(100);
  record();
  Close(200);
  EXPECT_THAT(Events(), ElementsAre("outer 20+30", "inner 30+10"));
}

TEST_F(RecordedWindowTest, ManyThreadsRecordAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kRanges = 1000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int j = 0; j < kRanges; ++j) {
        Begin(10, "range");
        End(11);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Close(150);
  EXPECT_THAT(Events(), SizeIs(kThreads * kRanges));
}

TEST_F(RecordedWindowTest, WindowsOpenAndCloseWhileThreadsRecord) {
  std::atomic<bool> stop{false};
  std::thread thread([this, &stop] {
    while (!stop) {
      Begin(10, "range");
      End(11);
    }
  });
  for (int i = 0; i < 100; ++i) {
    Close(150);
    const RecordedWindow window(recorder_);
    window.Visit([](const TraceEvent& event) { EXPECT_EQ(event.name, "range"); });
    EXPECT_LE(window.num_unfinished_ranges(), 1);
    Open(100);
  }
  stop = true;
  thread.join();
  Close(150);
}

}  // namespace
}  // namespace ott
