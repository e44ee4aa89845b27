// Tests streams that programs cannot be made to write at will: dropped events, ends before starts, records
// that are none.

#include "tools/profile/capture_session.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sqlite3.h"
#include "tools/profile/capture_for_test.h"

namespace ott::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr SessionStart kStart = {1'000'000, 1'700'000'000'000'000'000};

class CaptureSessionTest : public ::testing::Test {
 protected:
  CaptureSessionTest() {
    std::filesystem::remove(path_);
    buffer_->header().pid = 10;
    std::string error;
    auto attached = SharedBuffer::Attach(dup(buffer_->fd()), &error);
    auto file = CaptureFile::Create(path_);
    EXPECT_TRUE(attached != nullptr && file.ok()) << error << file.status();
    session_ =
        std::make_unique<CaptureSession>(std::move(attached), *std::move(file), path_, kStart, "program");
    names_ = AddStream();
    thread_ = AddStream();
    other_thread_ = AddStream();
  }

  StreamWriter AddStream() { return StreamWriter(buffer_.get(), buffer_->AddStream()); }

  template <typename T>
  static void Append(StreamWriter& stream, RecordKind kind, T record, const std::string& text = "") {
    record.record.size = static_cast<uint32_t>(sizeof(T) + text.size());
    record.record.kind = kind;
    char* const place = stream.Reserve(record.record.size);
    ASSERT_NE(place, nullptr);
    std::memcpy(place, &record, sizeof(T));
    std::memcpy(place + sizeof(T), text.data(), text.size());
    stream.Commit(record.record.size);
  }

  static void Push(StreamWriter& stream, uint64_t time, uint32_t level, const std::string& name) {
    NvtxEventRecord record{{}, kStart.monotonic_ns + time, 0, level};
    record.record.has = NvtxEventRecord::kText;
    Append(stream, RecordKind::kPush, record, name);
  }
  static void Pop(StreamWriter& stream, uint64_t time, uint32_t level) {
    Append(stream, RecordKind::kPop, NvtxEventRecord{{}, kStart.monotonic_ns + time, 0, level});
  }
  static void StartOrEnd(StreamWriter& stream, RecordKind kind, uint64_t time, uint64_t range) {
    struct {
      Record record;
      uint64_t time;
      uint32_t domain, level;
      EventAttributes attributes;
    } record{};
    record.record.has = NvtxEventRecord::kAttributes;
    record.time = kStart.monotonic_ns + time;
    record.attributes.range = range;
    Append(stream, kind, record);
  }
  static void BeThread(StreamWriter& stream, uint32_t thread) {
    Append(stream, RecordKind::kThread, NameRecord{{}, 0, thread, 0}, "thread");
  }

  std::vector<std::string> Ranges() const {
    return Query(path_,
                 "SELECT text, start, end, globalTid & 0xFFFFFF FROM NVTX_EVENTS WHERE eventType IN (59, 60) "
                 "ORDER BY start");
  }

  const std::string path_ = ::testing::TempDir() + "/" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".sqlite";
  const std::unique_ptr<SharedBuffer> buffer_ = SharedBuffer::Create(1 << 20);
  std::unique_ptr<CaptureSession> session_;
  StreamWriter names_{nullptr, 0}, thread_{nullptr, 0}, other_thread_{nullptr, 0};
};

TEST_F(CaptureSessionTest, RangeWhosePopWasDroppedEndsNowhereAndDisturbsNoOther) {
  BeThread(thread_, 11);
  Push(thread_, 1, 0, "outer");
  Push(thread_, 2, 1, "lost its pop");
  Pop(thread_, 9, 0);
  Push(thread_, 10, 0, "lost its pop too");
  Push(thread_, 12, 0, "next");
  Pop(thread_, 13, 0);
  EXPECT_EQ(session_->Finish().num_ranges, 4);
  EXPECT_THAT(Ranges(), ElementsAre("outer|1|9|11", "lost its pop|2|-|11", "lost its pop too|10|-|11",
                                    "next|12|13|11"));
}

TEST_F(CaptureSessionTest, PopOfADroppedPushIsNoRangesEnd) {
  BeThread(thread_, 11);
  Push(thread_, 1, 0, "outer");
  Pop(thread_, 2, 1);
  Pop(thread_, 3, 0);
  Pop(thread_, 4, 0);
  session_->Finish();
  EXPECT_THAT(Ranges(), ElementsAre("outer|1|3|11"));
}

TEST_F(CaptureSessionTest, OpenRangeIsInTheFileAtAFlushAndGetsItsEndLater) {
  BeThread(thread_, 11);
  Push(thread_, 1, 0, "training");
  session_->Drain();
  session_->Flush();
  EXPECT_THAT(Ranges(), ElementsAre("training|1|-|11"));
  Pop(thread_, 5, 0);
  EXPECT_EQ(session_->Finish().num_ranges, 1);
  EXPECT_THAT(Ranges(), ElementsAre("training|1|5|11"));
}

TEST_F(CaptureSessionTest, ReaderOfTheFileCostsNoRange) {
  BeThread(thread_, 11);
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &reader, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_exec(reader, "BEGIN; SELECT COUNT(*) FROM NVTX_EVENTS", nullptr, nullptr, nullptr);
  // More than a flush's rows, in parts that the buffer can hold.
  uint64_t time = 0;
  for (int part = 0; part < 3; ++part) {
    for (int i = 0; i < 10'000; ++i) {
      Push(thread_, ++time, 0, "range");
      Pop(thread_, ++time, 0);
    }
    while (session_->Drain()) {
    }
  }
  sqlite3_close(reader);
  const CaptureSummary summary = session_->Finish();
  EXPECT_EQ(summary.num_lost_rows, 0);
  EXPECT_THAT(Query(path_, "SELECT COUNT(*), MIN(start), MAX(end) FROM NVTX_EVENTS WHERE end = start + 1"),
              ElementsAre("30000|1|60000"));
}

TEST_F(CaptureSessionTest, EndThatIsReadBeforeItsStartIsJoined) {
  BeThread(thread_, 11);
  BeThread(other_thread_, 12);
  StartOrEnd(thread_, RecordKind::kRangeEnd, 7, 1);
  StartOrEnd(other_thread_, RecordKind::kRangeStart, 3, 1);
  EXPECT_EQ(session_->Finish().num_ranges, 1);
  EXPECT_THAT(
      Query(path_, "SELECT start, end, globalTid & 0xFFFFFF, endGlobalTid & 0xFFFFFF FROM NVTX_EVENTS"),
      ElementsAre("3|7|12|11"));
}

TEST_F(CaptureSessionTest, SecondEndOfARangeIsForgotten) {
  BeThread(thread_, 11);
  StartOrEnd(thread_, RecordKind::kRangeStart, 1, 1);
  StartOrEnd(thread_, RecordKind::kRangeEnd, 2, 1);
  StartOrEnd(thread_, RecordKind::kRangeEnd, 3, 1);
  for (int i = 0; i < 3; ++i) session_->Drain();
  // Were the end still waiting, it would be joined with this.
  StartOrEnd(thread_, RecordKind::kRangeStart, 4, 1);
  session_->Finish();
  EXPECT_THAT(Query(path_, "SELECT start, end FROM NVTX_EVENTS ORDER BY start"), ElementsAre("1|2", "4|-"));
}

TEST_F(CaptureSessionTest, NextThreadOfAStreamDoesNotEndItsForerunnersRanges) {
  BeThread(thread_, 11);
  Push(thread_, 1, 0, "left open");
  BeThread(thread_, 12);
  Pop(thread_, 2, 0);
  Push(thread_, 3, 0, "of the next");
  Pop(thread_, 4, 0);
  session_->Finish();
  EXPECT_THAT(Ranges(), ElementsAre("left open|1|-|11", "of the next|3|4|12"));
}

TEST_F(CaptureSessionTest, NameIsFoundThatWasToldAfterTheLastLook) {
  BeThread(thread_, 11);
  session_->Drain();
  Append(names_, RecordKind::kString, NameRecord{{}, 0, 1, 0}, "cudaLaunchKernel_v7000");
  ApiRecord api{};
  api.start = api.end = kStart.monotonic_ns + 1;
  api.name = 1;
  Append(thread_, RecordKind::kApi, api);
  api.name = 2;
  Append(thread_, RecordKind::kApi, api);
  session_->Finish();
  EXPECT_THAT(Query(path_, "SELECT value FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId"),
              ElementsAre("cudaLaunchKernel_v7000", "<unnamed>"));
}

TEST_F(CaptureSessionTest, RecordsThatAreNoneAreLeftOut) {
  BeThread(thread_, 11);
  Append(thread_, static_cast<RecordKind>(9999), NameRecord{});
  Append(thread_, RecordKind::kKernel, NameRecord{});
  Append(thread_, RecordKind::kPush, NvtxEventRecord{{}, 0, 0xffffffff, 0});
  Append(thread_, RecordKind::kPush, NvtxEventRecord{{}, 0, 0, 0xffffffff});
  Append(names_, RecordKind::kString, NameRecord{{}, 0, 0xffffffff, 0}, "name");
  NvtxEventRecord without_attributes{{}, 0, 0, 0};
  without_attributes.record.has = NvtxEventRecord::kAttributes;
  Append(thread_, RecordKind::kPush, without_attributes);
  Push(thread_, 1, 0, "good");
  Pop(thread_, 2, 0);
  EXPECT_THAT(session_->Finish().problems, IsEmpty());
  EXPECT_THAT(Ranges(), ElementsAre("good|1|2|11"));
}

TEST_F(CaptureSessionTest, BufferThatWasOverwrittenIsAProblem) {
  BeThread(thread_, 11);
  Push(thread_, 1, 0, "good");
  session_->Drain();
  Pop(thread_, 2, 0);
  std::memset(buffer_->chunk(1)->data + sizeof(NameRecord) + 8, 0xff, 1024);
  EXPECT_THAT(session_->Finish().problems, ElementsAre(HasSubstr("wrote over its capture buffer")));
  EXPECT_THAT(Ranges(), ElementsAre("good|1|-|11"));
}

TEST_F(CaptureSessionTest, ProblemOfTheProcessIsInTheSummaryAndTheFile) {
  Append(names_, RecordKind::kProblem, NameRecord{}, "CUPTI is on holiday");
  EXPECT_THAT(session_->Finish().problems, ElementsAre("CUPTI is on holiday"));
  EXPECT_THAT(Query(path_, "SELECT text FROM DIAGNOSTIC_EVENT WHERE severity = 2"),
              ElementsAre("CUPTI is on holiday"));
}

}  // namespace
}  // namespace ott::profile
