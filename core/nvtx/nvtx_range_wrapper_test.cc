#include "ott/core/nvtx/nvtx_range_wrapper.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/events/recorded_window.h"
#include "ott/core/nvtx/nvtx_injection_for_test.h"

namespace ott {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

int num_synchronized = 0;
absl::Status CountSynchronization() {
  ++num_synchronized;
  return absl::OkStatus();
}

absl::Status NoDevice() { return absl::FailedPreconditionError("no device in this test"); }

class NvtxRangeWrapperTest : public ::testing::Test {
 protected:
  void SetUp() override { Take(); }

  void Enable(const NvtxRangeWrapper::Options& options = {}) {
    ASSERT_EQ(wrapper_.Enable(options), absl::OkStatus());
  }

  static NvtxRangeWrapper::Options Tracking() {
    NvtxRangeWrapper::Options options;
    options.keep_track_of_range_order = true;
    return options;
  }

  NvtxRangeWrapper wrapper_{NvtxRangeWrapper::Environment{&CountSynchronization}};
};

TEST_F(NvtxRangeWrapperTest, SendsNothingUntilEnabled) {
  wrapper_.Push("early");
  wrapper_.Mark("early");
  wrapper_.Pop("other");
  static NvtxDomain domain("early");
  static NvtxName name(domain, "early");
  wrapper_.Push(name, NvtxAttributes());
  wrapper_.Mark(name);
  wrapper_.NameCategory(7, "early");
  { const NvtxRangeWrapper::Scope scope(wrapper_, "early"); }
  EXPECT_THAT(Received(), IsEmpty());
}

TEST_F(NvtxRangeWrapperTest, SendsRangesAndMarksInAnOrderThatIsNotCheckedUnlessAskedFor) {
  Enable();
  wrapper_.Push("outer");
  wrapper_.Push(std::string("inner"));
  wrapper_.Mark("now");
  wrapper_.Pop();
  wrapper_.Pop("another");
  wrapper_.Pop();
  EXPECT_THAT(Received(), ElementsAre("push outer", "push inner", "mark now", "pop", "pop", "pop"));
  EXPECT_EQ(wrapper_.num_misuses(), 0);
}

TEST_F(NvtxRangeWrapperTest, RangesBelongToTheirThread) {
  Enable(Tracking());
  wrapper_.Push("mine");
  std::thread([this] {
    wrapper_.Push("yours");
    wrapper_.Pop("yours");
  }).join();
  wrapper_.Pop("mine");
  const std::vector<NvtxEvent> events = Take();
  ASSERT_EQ(events.size(), 4);
  EXPECT_EQ(events[0].thread, internal::ThisThreadId());
  EXPECT_NE(events[1].thread, events[0].thread);
  EXPECT_EQ(events[2].thread, events[1].thread);
  EXPECT_EQ(events[3].thread, events[0].thread);
  EXPECT_EQ(wrapper_.num_misuses(), 0);
}

TEST_F(NvtxRangeWrapperTest, SynchronizesTheDeviceOnlyWhereAskedTo) {
  static NvtxDomain domain("synchronized");
  static NvtxName name(domain, "named");
  for (const int asked : {0, 1, 2, 3}) {
    NvtxRangeWrapper wrapper{NvtxRangeWrapper::Environment{&CountSynchronization}};
    NvtxRangeWrapper::Options options;
    options.sync_on_push = (asked & 1) != 0;
    options.sync_on_pop = (asked & 2) != 0;
    ASSERT_TRUE(wrapper.Enable(options).ok());
    num_synchronized = 0;
    wrapper.Push("a");
    wrapper.Push(name);
    wrapper.Push("b", NvtxAttributes());
    EXPECT_EQ(num_synchronized, options.sync_on_push ? 3 : 0);
    num_synchronized = 0;
    wrapper.Pop();
    wrapper.Pop(name);
    EXPECT_EQ(num_synchronized, options.sync_on_pop ? 2 : 0);
    wrapper.Disable();
    Take();
    wrapper.Push("a");
    wrapper.Pop();
    EXPECT_EQ(num_synchronized, options.sync_on_pop ? 2 : 0);
    EXPECT_THAT(Received(), IsEmpty());
    EXPECT_EQ(wrapper.Enable({}), absl::OkStatus());
  }
}

TEST_F(NvtxRangeWrapperTest, EnablingFailsWhereTheDeviceCannotBeSynchronized) {
  NvtxRangeWrapper wrapper{NvtxRangeWrapper::Environment{&NoDevice}};
  NvtxRangeWrapper::Options options;
  for (bool NvtxRangeWrapper::Options::*const sync :
       {&NvtxRangeWrapper::Options::sync_on_push, &NvtxRangeWrapper::Options::sync_on_pop}) {
    options = {};
    options.*sync = true;
    EXPECT_EQ(wrapper.Enable(options).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_FALSE(wrapper.enabled());
  }
}

TEST_F(NvtxRangeWrapperTest, EachMisuseIsCountedAndNamesTheRangesThatAreOpen) {
  Enable(Tracking());
  wrapper_.FinishIter();
  const std::string place = ".*nvtx_range_wrapper_test.cc:[0-9]+";
  const std::string a = "\"a\", pushed at " + place, b = "\"b\", pushed at " + place;
  struct Case {
    std::function<void()> misuse;
    std::string says;
    std::vector<std::string> sends;
  };
  for (const auto& [misuse, says, sends] : std::vector<Case>{
           {[&] { wrapper_.Pop(); }, "Pop\\(\\) at " + place + ".*no range is open on this thread", {}},
           {[&] {
              wrapper_.Push("a");
              wrapper_.Push("b");
              wrapper_.Pop("a");
              wrapper_.Pop();
            },
            "Pop\\(\"a\"\\) at " + place + " on thread [0-9]+.*\n.*" + b + "\n.*" + a,
            {"push a", "push b", "pop", "pop"}},
           {[&] {
              const NvtxRangeWrapper::Scope scope(wrapper_, "c");
              wrapper_.Push("b");
            },
            "Pop\\(\"c\"\\) at the end of its scope on thread [0-9]+.*\n.*" + b,
            {"push c", "push b", "pop"}},
           {[&] { std::thread([&] { wrapper_.Push("b"); }).join(); },
            "thread [0-9]+ ends with open ranges.*\n  " + b,
            {"push b"}},
           {[&] { wrapper_.FinishIter(); }, "FinishIter\\(\\) at " + place + ".*\n.*\"c\", pushed", {}}}) {
    const int64_t before = wrapper_.num_misuses();
    ::testing::internal::CaptureStderr();
    misuse();
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ContainsRegex(says));
    EXPECT_EQ(wrapper_.num_misuses(), before + 1);
    EXPECT_EQ(Received(), sends);
  }
}

using NvtxRangeWrapperDeathTest = NvtxRangeWrapperTest;

TEST_F(NvtxRangeWrapperDeathTest, MisuseAbortsWhereAskedTo) {
  NvtxRangeWrapper::Options options;
  options.keep_track_of_range_order = true;
  options.on_misuse = OnMisuse::kAbort;
  Enable(options);
  EXPECT_DEATH(wrapper_.Pop("x"), "Pop\\(\"x\"\\) at ");
}

TEST_F(NvtxRangeWrapperTest, EnablingTwiceIsRefusedNamingBothPlaces) {
  Enable();
  const absl::Status status = wrapper_.Enable({});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex("nvtx_range_wrapper_test.cc:[0-9]+.*nvtx_range_wrapper_test.cc:[0-9]+"));
}

TEST_F(NvtxRangeWrapperTest, AttributesAreSentAlongWithAPayloadOfAnyType) {
  Enable();
  NvtxAttributes attributes;
  attributes.category = 7;
  attributes.color = 0xFF76B900;
  wrapper_.NameCategory(7, "kernels");
  wrapper_.Push("colored", attributes);
  wrapper_.Pop("colored");
  EXPECT_THAT(Received(), ElementsAre("name category kernels category 7",
                                      "push colored category 7 color 4285970688", "pop"));
  for (const NvtxPayload& payload :
       {NvtxPayload(uint64_t{1}), NvtxPayload(int64_t{-2}), NvtxPayload(0.25), NvtxPayload(uint32_t{3}),
        NvtxPayload(int32_t{-4}), NvtxPayload(0.75f)}) {
    NvtxAttributes of_mark;
    of_mark.payload = payload;
    wrapper_.Mark("m", of_mark);
  }
  EXPECT_THAT(Received(), ElementsAre("mark m uint64 1", "mark m int64 -2", "mark m double 0.250000",
                                      "mark m uint32 3", "mark m int32 -4", "mark m float 0.750000"));
}

TEST_F(NvtxRangeWrapperTest, DomainsAndNamesAreRegisteredOnceEach) {
  Enable(Tracking());
  static NvtxDomain domain("trainer");
  static NvtxName name(domain, "step");
  for (int i = 0; i < 2; ++i) {
    wrapper_.Push(name);
    wrapper_.Pop(name);
  }
  wrapper_.NameCategory(domain, 3, "io");
  { const NvtxRangeWrapper::Scope scope(wrapper_, name); }
  NvtxAttributes of_io;
  of_io.category = 3;
  wrapper_.Push(name, of_io);
  { const NvtxRangeWrapper::Scope scope(wrapper_, name, of_io); }
  wrapper_.Mark(name, of_io);
  wrapper_.Pop(name);
  EXPECT_THAT(Received(),
              ElementsAre("create domain trainer", "register string step in trainer", "push #step in trainer",
                          "pop in trainer", "push #step in trainer", "pop in trainer",
                          "name category io in trainer category 3", "push #step in trainer", "pop in trainer",
                          "push #step in trainer category 3", "push #step in trainer category 3",
                          "pop in trainer", "mark #step in trainer category 3", "pop in trainer"));
  EXPECT_EQ(wrapper_.num_misuses(), 0);
}

TEST_F(NvtxRangeWrapperTest, DomainsNestEachByItself) {
  Enable(Tracking());
  static NvtxDomain domain("other");
  static NvtxName name(domain, "theirs");
  wrapper_.Push("ours");
  wrapper_.Push(name);
  wrapper_.Pop("ours");
  EXPECT_EQ(wrapper_.num_misuses(), 0);
  ::testing::internal::CaptureStderr();
  wrapper_.Pop("ours");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("\"theirs\" of domain \"other\", pushed at "));
  EXPECT_EQ(wrapper_.num_misuses(), 1);
  wrapper_.Pop(name);
  EXPECT_EQ(wrapper_.num_misuses(), 1);
}

TEST_F(NvtxRangeWrapperTest, OptionsComeFromTheConfiguration) {
  NvtxConfig config;
  config.set_sync_on_pop(true);
  for (const bool is_other : {false, true}) {
    const NvtxRangeWrapper::Options options = NvtxRangeWrapper::FromConfig(config);
    EXPECT_EQ(options.sync_on_push, is_other);
    EXPECT_EQ(options.sync_on_pop, !is_other);
    EXPECT_EQ(options.keep_track_of_range_order, is_other);
    EXPECT_EQ(options.on_misuse, is_other ? OnMisuse::kAbort : OnMisuse::kLogAndCount);
    config.set_sync_on_push(true);
    config.set_sync_on_pop(false);
    config.set_keep_track_of_range_order(true);
    config.set_on_misuse(MISUSE_POLICY_ABORT);
  }
}

TEST_F(NvtxRangeWrapperTest, AProfilersWindowGetsRangesAndMarksAlsoWhileOff) {
  static NvtxDomain domain("window");
  static NvtxName name(domain, "theirs");
  EventRecorder recorder(Clock::Steady());
  recorder.Open();
  wrapper_.RecordInto(&recorder);
  wrapper_.Push("outer");
  wrapper_.Push(name);
  wrapper_.Mark("now");
  wrapper_.Pop("outer");
  wrapper_.Pop(name);
  wrapper_.RecordInto(nullptr);
  wrapper_.Mark("after");
  recorder.Close();
  std::vector<std::string> names;
  const RecordedWindow window(recorder);
  window.Visit([&](const TraceEvent& event) { names.emplace_back(event.name); });
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("outer", "window: theirs", "now"));
  EXPECT_EQ(window.num_unfinished_ranges() + window.num_ends_without_begin(), 0);
  EXPECT_THAT(Received(), IsEmpty());
}

TEST_F(NvtxRangeWrapperTest, OfThisProcessIsReachedThroughTheMacro) {
  ASSERT_TRUE(NvtxRangeWrapper::Get().Enable({}).ok());
  {
    OTT_NVTX_SCOPE("macro");
    OTT_NVTX_SCOPE("inside");
  }
  EXPECT_THAT(Received(), ElementsAre("register string macro", "push #macro", "register string inside",
                                      "push #inside", "pop", "pop"));
}

}  // namespace
}  // namespace ott
