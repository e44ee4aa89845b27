#include "ott/questions/kernels/profile_reader.h"

#include <sqlite3.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/questions/kernels/capture_for_test.h"

namespace ott::kernels {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Message(const std::string& path) { return std::string(ReadProfile(path).status().message()); }

TEST(ProfileReader, RegisteredStringsAreTexts) {
  const Profile profile = ReadProfile(CaptureSql()
                                          .Sql("INSERT INTO StringIds VALUES (1000, 'ncclAllReduce');"
                                               "INSERT INTO NVTX_EVENTS (start, end, eventType, textId, "
                                               "globalTid) VALUES (1, 2, 59, 1000, " +
                                               std::to_string(GlobalTid(1, 2)) + ");")
                                          .Write("registered.sqlite"))
                              .value();
  ASSERT_EQ(profile.num_ranges, 1);
  EXPECT_EQ(profile.labels[profile.threads[0].ranges[0].label].description.op, "ncclAllReduce");
  EXPECT_EQ(profile.threads[0].tid, 2);
  EXPECT_EQ(profile.processes[profile.threads[0].process].pid, 1);
}

TEST(ProfileReader, TablesAndColumnsMayBeMissing) {
  const Profile kernels_alone =
      ReadProfile(CaptureSql::WriteSql(
                      "kernels.sqlite",
                      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, correlationId, shortName);"
                      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 5, 3, 9);"))
          .value();
  ASSERT_EQ(kernels_alone.kernels.size(), 1);
  EXPECT_EQ(kernels_alone.kernels[0].device, -1);
  const Profile ranges_alone =
      ReadProfile(CaptureSql::WriteSql("ranges.sqlite",
                                       "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text);"
                                       "INSERT INTO NVTX_EVENTS VALUES (1, 5, 59, 3, 'a');"))
          .value();
  EXPECT_EQ(ranges_alone.num_ranges, 1);
}

TEST(ProfileReader, NvprofsSchemaIsRead) {
  const Profile profile = ReadProfile(CaptureSql::WriteSql("nvprof.sqlite", R"sql(
    CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT);
    INSERT INTO StringTable VALUES (1, 'volta_h884gemm'), (2, 'aten::mm, seq = 4');
    CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start, end, deviceId, streamId, correlationId, gridX, gridY,
        gridZ, blockX, blockY, blockZ, name);
    INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (100, 200, 0, 7, 3, 1, 2, 3, 4, 5, 6, 1);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, processId, threadId, correlationId);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 60, 77, -2, 3);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (flags, timestamp, id, objectId, name);
    INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES
        (2, 40, 8, x'4D000000FEFFFFFFFFFFFFFF', 2), (4, 70, 8, x'4D000000FEFFFFFFFFFFFFFF', 0);)sql"))
                              .value();
  EXPECT_EQ(profile.schema, "nvprof");
  ASSERT_EQ(profile.kernels.size(), 1);
  EXPECT_EQ(profile.kernel_names[profile.kernels[0].name], "volta_h884gemm");
  EXPECT_EQ(profile.geometries[0].block[2], 6);
  ASSERT_EQ(profile.threads.size(), 1);
  EXPECT_EQ(profile.launches[0].thread, 0);
  ASSERT_EQ(profile.threads[0].ranges.size(), 1);
  EXPECT_EQ(profile.threads[0].ranges[0].end, 70);
  EXPECT_EQ(profile.threads[0].ranges[0].sequence_number, 4);
}

TEST(ProfileReader, DevicesOfBothSchemasAreReadByColumn) {
  const std::string range =
      "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text);"
      "INSERT INTO NVTX_EVENTS VALUES (1, 5, 59, 3, 'a');"
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value); INSERT INTO StringIds VALUES (70, 'of a "
      "text');";
  const auto expect = [](const Profile::Device& device, const std::string& name, double unit) {
    EXPECT_EQ(device.sm_count, 11);
    EXPECT_EQ(device.clock_hz, 22 * unit);
    EXPECT_EQ(device.memory_bytes_per_second, 33 * unit);
    EXPECT_EQ(device.compute_major, 4);
    EXPECT_EQ(device.compute_minor, 5);
    EXPECT_EQ(device.name, name);
  };
  const Profile nsys =
      ReadProfile(CaptureSql::WriteSql(
                      "devices.sqlite",
                      range + "CREATE TABLE TARGET_INFO_GPU (cuDevice, name, computeMinor, computeMajor, "
                              "memoryBandwidth, clockRate, smCount, id);"
                              "INSERT INTO TARGET_INFO_GPU VALUES (2, 'GPU', 5, 4, 33, 22, 11, 8), "
                              "(NULL, 70, 5, 4, 33, 22, 11, 9), (3, 'bad', 5, 4, 33, 'fast', 11, 10);"))
          .value();
  ASSERT_EQ(nsys.devices.size(), 2);
  expect(nsys.devices.at(2), "GPU", 1);
  expect(nsys.devices.at(9), "of a text", 1);
  EXPECT_THAT(nsys.notes, Contains("1 rows of TARGET_INFO_GPU were left out: not what belongs there"));
  const Profile nvprof =
      ReadProfile(CaptureSql::WriteSql(
                      "nvprof_devices.sqlite",
                      "CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT); INSERT INTO "
                      "StringTable VALUES (70, 'V');"
                      "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start, end, correlationId, name);"
                      "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (1, 2, 3, 70);"
                      "CREATE TABLE CUPTI_ACTIVITY_KIND_DEVICE (name, computeCapabilityMinor, "
                      "computeCapabilityMajor, "
                      "globalMemoryBandwidth, coreClockRate, numMultiprocessors, id);"
                      "INSERT INTO CUPTI_ACTIVITY_KIND_DEVICE VALUES (70, 5, 4, 33, 22, 11, 6);"))
          .value();
  ASSERT_EQ(nvprof.devices.size(), 1);
  expect(nvprof.devices.at(6), "V", 1000);
}

TEST(ProfileReader, RowsOfOtherTypesAreCountedAndLeftOut) {
  CaptureSql sql;
  sql.Kernel(1, 2, 5, 10, 10, "k", 1)
      .Range(1, 2, 1, 9, "aten::mm")
      .Range(1, 2, 9, 1, "ends before it starts");
  sql.Sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 'wide';");
  sql.Sql("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) VALUES ('soon', 4, 59, 'a', 7);");
  const Profile profile = ReadProfile(sql.Write("types.sqlite")).value();
  EXPECT_TRUE(profile.kernels.empty());
  EXPECT_EQ(profile.num_ranges, 1);
  EXPECT_THAT(profile.notes,
              Contains("1 rows of CUPTI_ACTIVITY_KIND_KERNEL were left out: not what belongs there"));
  EXPECT_THAT(profile.notes, Contains("2 rows of NVTX_EVENTS were left out: not what belongs there"));
}

// "NAME START-END BYTES device DEVICE stream STREAM pid PID launched LAUNCH".
std::vector<std::string> TransfersOf(const Profile& profile) {
  std::vector<std::string> result;
  for (const Profile::Transfer& transfer : profile.transfers) {
    result.push_back(absl::StrCat(
        profile.transfer_names[transfer.name], " ", transfer.start, "-", transfer.end, " ", transfer.bytes,
        " device ", transfer.device, " stream ", transfer.stream, " pid ",
        profile.processes[transfer.process].pid,
        transfer.launch == kNone ? "" : absl::StrCat(" launched ", profile.launches[transfer.launch].start)));
  }
  return result;
}

TEST(ProfileReader, CopiesAndMemsetsAreReadWhereTheyAreAskedFor) {
  const std::string one = std::to_string(GlobalTid(1, 0)), two = std::to_string(GlobalTid(2, 0));
  const std::string path =
      CaptureSql()
          .Kernel(1, 1, 5, 10, 10, "k", 3)
          .Sql(
              "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id, label);"
              "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'Host-to-Device'), ('two', 'no number');"
              "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, correlationId, "
              "globalPid, bytes, copyKind);"
              "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end, correlationId, globalPid, bytes);"
              // The same correlation id in two processes, and that of a kernel.
              "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (30, 40, 1, 7, 4, " +
              one + ", 64, 1), (50, 50, 0, 8, 4, " + two + ", 32, 99), (60, 70, 0, 7, 3, " + one +
              ", 16, NULL);"
              // The first of two calls with one id counts.
              "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (21, 22, " +
              std::to_string(GlobalTid(1, 1)) + ", 4, 0), (23, 24, " + std::to_string(GlobalTid(2, 2)) +
              ", 4, 0), (25, 26, " + std::to_string(GlobalTid(1, 1)) +
              ", 4, 0);"
              "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (80, 90, NULL, " +
              one + ", 8);")
          .Write("transfers.sqlite");
  EXPECT_THAT(ReadProfile(path).value().transfers, IsEmpty());
  ReadProfileOptions options;
  options.transfers = true;
  const Profile profile = ReadProfile(path, options).value();
  EXPECT_THAT(TransfersOf(profile),
              ElementsAre("memcpy Host-to-Device 30-40 64 device 1 stream 7 pid 1 launched 21",
                          "memcpy 50-50 32 device 0 stream 8 pid 2 launched 23",
                          "memcpy 60-70 16 device 0 stream 7 pid 1 launched 5",
                          "memset 80-90 8 device -1 stream -1 pid 1"));
  EXPECT_EQ(profile.last_time, 90);
}

TEST(ProfileReader, CopiesThatAreNoneAreCountedAndLeftOut) {
  ReadProfileOptions options;
  options.transfers = true;
  const Profile profile =
      ReadProfile(
          CaptureSql()
              .Sql("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, bytes, copyKind);"
                   "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ('soon', 2, 3, 1), (NULL, 2, 3, 1), "
                   "(5, 4, 3, 1), (1, 2, 'many', 1), (1, 2, 3, 'up'), (1, 2, 3, 1);")
              .Write("bad_transfers.sqlite"),
          options)
          .value();
  EXPECT_THAT(TransfersOf(profile), ElementsAre("memcpy 1-2 3 device -1 stream -1 pid 0"));
  EXPECT_THAT(profile.notes,
              Contains("5 rows of CUPTI_ACTIVITY_KIND_MEMCPY were left out: not what belongs there"));
}

TEST(ProfileReader, FilesThatAreNoCapturesSaySo) {
  const std::string directory = testing::TempDir();
  EXPECT_THAT(Message(directory + "/nothing.sqlite"), HasSubstr("no such file"));
  EXPECT_THAT(Message(directory), HasSubstr("is a directory"));
  ASSERT_TRUE(WriteFileAtomically(directory + "/empty.sqlite", "").ok());
  EXPECT_THAT(Message(directory + "/empty.sqlite"), HasSubstr("is empty"));
  ASSERT_TRUE(WriteFileAtomically(directory + "/text.sqlite", std::string(5000, 'x')).ok());
  EXPECT_THAT(Message(directory + "/text.sqlite"), HasSubstr("is no SQLite database"));
  EXPECT_THAT(Message(CaptureSql::WriteSql("other.sqlite", "CREATE TABLE t (a);")),
              HasSubstr("has neither kernels"));
}

TEST(ProfileReader, ACutFileIsDamaged) {
  CaptureSql sql;
  for (int i = 0; i < 2000; ++i) sql.Kernel(1, 2, i, 10 + i, 10, "kernel", i);
  const std::string path = sql.Write("cut.sqlite");
  ASSERT_TRUE(ReadProfile(path).ok());
  const std::string contents = ReadFile(path).value();
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(contents.size() / 2)), 0);
  EXPECT_EQ(ReadProfile(path).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(path), HasSubstr("cut short"));
}

TEST(ProfileReader, ALockedFileSaysSo) {
  const std::string path = CaptureSql().Kernel(1, 2, 5, 10, 10, "k", 1).Write("locked.sqlite");
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &writer), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(writer, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(ReadProfile(path).status().code(), absl::StatusCode::kUnavailable);
  sqlite3_close(writer);
  EXPECT_TRUE(ReadProfile(path).ok());
}

TEST(ProfileReader, FilesThatOnlyTheLibraryCanReadAreReadAlike) {
  const std::string rows =
      "CREATE TABLE NVTX_EVENTS (eventType, globalTid, start, end, text, PRIMARY KEY (start, end))";
  const std::string values = "; INSERT INTO NVTX_EVENTS VALUES (59, 17, 1, 5, 'ä'), (59, 17, 2, 3, 'b');";
  const std::string write_ahead = CaptureSql::WriteSql("wal.sqlite", rows + values);
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(write_ahead.c_str(), &writer), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(writer, "PRAGMA journal_mode = WAL; DELETE FROM NVTX_EVENTS WHERE start = 2",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  // The row is gone in the log alone.
  EXPECT_EQ(ReadProfile(write_ahead)->num_ranges, 1);
  sqlite3_close(writer);
  for (const std::string& path :
       {CaptureSql::WriteSql("plain.sqlite", rows + values),
        CaptureSql::WriteSql("utf16.sqlite", "PRAGMA encoding = 'UTF-16le';" + rows + values),
        CaptureSql::WriteSql("without_rowid.sqlite", rows + " WITHOUT ROWID" + values),
        CaptureSql::WriteSql("view.sqlite",
                             "CREATE TABLE t (eventType, globalTid, start, end, text)"
                             "; CREATE VIEW NVTX_EVENTS AS SELECT * FROM t; INSERT INTO t VALUES (59, "
                             "17, 1, 5, 'ä'), (59, 17, 2, 3, 'b');"),
        CaptureSql::WriteSql(
            "default.sqlite",
            "CREATE TABLE NVTX_EVENTS (globalTid, start, end, text); INSERT INTO NVTX_EVENTS VALUES "
            "(17, 1, 5, 'ä'), (17, 2, 3, 'b'); ALTER TABLE NVTX_EVENTS ADD COLUMN eventType DEFAULT 59;")}) {
    const absl::StatusOr<Profile> profile = ReadProfile(path);
    ASSERT_TRUE(profile.ok()) << profile.status();
    ASSERT_EQ(profile->num_ranges, 2) << path;
    EXPECT_EQ(profile->labels[profile->threads[0].ranges[0].label].text, "ä") << path;
  }
}

TEST(ProfileReader, TextsLongerThanAPageAreRead) {
  const std::string text(100000, 'x');
  const Profile profile =
      ReadProfile(CaptureSql().Range(1, 2, 1, 9, text).Range(1, 2, 2, 8, "after").Write("long.sqlite"))
          .value();
  ASSERT_EQ(profile.num_ranges, 2);
  EXPECT_EQ(profile.labels[0].text, text);
  EXPECT_EQ(profile.labels[1].text, "after");
}

TEST(ProfileReader, RanksComeFromTheNameOrTheOrderOfProcesses) {
  CaptureSql sql;
  sql.Kernel(9, 1, 5, 10, 10, "k", 1).Kernel(4, 1, 5, 20, 10, "k", 1);
  const Profile by_pid = ReadProfile(sql.Write("two.sqlite")).value();
  EXPECT_EQ(by_pid.processes[by_pid.kernels[0].process].rank, 1);
  EXPECT_EQ(by_pid.processes[by_pid.kernels[1].process].rank, 0);
  const Profile by_name =
      ReadProfile(CaptureSql().Kernel(9, 1, 5, 10, 10, "k", 1).Write("run.rank_00003.sqlite")).value();
  EXPECT_EQ(by_name.processes[by_name.kernels[0].process].rank, 3);
}

}  // namespace
}  // namespace ott::kernels
