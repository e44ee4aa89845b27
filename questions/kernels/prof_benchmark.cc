// Measures how many kernels a second `ott prof` reads, joins and prints, on a generated training run with the
// columns of an Nsight Systems export. It has eight ranges and two launches for every two kernels (forward
// and backward, on a thread each). CPU time beside that of a bare sqlite3_step loop over the same rows, and
// the most memory the process held.
//
//   bazel run //questions/kernels:prof_benchmark              # 2,000,000 kernels, 8,000,000 ranges
//   bazel run //questions/kernels:prof_benchmark -- 10000000

#include <sqlite3.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/base/check.h"
#include "ott/questions/kernels/kernel_join.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/profile_reader.h"
#include "ott/questions/kernels/profile_rows.h"

namespace ott::kernels {
namespace {

constexpr char kTables[] = R"sql(
  PRAGMA journal_mode = OFF;
  PRAGMA synchronous = OFF;
  BEGIN;
  CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
  INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.28.1');
  CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
  INSERT INTO StringIds VALUES
      (1, 'nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT'), (2, 'nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NTT'),
      (3, 'cudaLaunchKernelExC_v11060');
  CREATE TABLE NVTX_EVENTS (
      start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER,
      text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,
      int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL,
      jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
      start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
      correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
      start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
      greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
      demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER,
      cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
      gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
      staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
      localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER);
)sql";

class Writer {
 public:
  explicit Writer(const std::string& path) {
    std::remove(path.c_str());
    OTT_CHECK(sqlite3_open(path.c_str(), &database_) == SQLITE_OK) << path;
    Execute(kTables);
    range_ = Prepare(
        "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) VALUES (?, ?, 59, ?, ?, "
        "0)");
    launch_ = Prepare("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 3, 0, NULL)");
    kernel_ = Prepare(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, NULL, 7, ?, ?, ?, ?, NULL, 1, 0, 168, "
        "132, 1, 1, 384, 1, 1, 1024, 200704, 0, 0, ?, 233472, NULL)");
  }
  ~Writer() {
    Execute("COMMIT");
    for (sqlite3_stmt* statement : {range_, launch_, kernel_}) sqlite3_finalize(statement);
    sqlite3_close(database_);
  }

  enum class Table { kKernels, kLaunches, kRanges };

  // The table that takes rows; those of others are dropped.
  void Fill(Table table) { filled_ = table; }

  void Range(int64_t tid, int64_t start, int64_t end, const std::string& text) {
    if (filled_ != Table::kRanges) return;
    sqlite3_bind_text(range_, 3, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    Insert(range_, {{1, start}, {2, end}, {4, kProcess | tid}});
  }
  void Kernel(int64_t tid, int64_t launch, int64_t start, int64_t correlation_id, int64_t name) {
    if (filled_ == Table::kLaunches) {
      Insert(launch_, {{1, launch}, {2, launch + 4000}, {3, kProcess | tid}, {4, correlation_id}});
    } else if (filled_ == Table::kKernels) {
      Insert(kernel_, {{1, start},
                       {2, start + 9000},
                       {3, correlation_id},
                       {4, kProcess},
                       {5, name},
                       {6, name},
                       {7, correlation_id}});
    }
  }

 private:
  static constexpr int64_t kProcess = (int64_t{1} << 48) | (int64_t{4711} << 24);

  void Execute(const char* sql) {
    OTT_CHECK(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) << sql;
  }
  sqlite3_stmt* Prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    OTT_CHECK(sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) == SQLITE_OK)
        << sqlite3_errmsg(database_);
    return statement;
  }
  void Insert(sqlite3_stmt* statement, std::initializer_list<std::pair<int, int64_t>> values) {
    for (const auto& [index, value] : values) sqlite3_bind_int64(statement, index, value);
    OTT_CHECK(sqlite3_step(statement) == SQLITE_DONE) << sqlite3_errmsg(database_);
    sqlite3_reset(statement);
  }

  Table filled_ = Table::kKernels;
  sqlite3* database_ = nullptr;
  sqlite3_stmt* range_ = nullptr;
  sqlite3_stmt* launch_ = nullptr;
  sqlite3_stmt* kernel_ = nullptr;
};

void WriteRows(int64_t num_kernels, Writer* writer) {
  constexpr int64_t kOpsInIteration = 200;
  const auto sizes = [](int64_t op) {
    return absl::StrCat("[[", 1024 << (op % 3), ", 4096], [4096, 4096]]");
  };
  int64_t op_id = 0;
  for (int64_t first = 0; first < num_kernels / 2; first += kOpsInIteration) {
    const int64_t last = std::min(first + kOpsInIteration, num_kernels / 2);
    int64_t start = 2 * first * 20000;
    for (int64_t op = first; op < last; ++op, start += 20000) {
      writer->Range(1, start, start + 19000, absl::StrCat("layer:encoder.", (op - first) / 10));
      writer->Range(
          1, start + 100, start + 18000,
          absl::StrCat("aten::linear, seq = ", 2 * op, ", op_id = ", ++op_id, ", sizes = ", sizes(op)));
      writer->Range(
          1, start + 1000, start + 2000,
          absl::StrCat("aten::t, seq = ", 2 * op, ", op_id = ", ++op_id, ", sizes = [[4096, 4096]]"));
      writer->Range(
          1, start + 3000, start + 17000,
          absl::StrCat("aten::mm, seq = ", 2 * op + 1, ", op_id = ", ++op_id, ", sizes = ", sizes(op)));
      writer->Kernel(1, start + 8000, start + 15000, 8 * op, 1);
    }
    for (int64_t op = last; op-- > first; start += 20000) {
      writer->Range(2, start, start + 19000, "autograd::engine::evaluate_function: MmBackward0");
      writer->Range(2, start + 100, start + 18000,
                    absl::StrCat("MmBackward0, seq = ", 2 * op + 1, ", op_id = ", ++op_id));
      writer->Range(2, start + 1000, start + 2000,
                    absl::StrCat("aten::t, op_id = ", ++op_id, ", sizes = [[4096, 4096]]"));
      writer->Range(2, start + 3000, start + 17000,
                    absl::StrCat("aten::mm, op_id = ", ++op_id, ", sizes = ", sizes(op)));
      writer->Kernel(2, start + 8000, start + 15000, 8 * op + 4, 2);
    }
  }
}

// One table after the other, each in the order of starts, as Nsight Systems exports them.
void WriteRun(const std::string& path, int64_t num_kernels) {
  Writer writer(path);
  for (const Writer::Table table :
       {Writer::Table::kKernels, Writer::Table::kLaunches, Writer::Table::kRanges}) {
    writer.Fill(table);
    WriteRows(num_kernels, &writer);
  }
}

double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of CPU time that a bare loop of the library over the columns that `ott prof` reads takes.
double SecondsOfBareSteps(const std::string& path) {
  sqlite3* database = nullptr;
  OTT_CHECK(sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  const double begin = CpuSeconds();
  int64_t sum = 0;
  for (const char* query : {"SELECT start, end, correlationId, globalPid, deviceId, streamId, gridX, gridY, "
                            "gridZ, blockX, blockY, "
                            "blockZ, demangledName, shortName, graphNodeId FROM CUPTI_ACTIVITY_KIND_KERNEL",
                            "SELECT correlationId, start, end, globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME",
                            "SELECT eventType, start, end, globalTid, text, textId FROM NVTX_EVENTS"}) {
    sqlite3_stmt* statement = nullptr;
    OTT_CHECK(sqlite3_prepare_v2(database, query, -1, &statement, nullptr) == SQLITE_OK)
        << sqlite3_errmsg(database);
    const int num_columns = sqlite3_column_count(statement);
    while (sqlite3_step(statement) == SQLITE_ROW) {
      for (int column = 0; column < num_columns; ++column) {
        if (sqlite3_column_type(statement, column) == SQLITE_TEXT) {
          sum += sqlite3_column_text(statement, column)[0];
        } else {
          sum += sqlite3_column_int64(statement, column);
        }
      }
    }
    sqlite3_finalize(statement);
  }
  OTT_CHECK(sum != 0);
  const double seconds = CpuSeconds() - begin;
  sqlite3_close(database);
  return seconds;
}

// The most memory the process held so far, bytes.
double PeakMemory() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

int Main(int argc, char** argv) {
  const int64_t num_kernels = argc > 1 ? std::atoll(argv[1]) : 2000000;
  const char* directory = std::getenv("TMPDIR");
  const std::string path = absl::StrCat(directory == nullptr ? "/tmp" : directory, "/prof_benchmark.sqlite");
  WriteRun(path, num_kernels);
  const double written = PeakMemory();
  const double begin = CpuSeconds();
  Profile profile = ReadProfile(path).value();
  const double read = CpuSeconds();
  const double read_memory = PeakMemory();
  const KernelJoin join = JoinKernels(&profile);
  const double joined = CpuSeconds();
  const double joined_memory = PeakMemory();
  const ProfileRows rows(profile, join, std::nullopt);
  size_t bytes = 0;
  OTT_CHECK(WriteProfTable(rows, {}, [&](std::string_view text) { bytes += text.size(); }).ok());
  const double end = CpuSeconds();
  const double bare = SecondsOfBareSteps(path);
  std::remove(path.c_str());
  for (size_t kernel = 0; kernel < profile.kernels.size(); ++kernel) {
    OTT_CHECK(join.StateOf(profile, profile.kernels[kernel].launch) == KernelJoin::State::kOp) << kernel;
  }
  std::printf("most memory: writing the file %.0f MB, reading %.0f MB, joining %.0f MB, printing %.0f MB\n",
              written * 1e-6, read_memory * 1e-6, joined_memory * 1e-6, PeakMemory() * 1e-6);
  std::printf("%lld kernels, %lld ranges: read %.2f s, join %.2f s, print %.2f s (%zu MB)\n",
              static_cast<long long>(num_kernels), static_cast<long long>(profile.num_ranges), read - begin,
              joined - read, end - joined, bytes >> 20);
  BenchmarkLimits limits;
  std::printf("a bare sqlite3_step loop over these rows: %.2f s\n", bare);
  limits.AtMost("reading, in bare loops over the same rows", (read - begin) / bare, 1 / 0.7, "times");
  limits.AtMost("memory a kernel (2 GB for ten million)", PeakMemory() / static_cast<double>(num_kernels),
                200, "B ");
  return limits.all_hold() ? 0 : 1;
}

}  // namespace
}  // namespace ott::kernels

int main(int argc, char** argv) { return ott::kernels::Main(argc, argv); }
