// Tables of an SQLite file, read from beginning to end.

#ifndef OTT_TOOLS_PROF_SQLITE_TABLE_H_
#define OTT_TOOLS_PROF_SQLITE_TABLE_H_

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ott {

// One row, valid until the next.
class SqliteRow {
 public:
  enum class Type { kNull, kInteger, kReal, kText, kBlob };

  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}

  Type type(int column) const;
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  // Of a text or a blob.
  std::string_view bytes(int column) const;

  // False, with *value left alone, for what is no integer (NULL included).
  bool GetInteger(int column, int64_t* value) const {
    if (type(column) != Type::kInteger) return false;
    *value = integer(column);
    return true;
  }

 private:
  sqlite3_stmt* statement_;
};

class SqliteFile {
 public:
  // Errors: NOT_FOUND without such a file, INVALID_ARGUMENT if it is no SQLite database, UNAVAILABLE if it is
  // locked.
  static absl::StatusOr<std::unique_ptr<SqliteFile>> Open(const std::string& path);
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;
  ~SqliteFile();

  const std::string& path() const { return path_; }

  bool HasTable(std::string_view table) const;
  // True if the table has all these columns.
  bool HasColumns(std::string_view table, const std::vector<std::string>& columns) const;
  absl::StatusOr<int64_t> CountRows(const std::string& table) const;

  // Calls read for each row. A column that the table lacks reads as NULL, a missing table as an empty one.
  // DATA_LOSS, UNAVAILABLE or what SQLite says where the rows cannot all be read.
  absl::Status Scan(const std::string& table, const std::vector<std::string>& columns,
                    const std::function<void(const SqliteRow&)>& read) const;

 private:
  SqliteFile(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}

  absl::Status Error(int code, const std::string& doing) const;
  absl::Status ReadSchema();

  const std::string path_;
  sqlite3* const database_;
  struct Table {
    std::string name;
    std::vector<std::string> columns;
  };
  std::vector<Table> tables_;
};

}  // namespace ott

#endif  // OTT_TOOLS_PROF_SQLITE_TABLE_H_
