#include "ott/questions/kernels/profile_reader.h"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/questions/kernels/capture_for_test.h"

namespace ott::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const std::string& path) { return std::string(ReadProfile(path).status().message()); }

// A row of a table: its columns that are no NULL, of which some have a text.
using Row = std::map<std::string, int64_t>;
constexpr int64_t kText = -99;

constexpr char kKernels[] = "CUPTI_ACTIVITY_KIND_KERNEL", kCopies[] = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr char kMemsets[] = "CUPTI_ACTIVITY_KIND_MEMSET", kCalls[] = "CUPTI_ACTIVITY_KIND_RUNTIME";

int64_t ValueOf(const Row& row, const std::string& column, int64_t otherwise) {
  const auto found = row.find(column);
  return found == row.end() ? otherwise : found->second;
}

// Makes tables in which any column may be missing, and any value be NULL or something else than it should.
class AnyTables {
 public:
  struct Column {
    std::string name;
    std::vector<int64_t> values;
    bool is_needed = false, may_be_text = false;
  };

  explicit AnyTables(unsigned seed) : random_(seed) {}

  bool OneIn(unsigned n) { return random_() % n == 0; }

  bool Has(const std::string& table, const std::vector<std::string>& columns) const {
    return std::all_of(columns.begin(), columns.end(), [&](const std::string& column) {
      return has_.count({table, column}) > 0;
    });
  }

  // Returns the rows that can be used.
  std::vector<Row> Add(const std::string& table, const std::vector<Column>& columns) {
    absl::StrAppend(&sql, "CREATE TABLE ", table, " (other");
    std::vector<Column> there;
    for (const Column& column : columns) {
      if (OneIn(20)) continue;
      there.push_back(column);
      absl::StrAppend(&sql, ", ", column.name);
      has_.insert({table, column.name});
    }
    absl::StrAppend(&sql, ");");
    std::vector<Row> rows;
    for (size_t i = random_() % 8; i > 0; --i) {
      Row row;
      bool is_good = true;
      absl::StrAppend(&sql, "INSERT INTO ", table, " VALUES (NULL");
      for (const Column& column : there) {
        const bool is_text = OneIn(column.may_be_text ? 2 : 60);
        // Who has a node is of a graph, whatever its number.
        is_good &= !is_text || column.may_be_text ||
                   (column.name == "graphId" && ValueOf(row, "graphNodeId", 0) != 0);
        const bool is_null = !is_text && (column.values.empty() || OneIn(column.is_needed ? 30 : 4));
        if (!is_null) row[column.name] = is_text ? kText : column.values[random_() % column.values.size()];
        absl::StrAppend(&sql, ", ", is_text ? "'text'" : is_null ? "NULL" : absl::StrCat(row[column.name]));
      }
      absl::StrAppend(&sql, ");");
      for (const Column& column : columns) is_good &= !column.is_needed || row.count(column.name) > 0;
      is_good &= row.count("end") == 0 || row["end"] >= row["start"] || table == kCalls;
      if (is_good) rows.push_back(row);
      if (!is_good) ++left_out[table];
    }
    return rows;
  }

  std::string sql;
  std::map<std::string, int> left_out = {{"the table of strings", 1}};  // rows of each table

 private:
  std::mt19937 random_;
  std::set<std::pair<std::string, std::string>> has_;  // tables and their columns
};

TEST(ProfileReader, AnyRowsAreReadAsFarAsTheyTell) {
  const std::vector<int64_t> starts = {100, 120, 140, 160, 200}, ends = {150, 180, 220, 300};
  const std::vector<int64_t> ids = {-1, 1, 2, 3, 4}, pids = {GlobalTid(1, 0), GlobalTid(2, 0)};
  const std::vector<int64_t> tids = {GlobalTid(1, 0), GlobalTid(1, 5), GlobalTid(2, 0), GlobalTid(2, 6)};
  const std::vector<int64_t> sizes = {0, 1, 2, 3};
  const auto text_of = [](int64_t id) {
    return id == kText ? "text" : id == 0 ? "zero" : id == 1 ? "one" : id == 2 ? "two" : "";
  };
  const auto pid_of = [](int64_t global) { return (global >> 24) & 0xffffff; };
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    AnyTables any(seed);
    std::vector<AnyTables::Column> activity = {{"start", starts, true}, {"end", ends, true},
                                               {"correlationId", ids},  {"globalPid", pids},
                                               {"deviceId", sizes},     {"streamId", sizes}};
    std::vector<AnyTables::Column> of_kernels = activity;
    for (const char* const name : {"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "demangledName",
                                   "shortName", "graphNodeId", "graphId"})
      of_kernels.push_back({name, sizes});
    activity.push_back({"bytes", sizes});
    const auto by_start = [](const Row& a, const Row& b) { return a.at("start") < b.at("start"); };
    std::vector<Row> kernels = any.Add(kKernels, of_kernels);
    std::stable_sort(kernels.begin(), kernels.end(), by_start);
    const std::vector<Row> memsets = any.Add(kMemsets, activity);
    activity.push_back({"copyKind", sizes});
    std::vector<Row> transfers = any.Add(kCopies, activity);
    for (Row& row : transfers) row["is copy"] = 1;
    transfers.insert(transfers.end(), memsets.begin(), memsets.end());
    std::stable_sort(transfers.begin(), transfers.end(), by_start);
    const std::vector<Row> calls = any.Add(
        kCalls, {{"start", starts, true}, {"end", ends, true}, {"correlationId", ids}, {"globalTid", tids}});
    const std::vector<Row> ranges = any.Add("NVTX_EVENTS", {{"eventType", {59}, true},
                                                            {"start", starts, true},
                                                            {"end", ends},
                                                            {"globalTid", tids, true},
                                                            {"text", {}, false, true},
                                                            {"textId", sizes}});
    std::map<int, std::string> devices;
    for (const bool is_nvprof : {false, true}) {
      const std::vector<std::string> names =
          is_nvprof ? std::vector<std::string>{"numMultiprocessors", "coreClockRate", "globalMemoryBandwidth",
                                               "computeCapabilityMajor", "computeCapabilityMinor"}
                    : std::vector<std::string>{"smCount", "clockRate", "memoryBandwidth", "computeMajor",
                                               "computeMinor"};
      std::vector<AnyTables::Column> columns = {{"id", {5, 6, 7}, true}, {"name", sizes, false, true}};
      for (const std::string& name : names) columns.push_back({name, {11, 22, 33}});
      if (!is_nvprof) columns.push_back({"cuDevice", {8, 9}});
      for (const Row& row : any.Add(is_nvprof ? "CUPTI_ACTIVITY_KIND_DEVICE" : "TARGET_INFO_GPU", columns)) {
        std::string device = text_of(ValueOf(row, "name", -1));
        for (const std::string& name : names) {
          const bool is_rate = name == names[1] || name == names[2];
          absl::StrAppend(&device, " ", ValueOf(row, name, 0) * (is_nvprof && is_rate ? 1000 : 1));
        }
        devices.emplace(ValueOf(row, "cuDevice", row.at("id")), device);
      }
    }
    any.sql += R"sql(
        CREATE TABLE StringIds (id, value);
        INSERT INTO StringIds VALUES (0, 'zero'), (1, 'one'), (2, 'two'), ('x', 'y');
        CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id, label);
        INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'Host-to-Device'), ('two', 'no number'), (2, NULL);)sql";
    absl::StrAppend(&any.sql, "CREATE TABLE PROCESSES (globalPid, name); INSERT INTO PROCESSES VALUES (",
                    pids[0],
                    ", 'first'), ('x', 'y'), (0, NULL); CREATE TABLE ThreadNames (globalTid, nameId);"
                    "INSERT INTO ThreadNames VALUES (",
                    tids[1], ", 1), (", tids[3],
                    ", 'x'), ('x', 1), (7, 1);"
                    "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs, systemClockNs);"
                    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (77, 88);");
    const bool has_version = any.OneIn(2), is_named = any.OneIn(4);
    if (has_version)
      any.sql +=
          "CREATE TABLE META_DATA_EXPORT (name, value);"
          "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.16.0'), ('OTHER', 'x');";
    ReadProfileOptions options;
    options.transfers = any.OneIn(2);
    if (!options.transfers) {
      transfers.clear();
      any.left_out.erase(kCopies);
      any.left_out.erase(kMemsets);
    }
    const absl::StatusOr<Profile> read = ReadProfile(
        CaptureSql::WriteSql(is_named ? "run.rank_00003.sqlite" : "any.sqlite", any.sql), options);
    const bool is_known = has_version || any.Has("NVTX_EVENTS", {"start", "end", "eventType", "globalTid"}) ||
                          any.Has(kKernels, {"start", "end", "correlationId"});
    ASSERT_EQ(read.ok(), is_known) << read.status();
    if (!is_known) {
      EXPECT_THAT(read.status().message(), HasSubstr("has neither kernels"));
      continue;
    }
    const Profile& profile = *read;
    EXPECT_EQ(profile.schema, has_version ? "Nsight Systems 3.16.0" : "Nsight Systems ?");

    std::set<int64_t> with_rank;
    for (const std::vector<Row>* const rows : {&kernels, &transfers}) {
      for (const Row& row : *rows) with_rank.insert(pid_of(ValueOf(row, "globalPid", 0)));
    }
    const bool tell_process =
        any.Has(kKernels, {"globalPid"}) ||
        (options.transfers && (any.Has(kCopies, {"globalPid"}) || any.Has(kMemsets, {"globalPid"})));
    const auto told_by = [&](const Row& row) {
      const int64_t pid = pid_of(ValueOf(row, "globalPid", 0)), id = ValueOf(row, "correlationId", -1);
      const int64_t rank = is_named               ? 3
                           : with_rank.size() < 2 ? -1
                                                  : std::distance(with_rank.begin(), with_rank.find(pid));
      // The first of several calls with one id counts.
      const auto call = std::find_if(calls.begin(), calls.end(), [&](const Row& of) {
        return ValueOf(of, "correlationId", -1) == id &&
               (!tell_process || pid_of(ValueOf(of, "globalTid", 0)) == pid);
      });
      std::string launch = id < 0 ? "no call" : "unknown call";
      if (id >= 0 && call != calls.end())
        launch = absl::StrCat("at ", call->at("start"), " for ",
                              std::max<int64_t>(0, call->at("end") - call->at("start")), " by ",
                              ValueOf(*call, "globalTid", 0) & 0xffffff);
      return absl::StrCat(row.at("start"), "-", row.at("end"), " device ", ValueOf(row, "deviceId", -1),
                          " stream ", ValueOf(row, "streamId", -1), " pid ", pid, " rank ", rank,
                          " launched ", launch);
    };
    const auto told = [&](const auto& of) {
      const Profile::Process& process = profile.processes[of.process];
      std::string launch = of.launch == kNone ? "no call" : "unknown call";
      if (of.launch != kNone && profile.launches[of.launch].thread != kNone) {
        const Profile::Launch& call = profile.launches[of.launch];
        launch = absl::StrCat("at ", call.start, " for ", call.nanoseconds, " by ",
                              profile.threads[call.thread].tid);
      }
      return absl::StrCat(of.start, "-", of.end, " device ", of.device, " stream ", of.stream, " pid ",
                          process.pid, " rank ", process.rank, " launched ", launch);
    };
    ASSERT_EQ(profile.kernels.size(), kernels.size());
    for (size_t i = 0; i < kernels.size(); ++i) {
      const Profile::Kernel& kernel = profile.kernels[i];
      EXPECT_EQ(told(kernel), told_by(kernels[i]));
      EXPECT_EQ(profile.kernel_names[kernel.name],
                text_of(ValueOf(kernels[i], "demangledName", ValueOf(kernels[i], "shortName", -1))));
      EXPECT_EQ(kernel.in_graph,
                ValueOf(kernels[i], "graphNodeId", 0) != 0 || ValueOf(kernels[i], "graphId", 0) != 0);
      std::vector<int64_t> geometry;
      for (const char* const name : {"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"})
        geometry.push_back(ValueOf(kernels[i], name, 0));
      const auto& [grid, block] = profile.geometries[kernel.geometry];
      EXPECT_THAT(geometry, ElementsAre(grid[0], grid[1], grid[2], block[0], block[1], block[2]));
    }
    ASSERT_EQ(profile.transfers.size(), transfers.size());
    for (size_t i = 0; i < transfers.size(); ++i) {
      EXPECT_EQ(told(profile.transfers[i]), told_by(transfers[i]));
      EXPECT_EQ(profile.transfers[i].bytes, ValueOf(transfers[i], "bytes", 0));
      const bool is_copy = ValueOf(transfers[i], "is copy", 0) == 1 && any.Has(kCopies, {"copyKind"});
      EXPECT_EQ(profile.transfer_names[profile.transfers[i].name], ValueOf(transfers[i], "copyKind", 0) == 1
                                                                       ? "memcpy Host-to-Device"
                                                                   : is_copy ? "memcpy"
                                                                             : "memset");
    }
    int64_t first = INT64_MAX, last = 0;
    for (const std::vector<Row>* const rows :
         {&std::as_const(kernels), &std::as_const(transfers), &calls, &ranges}) {
      for (const Row& row : *rows) {
        first = std::min(first, row.at("start"));
        last = std::max(last, ValueOf(row, "end", row.at("start")));
      }
    }
    EXPECT_EQ(profile.first_time, first == INT64_MAX ? 0 : first);
    EXPECT_EQ(profile.last_time, last);
    std::map<int64_t, std::vector<std::string>> expected, found;  // ranges by tid
    int num_open = 0;
    for (const Row& row : ranges) {
      expected[row.at("globalTid") & 0xffffffffffff].push_back(
          absl::StrCat(row.at("start"), "-", ValueOf(row, "end", last), " ",
                       text_of(ValueOf(row, "text", ValueOf(row, "textId", -1)))));
      num_open += row.count("end") == 0;
    }
    EXPECT_EQ(profile.begin_unix_nanoseconds, 77);
    EXPECT_EQ(profile.begin_monotonic_nanoseconds, 88);
    for (const Profile::Process& process : profile.processes)
      EXPECT_EQ(process.name, process.pid == 1 ? "first" : "");
    for (const Profile::Thread& thread : profile.threads) {
      EXPECT_EQ(thread.name, thread.tid == 5 ? "one" : "");
      for (const Profile::Range& range : thread.ranges)
        found[thread.tid + (profile.processes[thread.process].pid << 24)].push_back(
            absl::StrCat(range.start, "-", range.end, " ", profile.labels[range.label].text));
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(profile.num_ranges, static_cast<int64_t>(ranges.size()));
    std::map<int, std::string> found_devices;
    for (const auto& [number, device] : profile.devices)
      found_devices[number] =
          absl::StrCat(device.name, " ", device.sm_count, " ", device.clock_hz, " ",
                       device.memory_bytes_per_second, " ", device.compute_major, " ", device.compute_minor);
    EXPECT_EQ(found_devices, devices);
    std::vector<std::string> notes;
    if (num_open > 0) notes.push_back(absl::StrCat(num_open, " ranges were open when the capture ended"));
    for (const auto& [table, count] : any.left_out)
      notes.push_back(absl::StrCat(count, " rows of ", table, " were left out: not what belongs there"));
    EXPECT_EQ(profile.notes, notes);
  }
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

TEST(ProfileReader, FilesThatAreNoCapturesSaySo) {
  const std::string directory = testing::TempDir();
  EXPECT_THAT(Message(directory + "/nothing.sqlite"), HasSubstr("no such file"));
  EXPECT_THAT(Message(directory), HasSubstr("is a directory"));
  ASSERT_TRUE(WriteFileAtomically(directory + "/empty.sqlite", "").ok());
  EXPECT_THAT(Message(directory + "/empty.sqlite"), HasSubstr("is empty"));
  ASSERT_TRUE(WriteFileAtomically(directory + "/text.sqlite", std::string(5000, 'x')).ok());
  EXPECT_THAT(Message(directory + "/text.sqlite"), HasSubstr("is no SQLite database"));
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
    const Profile profile = ReadProfile(path).value();
    ASSERT_EQ(profile.num_ranges, 2) << path;
    EXPECT_EQ(profile.labels[profile.threads[0].ranges[0].label].text, "ä") << path;
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

}  // namespace
}  // namespace ott::kernels
