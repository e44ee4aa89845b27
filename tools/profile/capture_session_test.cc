// Tests streams that programs cannot be made to write at will: dropped events, ends before starts, records
// that are none.

#include "tools/profile/capture_session.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

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
    BeThread(thread_, 11);
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

  std::vector<std::string> Rows(const std::string& sql) const { return Query(path_, sql); }
  std::vector<std::string> Ranges() const {
    return Rows(
        "SELECT text, start, end, globalTid & 0xFFFFFF FROM NVTX_EVENTS WHERE eventType IN (59, 60) "
        "ORDER BY start");
  }

  const std::string path_ = ::testing::TempDir() + "/" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".sqlite";
  const std::unique_ptr<SharedBuffer> buffer_ = SharedBuffer::Create(1 << 20);
  std::unique_ptr<CaptureSession> session_;
  StreamWriter names_{nullptr, 0}, thread_{nullptr, 0}, other_thread_{nullptr, 0};
};

TEST_F(CaptureSessionTest, RangeWhosePopOrPushWasDroppedDisturbsNoOther) {
  Push(thread_, 1, 0, "outer");
  Push(thread_, 2, 1, "lost its pop");
  Pop(thread_, 9, 0);
  Push(thread_, 10, 0, "lost its pop too");
  Push(thread_, 12, 0, "next");
  Pop(thread_, 13, 0);
  // The pops of pushes that were dropped are no other range's.
  Push(thread_, 21, 0, "last");
  Pop(thread_, 22, 1);
  Pop(thread_, 23, 0);
  Pop(thread_, 24, 0);
  EXPECT_EQ(session_->Finish().num_ranges, 5);
  EXPECT_THAT(Ranges(), ElementsAre("outer|1|9|11", "lost its pop|2|-|11", "lost its pop too|10|-|11",
                                    "next|12|13|11", "last|21|23|11"));
}

TEST_F(CaptureSessionTest, OpenRangesAreInTheFileAtAFlushAndGetTheirEndsLater) {
  BeThread(other_thread_, 12);
  Push(thread_, 1, 0, "training");
  StartOrEnd(thread_, RecordKind::kRangeStart, 2, 1);
  session_->Drain();
  session_->Flush();
  EXPECT_THAT(Ranges(), ElementsAre("training|1|-|11", "-|2|-|11"));
  Pop(thread_, 5, 0);
  StartOrEnd(other_thread_, RecordKind::kRangeEnd, 6, 1);
  EXPECT_EQ(session_->Finish().num_ranges, 2);
  EXPECT_THAT(Rows("SELECT start, end, endGlobalTid & 0xFFFFFF FROM NVTX_EVENTS ORDER BY start"),
              ElementsAre("1|5|-", "2|6|12"));
}

TEST_F(CaptureSessionTest, ReaderOfTheFileCostsNoRange) {
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
  EXPECT_THAT(Rows("SELECT COUNT(*), MIN(start), MAX(end) FROM NVTX_EVENTS WHERE end = start + 1"),
              ElementsAre("30000|1|60000"));
}

TEST_F(CaptureSessionTest, EndThatIsReadBeforeItsStartIsJoined) {
  BeThread(other_thread_, 12);
  StartOrEnd(thread_, RecordKind::kRangeEnd, 7, 1);
  StartOrEnd(other_thread_, RecordKind::kRangeStart, 3, 1);
  EXPECT_EQ(session_->Finish().num_ranges, 1);
  EXPECT_THAT(Rows("SELECT start, end, globalTid & 0xFFFFFF, endGlobalTid & 0xFFFFFF FROM NVTX_EVENTS"),
              ElementsAre("3|7|12|11"));
}

TEST_F(CaptureSessionTest, SecondEndOfARangeIsForgotten) {
  StartOrEnd(thread_, RecordKind::kRangeStart, 1, 1);
  StartOrEnd(thread_, RecordKind::kRangeEnd, 2, 1);
  StartOrEnd(thread_, RecordKind::kRangeEnd, 3, 1);
  for (int i = 0; i < 3; ++i) session_->Drain();
  // Were the end still waiting, it would be joined with this.
  StartOrEnd(thread_, RecordKind::kRangeStart, 4, 1);
  session_->Finish();
  EXPECT_THAT(Rows("SELECT start, end FROM NVTX_EVENTS ORDER BY start"), ElementsAre("1|2", "4|-"));
}

TEST_F(CaptureSessionTest, NextThreadOfAStreamDoesNotEndItsForerunnersRanges) {
  Push(thread_, 1, 0, "left open");
  BeThread(thread_, 12);
  Pop(thread_, 2, 0);
  Push(thread_, 3, 0, "of the next");
  Pop(thread_, 4, 0);
  session_->Finish();
  EXPECT_THAT(Ranges(), ElementsAre("left open|1|-|11", "of the next|3|4|12"));
}

TEST_F(CaptureSessionTest, NameIsFoundThatWasToldAfterTheLastLook) {
  session_->Drain();
  Append(names_, RecordKind::kString, NameRecord{{}, 0, 1, 0}, "cudaLaunchKernel_v7000");
  ApiRecord api{};
  api.start = api.end = kStart.monotonic_ns + 1;
  api.name = 1;
  Append(thread_, RecordKind::kApi, api);
  api.name = 2;
  Append(thread_, RecordKind::kApi, api);
  session_->Finish();
  EXPECT_THAT(Rows("SELECT value FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId"),
              ElementsAre("cudaLaunchKernel_v7000", "<unnamed>"));
}

// Each field is another number, and so is each column.
TEST_F(CaptureSessionTest, EveryNumberOfARecordIsInTheColumnOfItsName) {
  constexpr uint64_t kBegin = kStart.monotonic_ns;
  Append(names_, RecordKind::kString, NameRecord{{}, 0, 1, 0}, "_Z1fi");
  const DeviceSpan span{kBegin + 1, kBegin + 2, 3, 4, 5, 6, 7};
  Append(thread_, RecordKind::kApi, ApiRecord{{}, kBegin + 1, kBegin + 2, 1, 4, 5, 1, 6, 0});
  Append(thread_, RecordKind::kKernel, KernelRecord{{},           span,         8,  9,  1,  10, {11, 12, 13},
                                                    {14, 15, 16}, {17, 18, 19}, 20, 21, 22, 23, 24,
                                                    25,           26,           27, 2,  29, 30, {}});
  Append(thread_, RecordKind::kMemcpy, MemcpyRecord{{}, span, 8, 9, 10, 1, 2, true, 13, 14, 15, 16, 0});
  Append(thread_, RecordKind::kMemset, MemsetRecord{{}, span, 8, 9, 3});
  Append(thread_, RecordKind::kSynchronization, SynchronizationRecord{{}, span, 8, 9, 10});
  Append(thread_, RecordKind::kGraphNode, GraphNodeRecord{{}, kBegin + 1, 2, 3, 4, 1});
  Append(
      thread_, RecordKind::kDevice,
      DeviceRecord{
          {},           1,     2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, {20, 21, 22},
          {23, 24, 25}, {0xab}},
      "GPU");
  EXPECT_THAT(session_->Finish().problems, IsEmpty());
  const std::string of_device = "start, end, deviceId, contextId, streamId, correlationId, ";
  const std::string all_of_device = of_device + "graphNodeId, ";
  for (const auto& [columns, tables, row] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"start, end, eventClass, globalTid & 0xFFFFFF, correlationId, returnValue, "
            "globalTid >> 24 & 0xFFFFFF, value",
            "CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId", "1|2|1|4|5|6|10|_Z1fi"},
           {all_of_device +
                "gridId, localMemoryTotal, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, "
                "clusterX, clusterY, clusterZ, staticSharedMemory, dynamicSharedMemory, "
                "sharedMemoryExecuted, localMemoryPerThread, graphId, clusterSchedulingPolicy, "
                "maxPotentialClusterSize, maxActiveClusters, launchType, cacheConfig, "
                "sharedMemoryLimitConfig, globalPid >> 24 & 0xFFFFFF, m.value, d.value, s.value",
            "CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds AS m ON m.id = mangledName "
            "JOIN StringIds AS d ON d.id = demangledName JOIN StringIds AS s ON s.id = shortName",
            "1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16|17|18|19|20|21|22|23|24|25|26|27|3|29|30|10|_Z1fi|f(int)|"
            "f"},
           // Kinds of memory are counted otherwise than CUPTI's.
           {all_of_device + "bytes, copyCount, copyKind, srcKind, dstKind, srcDeviceId, dstDeviceId, "
                            "srcContextId, dstContextId",
            "CUPTI_ACTIVITY_KIND_MEMCPY", "1|2|3|4|5|6|7|8|9|10|0|1|13|14|15|16"},
           {all_of_device + "bytes, value, memKind", "CUPTI_ACTIVITY_KIND_MEMSET", "1|2|3|4|5|6|7|8|9|2"},
           {of_device + "eventSyncId, eventId, syncType", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            "1|2|3|4|5|6|8|9|10"},
           {"start, end, graphNodeId, originalGraphNodeId, globalTid & 0xFFFFFF", "CUDA_GRAPH_NODE_EVENTS",
            "1|1|2|3|4"},
           {"memoryBandwidth, totalMemory, clockRate, id, smCount, computeMajor, computeMinor, l2CacheSize, "
            "constantMemory, threadsPerWarp, asyncEngines, maxIPC, maxWarpsPerSm, maxBlocksPerSm, "
            "maxShmemPerSm, maxRegistersPerSm, maxRegistersPerBlock, maxShmemPerBlock, maxThreadsPerBlock, "
            "maxBlockDimX, maxBlockDimY, maxBlockDimZ, maxGridDimX, maxGridDimY, maxGridDimZ, cuDevice, "
            "smMajor, smMinor, name, uuid",
            "TARGET_INFO_GPU",
            "1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16|17|18|19|20|21|22|23|24|25|4|6|7|GPU|"
            "ab000000-0000-0000-0000-000000000000"},
           {"gpuId, cudaId, pid, numMultiprocessors", "TARGET_INFO_CUDA_DEVICE", "4|4|10|5"}}) {
    EXPECT_THAT(Rows("SELECT " + columns + " FROM " + tables), ElementsAre(row)) << tables;
  }
}

TEST_F(CaptureSessionTest, TheFileSaysWhatWasCapturedAndWhen) {
  Push(thread_, 5, 0, "range");
  session_->Finish();
  EXPECT_THAT(Rows("SELECT utcEpochNs, utcTime, systemClockNs FROM TARGET_INFO_SESSION_START_TIME"),
              ElementsAre("1700000000000000000|2023-11-14T22:13:20|1000000"));
  EXPECT_THAT(Rows("SELECT duration, startTime, stopTime FROM ANALYSIS_DETAILS"),
              ElementsAre("5|1000000|1000005"));
  EXPECT_THAT(Rows("SELECT pid, globalPid >> 24 & 0xFFFFFF, name FROM PROCESSES"), ElementsAre("10|10|"));
  EXPECT_THAT(Rows("SELECT name, value FROM META_DATA_CAPTURE"),
              ElementsAre("CAPTURE_EVENT_TYPE|NvtxEvents", "PROCESS_0:COMMAND|program", "PROCESS_0:PID|10",
                          "PROCESS_0:RANK|0"));
  EXPECT_THAT(Rows("SELECT value FROM META_DATA_EXPORT WHERE name LIKE 'EXPORT_SCHEMA_%'"),
              ElementsAre("3.28.1", "3", "28", "1"));
  EXPECT_THAT(Rows("SELECT timestamp, severity, text FROM DIAGNOSTIC_EVENT"),
              ElementsAre("5|1|NVTX only: no CUDA activity was recorded"));
}

TEST_F(CaptureSessionTest, RecordsThatAreNoneAreLeftOut) {
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
  EXPECT_THAT(Rows("SELECT text FROM DIAGNOSTIC_EVENT WHERE severity = 2"),
              ElementsAre("CUPTI is on holiday"));
}

}  // namespace
}  // namespace ott::profile
