// Small captures, made of SQL.

#ifndef OTT_QUESTIONS_KERNELS_CAPTURE_FOR_TEST_H_
#define OTT_QUESTIONS_KERNELS_CAPTURE_FOR_TEST_H_

#include <sqlite3.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"

namespace ott::kernels {

// OpRange writes this of a linear layer.
inline constexpr char kLinear[] =
    R"({"op":"linear","module":"fc1","args":[{"name":"input","dtype":"float16","shape":[32,128]},)"
    R"({"name":"weight","dtype":"float16","shape":[64,128]}],"direction":"forward","seq":12,"source":"train.cc:42"})";

// Tables of Nsight Systems with the columns that all its schemas have.
inline constexpr char kNsightTables[] = R"sql(
  CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
  INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.16.0');
  CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
  CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,
                            textId INTEGER, domainId INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
                                            nameId INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
      start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
      demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,
      blockY INTEGER, blockZ INTEGER, graphNodeId INTEGER);
)sql";

// Returns the export's thread id of thread tid of process pid.
inline int64_t GlobalTid(int64_t pid, int64_t tid) { return (int64_t{1} << 48) | (pid << 24) | tid; }

// Adds rows to a capture.
class CaptureSql {
 public:
  CaptureSql() : sql_(kNsightTables) {}

  CaptureSql& Range(int64_t pid, int64_t tid, int64_t start, int64_t end, const std::string& text) {
    std::string quoted;
    for (const char c : text) quoted.append(c == '\'' ? 2 : 1, c);
    return Sql(absl::StrCat("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) VALUES (",
                            start, ",", end, ",59,'", quoted, "',", GlobalTid(pid, tid), ");"));
  }

  // Adds a kernel of that name from start to start + duration, launched at time launch.
  CaptureSql& Kernel(int64_t pid, int64_t tid, int64_t launch, int64_t start, int64_t duration,
                     const std::string& name, int64_t correlation_id, int64_t device = 0,
                     bool in_graph = false) {
    const int64_t id = next_string_++;
    return Sql(absl::StrCat("INSERT INTO StringIds VALUES (", id, ",'", name, "');",
                            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (", start, ",", start + duration,
                            ",", device, ",7,", correlation_id, ",", GlobalTid(pid, 0), ",", id, ",", id,
                            ",585,1,1,256,1,1,", in_graph ? "12" : "NULL", ");"))
        .Sql(launch < 0 ? ""
                        : absl::StrCat("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (", launch, ",",
                                       launch + 1, ",", GlobalTid(pid, tid), ",", correlation_id, ",0);"));
  }

  CaptureSql& Sql(const std::string& sql) {
    sql_ += sql;
    return *this;
  }

  // Returns the path of a new file with all that.
  std::string Write(const std::string& name) const { return WriteSql(name, sql_); }

  static std::string WriteSql(const std::string& name, const std::string& sql) {
    const char* directory = std::getenv("TEST_TMPDIR");
    const std::string path = absl::StrCat(directory == nullptr ? "/tmp" : directory, "/", name);
    std::remove(path.c_str());
    sqlite3* database = nullptr;
    OTT_CHECK(sqlite3_open(path.c_str(), &database) == SQLITE_OK) << path;
    char* error = nullptr;
    const std::string transaction = "PRAGMA synchronous=OFF; BEGIN;" + sql + "COMMIT;";
    const int code = sqlite3_exec(database, transaction.c_str(), nullptr, nullptr, &error);
    OTT_CHECK(code == SQLITE_OK) << error << "\n" << sql;
    sqlite3_close(database);
    return path;
  }

 private:
  std::string sql_;
  int64_t next_string_ = 1;
};

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_CAPTURE_FOR_TEST_H_
