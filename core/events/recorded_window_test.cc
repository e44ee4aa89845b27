#include "ott/core/events/recorded_window.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
  std::vector<std::string> Events() {
    std::vector<std::string> result;
    RecordedWindow(recorder_).Visit([&result](const TraceEvent& event) {
      std::string text = std::string(event.name) + " " + std::to_string(event.start);
      switch (event.type) {
        case TraceEvent::Type::kSlice:
          text += "+" + std::to_string(event.duration);
          break;
        case TraceEvent::Type::kOverlappingSlice:
          text += "+" + std::to_string(event.duration) + " overlapping";
          break;
        case TraceEvent::Type::kMark:
          text += " mark";
          break;
        case TraceEvent::Type::kCounter:
          text += " = " + std::to_string(event.value);
          break;
      }
      if (event.flow == TraceEvent::Flow::kStart) text += " ->" + std::to_string(event.flow_id);
      if (event.flow == TraceEvent::Flow::kFinish) text += " <-" + std::to_string(event.flow_id);
      if (!event.args.empty()) text += " " + std::string(event.args);
      result.push_back(text);
    });
    return result;
  }

  EventRecorder recorder_{Clock(&Now), [] {
                            const auto now = static_cast<int64_t>(now_ns.load());
                            return ClockReading{now_ns, now, now + kUnixOffset};
                          }};
};

TEST_F(RecordedWindowTest, CategoriesAndKeysNestWithEachOther) {
  static const char kDomain[] = "domain";
  Begin(10, "measured", EventCategory::kMeasurement, 7);
  Begin(20, "range");
  Begin(30, "other", EventCategory::kRange, reinterpret_cast<uintptr_t>(kDomain));
  End(40, EventCategory::kRange, reinterpret_cast<uintptr_t>(kDomain));
  End(45);
  End(49, EventCategory::kMeasurement, 7);
  Close(150);
  EXPECT_THAT(Events(), ElementsAre("measured 10+39", "range 20+25", "domain: other 30+10"));
}

TEST_F(RecordedWindowTest, RangesThatOverlapKeepTheirTimes) {
  Begin(10, "a", EventCategory::kMeasurement, 1);
  Begin(20, "b", EventCategory::kMeasurement, 2);
  End(30, EventCategory::kMeasurement, 1);
  End(40, EventCategory::kMeasurement, 2);
  Close(150);
  EXPECT_THAT(Events(), ElementsAre("a 10+20 overlapping", "b 20+20"));
}

TEST_F(RecordedWindowTest, MeasurementsMayEndOnAnotherThread) {
  static const char kName[] = "on both";
  const auto key = reinterpret_cast<uintptr_t>(kName);
  recorder_.BeginRange(EventCategory::kMeasurement, kName, 110, key);
  recorder_.BeginRange(EventCategory::kMeasurement, kName, 120, key);
  std::thread([this, key] {
    End(20, EventCategory::kMeasurement, key);
    End(30, EventCategory::kMeasurement, key);
  }).join();
  Begin(40, "inner");
  End(45);
  Close(150);
  EXPECT_THAT(Events(), ElementsAre("on both 10+20 overlapping", "on both 20+0 overlapping", "inner 40+5"));
  const RecordedWindow window(recorder_);
  EXPECT_EQ(window.num_unfinished_ranges(), 0);
  EXPECT_EQ(window.num_ends_without_begin(), 0);
}

TEST_F(RecordedWindowTest, RangesThatNeverEndGoOnToTheEndOfTheWindow) {
  Begin(10, "outer");
  recorder_.BeginRange(EventCategory::kOp, "inner", 120, R"({"op":"linear"})", {});
  Close(150);
  EXPECT_THAT(Events(), ElementsAre(R"(outer 10+40 {"unfinished":true})",
                                    R"(inner 20+30 {"unfinished":true,"op":"linear"})"));
  EXPECT_EQ(RecordedWindow(recorder_).num_unfinished_ranges(), 2);
}

TEST_F(RecordedWindowTest, RangesThatNeverEndStopWithTheirThread) {
  std::thread([this] {
    Begin(10, "of a thread that ends");
    now_ns = 130;
  }).join();
  Close(150);
  EXPECT_THAT(Events(), ElementsAre(R"(of a thread that ends 10+20 {"unfinished":true})"));
}

TEST_F(RecordedWindowTest, EndsOfRangesThatBeganBeforeAreCountedAndLongNamesCut) {
  End(0);
  Begin(0, "whole");
  End(30);
  Begin(40, std::string((1 << 20) + 1, 'x').c_str());
  End(50);
  Close(150);
  EXPECT_THAT(Events(), ElementsAre("whole 0+30", std::string(1 << 20, 'x') + " 40+10"));
  EXPECT_EQ(RecordedWindow(recorder_).num_ends_without_begin(), 1);
}

TEST_F(RecordedWindowTest, ThreadsThatFollowEachOtherKeepTheirEvents) {
  for (const char* name : {"first", "second"}) {
    std::thread([this, name] {
      pthread_setname_np(pthread_self(), name);
      Begin(10, name);
      End(20);
    }).join();
  }
  Close(150);
  std::vector<std::string> names;
  std::vector<int64_t> tracks, of_events;
  const RecordedWindow window(recorder_);
  for (const TraceTrack& track : window.Tracks()) {
    names.push_back(track.name);
    tracks.push_back(track.track);
  }
  window.Visit([&](const TraceEvent& event) { of_events.push_back(event.track); });
  EXPECT_THAT(names, ElementsAre("first", "second"));
  EXPECT_EQ(of_events, tracks);
  EXPECT_THAT(Events(), ElementsAre("first 10+10", "second 10+10"));
}

TEST_F(RecordedWindowTest, ReopeningForgets) {
  Begin(10, "first window");
  End(20);
  Close(150);
  Open(200);
  Close(250);
  EXPECT_THAT(Events(), IsEmpty());
  Open(300);
  Begin(250, "second window");
  End(260);
  Close(400);
  EXPECT_THAT(Events(), ElementsAre("second window 50+10"));
}

TEST_F(RecordedWindowTest, FlowsNeedBothEnds) {
  const auto begin = [this](uint64_t time, const char* name, EventFlow flow) {
    recorder_.BeginRange(EventCategory::kOp, name, 100 + time, {}, flow);
    End(time + 1, EventCategory::kOp);
  };
  recorder_.BeginRange(EventCategory::kOp, "outer", 105, {}, {EventFlow::End::kStart, FlowId(1, 12)});
  begin(10, "linear", {EventFlow::End::kStart, FlowId(1, 12)});
  End(12, EventCategory::kOp);
  begin(20, "relu", {EventFlow::End::kStart, FlowId(1, 13)});
  begin(30, "LinearBackward0", {EventFlow::End::kFinish, FlowId(1, 12)});
  begin(40, "of another thread's", {EventFlow::End::kFinish, FlowId(2, 13)});
  Close(150);
  const std::string id = std::to_string(FlowId(1, 12));
  EXPECT_THAT(Events(), ElementsAre("outer 5+7", "linear 10+1 ->" + id, "relu 20+1",
                                    "LinearBackward0 30+1 <-" + id, "of another thread's 40+1"));
}

TEST_F(RecordedWindowTest, MarksCountersAndSlicesOfTracksAreThere) {
  now_ns = 110;
  recorder_.Mark(EventCategory::kUser, "checkpoint", R"({"size":3})");
  now_ns = 120;
  recorder_.Counter("loss", 0.5);
  EventRecorder::Slice slice;
  slice.track = recorder_.AddTrack("GPU 0, stream 7");
  slice.name = "gemm";
  slice.start_unix_nanoseconds = kUnixOffset + 130;
  slice.end_unix_nanoseconds = kUnixOffset + 135;
  slice.args = R"({"grid":[1,2,3]})";
  recorder_.AddSlice(slice);
  EXPECT_EQ(recorder_.AddTrack("GPU 0, stream 7"), slice.track);
  Close(150);
  EXPECT_THAT(Events(), ElementsAre(R"(checkpoint 10 mark {"size":3})", "loss 20 = 0.500000",
                                    R"(gemm 30+5 {"grid":[1,2,3]})"));
  EXPECT_THAT(RecordedWindow(recorder_).Tracks().back().name, "GPU 0, stream 7");
}

TEST_F(RecordedWindowTest, LaunchesPointToTheirKernels) {
  EventRecorder::Slice launch;
  launch.track = 1;
  launch.category = EventCategory::kRuntime;
  launch.name = "cudaLaunchKernel";
  launch.start_unix_nanoseconds = kUnixOffset + 110;
  launch.end_unix_nanoseconds = kUnixOffset + 112;
  launch.flow = {EventFlow::End::kStart, 42};
  EventRecorder::Slice kernel = launch;
  kernel.track = recorder_.AddTrack("stream");
  kernel.category = EventCategory::kDevice;
  kernel.name = "gemm";
  kernel.start_unix_nanoseconds += 10;
  kernel.end_unix_nanoseconds += 20;
  kernel.flow.end = EventFlow::End::kFinish;
  recorder_.AddSlice(launch);
  recorder_.AddSlice(kernel);
  Close(150);
  EXPECT_THAT(Events(), ElementsAre("cudaLaunchKernel 10+2 ->42", "gemm 20+12 <-42"));
}

TEST_F(RecordedWindowTest, WhatDoesNotFitIsCountedAndOpenRangesStillEnd) {
  Close(150);
  recorder_.SetThreadBufferBytes(5 * sizeof(EventRecord));
  Open(200);
  // The record and the name of the thread take up to two.
  std::thread([this] {
    Begin(110, "a");
    for (int i = 0; i < 10; ++i) {
      Begin(130, "b");
      End(131);
    }
    End(145);
  }).join();
  Close(300);
  const RecordedWindow window(recorder_);
  EXPECT_EQ(window.num_unfinished_ranges(), 0);
  EXPECT_GT(window.num_lost_events(), 5);
  EXPECT_THAT(Events().front(), "a 10+35");
  EXPECT_THAT(Events().back(), HasSubstr("events lost: the thread's buffer was full"));
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
