#include "ott/core/nvtx/nvtx_range_wrapper.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/nvtx/nvtx_injection_for_test.h"

namespace ott {
namespace {

using ::testing::AllOf;
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

  static std::vector<NvtxEvent> Take() {
    // NVTX loads the library at its first use.
    void* const injection = dlopen(std::getenv("NVTX_INJECTION64_PATH"), RTLD_NOW);
    if (injection == nullptr) ADD_FAILURE() << dlerror();
    return reinterpret_cast<TakeNvtxEventsFunction*>(dlsym(injection, "TakeNvtxEvents"))();
  }

  // "+name" for a push, "-" for a pop, "!name" for a mark.
  static std::vector<std::string> Received() {
    std::vector<std::string> result;
    for (const NvtxEvent& event : Take()) {
      const char* kind = event.kind == NvtxEvent::Kind::kPush  ? "+"
                         : event.kind == NvtxEvent::Kind::kPop ? "-"
                                                               : "!";
      result.push_back(kind + event.name);
    }
    return result;
  }

  void Enable(const NvtxRangeWrapper::Options& options = {}) {
    const absl::Status status = wrapper_.Enable(options);
    ASSERT_TRUE(status.ok()) << status;
  }

  static NvtxRangeWrapper::Options Tracking() {
    NvtxRangeWrapper::Options options;
    options.keep_track_of_range_order = true;
    options.on_misuse = OnMisuse::kLogAndCount;
    return options;
  }

  NvtxRangeWrapper wrapper_{NvtxRangeWrapper::Environment{&CountSynchronization}};
};

TEST_F(NvtxRangeWrapperTest, SendsNothingUntilEnabled) {
  wrapper_.Push("early");
  wrapper_.Mark("early");
  wrapper_.Pop("other");
  { const NvtxRangeWrapper::Scope scope(wrapper_, "early"); }
  EXPECT_THAT(Received(), IsEmpty());
}

TEST_F(NvtxRangeWrapperTest, SendsRangesAndMarksInOrder) {
  Enable();
  wrapper_.Push("outer");
  wrapper_.Push(std::string("inner"));
  wrapper_.Mark("now");
  wrapper_.Pop();
  wrapper_.Pop("outer");
  EXPECT_THAT(Received(), ElementsAre("+outer", "+inner", "!now", "-", "-"));
}

TEST_F(NvtxRangeWrapperTest, ScopesEndTheirRange) {
  Enable(Tracking());
  {
    const NvtxRangeWrapper::Scope outer(wrapper_, "outer");
    const NvtxRangeWrapper::Scope inner(wrapper_, "inner");
  }
  EXPECT_THAT(Received(), ElementsAre("+outer", "+inner", "-", "-"));
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
  NvtxRangeWrapper::Options options;
  options.sync_on_push = true;
  Enable(options);
  num_synchronized = 0;
  wrapper_.Push("a");
  EXPECT_EQ(num_synchronized, 1);
  wrapper_.Pop();
  EXPECT_EQ(num_synchronized, 1);
}

TEST_F(NvtxRangeWrapperTest, EnablingFailsWhereTheDeviceCannotBeSynchronized) {
  NvtxRangeWrapper wrapper{NvtxRangeWrapper::Environment{&NoDevice}};
  NvtxRangeWrapper::Options options;
  options.sync_on_pop = true;
  EXPECT_EQ(wrapper.Enable(options).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(wrapper.enabled());
}

TEST_F(NvtxRangeWrapperTest, APopOfAnotherNameShowsTheStack) {
  Enable(Tracking());
  ::testing::internal::CaptureStderr();
  wrapper_.Push("outer");
  wrapper_.Push("inner");
  wrapper_.Pop("outer");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      log, AllOf(ContainsRegex("Pop\\(\"outer\"\\) at .*nvtx_range_wrapper_test.cc:[0-9]+ on thread [0-9]+"),
                 ContainsRegex("\"inner\", pushed at .*:[0-9]+\n.*\"outer\", pushed at .*:[0-9]+")));
  EXPECT_EQ(wrapper_.num_misuses(), 1);
  EXPECT_THAT(Received(), ElementsAre("+outer", "+inner", "-"));
}

TEST_F(NvtxRangeWrapperTest, APopOnAnEmptyStackIsNotSent) {
  Enable(Tracking());
  ::testing::internal::CaptureStderr();
  wrapper_.Pop();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("no range is open on this thread"));
  EXPECT_EQ(wrapper_.num_misuses(), 1);
  EXPECT_THAT(Received(), IsEmpty());
}

TEST_F(NvtxRangeWrapperTest, RangesLeftOpenAtThreadExitAreNamed) {
  Enable(Tracking());
  ::testing::internal::CaptureStderr();
  std::thread([this] { wrapper_.Push("left open"); }).join();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ContainsRegex("thread [0-9]+ ends with open ranges.*\n  \"left open\", pushed at .*:[0-9]+"));
  EXPECT_EQ(wrapper_.num_misuses(), 1);
}

TEST_F(NvtxRangeWrapperTest, RangesLeftOpenAtFinishIterAreNamed) {
  Enable(Tracking());
  wrapper_.FinishIter();
  EXPECT_EQ(wrapper_.num_misuses(), 0);
  wrapper_.Push("left open");
  ::testing::internal::CaptureStderr();
  wrapper_.FinishIter();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("FinishIter() at "), HasSubstr("\"left open\", pushed at ")));
  EXPECT_EQ(wrapper_.num_misuses(), 1);
  wrapper_.Pop();
}

TEST_F(NvtxRangeWrapperTest, OrderIsNotCheckedUnlessAskedFor) {
  Enable();
  wrapper_.Push("a");
  wrapper_.Pop("b");
  wrapper_.Pop();
  EXPECT_THAT(Received(), ElementsAre("+a", "-", "-"));
  EXPECT_EQ(wrapper_.num_misuses(), 0);
}

using NvtxRangeWrapperDeathTest = NvtxRangeWrapperTest;

TEST_F(NvtxRangeWrapperDeathTest, MisuseAbortsByDefault) {
  NvtxRangeWrapper::Options options;
  options.keep_track_of_range_order = true;
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

TEST_F(NvtxRangeWrapperTest, OptionsComeFromTheConfiguration) {
  NvtxConfig config;
  config.set_sync_on_pop(true);
  config.set_keep_track_of_range_order(true);
  const NvtxRangeWrapper::Options options = NvtxRangeWrapper::FromConfig(config);
  EXPECT_FALSE(options.sync_on_push);
  EXPECT_TRUE(options.sync_on_pop);
  EXPECT_TRUE(options.keep_track_of_range_order);
}

TEST_F(NvtxRangeWrapperTest, OfThisProcessIsReachedThroughTheMacro) {
  ASSERT_TRUE(NvtxRangeWrapper::Get().Enable({}).ok());
  {
    OTT_NVTX_SCOPE("macro");
    OTT_NVTX_SCOPE("inside");
  }
  EXPECT_THAT(Received(), ElementsAre("+macro", "+inside", "-", "-"));
}

}  // namespace
}  // namespace ott
