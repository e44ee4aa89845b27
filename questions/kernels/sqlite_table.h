// Tables of an SQLite file, read from beginning to end.

#ifndef OTT_QUESTIONS_KERNELS_SQLITE_TABLE_H_
#define OTT_QUESTIONS_KERNELS_SQLITE_TABLE_H_

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ott::kernels {

// The row that a query stands at; what it gives is valid until the next.
class SqliteRow {
 public:
  enum class Type {
    kNull = SQLITE_NULL,
    kInteger = SQLITE_INTEGER,
    kReal = SQLITE_FLOAT,
    kText = SQLITE_TEXT,
    kBlob = SQLITE_BLOB,
  };

  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}

  Type type(int column) const { return static_cast<Type>(sqlite3_column_type(statement_, column)); }
  // Returns the bytes of a text, in UTF-8 whatever the file has, or of a blob; else "".
  std::string_view bytes(int column) const;
  // Returns false, with *value left alone, for what is no integer (NULL included).
  bool GetInteger(int column, int64_t* value) const {
    if (type(column) != Type::kInteger) return false;
    *value = sqlite3_column_int64(statement_, column);
    return true;
  }

 private:
  sqlite3_stmt* const statement_;
};

// Other programs cannot write the file while it is open. Not thread-safe.
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
  // Returns true if the table has all these columns.
  bool HasColumns(std::string_view table, const std::vector<std::string>& columns) const;
  // Not less than the table's rows, unless their ids are out of the ordinary; a hint for reserving memory.
  size_t RowsAtMost(const std::string& table) const;

  // Calls read for each row. A column that the table lacks reads as NULL, a missing table as an empty one.
  // DATA_LOSS, UNAVAILABLE or what SQLite says where the rows cannot all be read.
  absl::Status Scan(const std::string& table, const std::vector<std::string>& columns,
                    const std::function<void(const SqliteRow&)>& read) const;

 private:
  SqliteFile(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}

  struct Table {
    std::string name;
    std::vector<std::string> columns;
  };

  absl::Status Error(int code, const std::string& doing) const;
  absl::Status ReadSchema();
  const Table* FindTable(std::string_view table) const;

  const std::string path_;
  sqlite3* const database_;
  std::vector<Table> tables_;
};

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_SQLITE_TABLE_H_
