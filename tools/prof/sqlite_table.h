// Tables of an SQLite file, read from beginning to end.

#ifndef OTT_TOOLS_PROF_SQLITE_TABLE_H_
#define OTT_TOOLS_PROF_SQLITE_TABLE_H_

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
#include "tools/prof/sqlite_pages.h"

namespace ott::prof {

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
    uint32_t root_page = 0;
    int rowid_column = -1;
    // Whether its pages hold rows with a value for each column, as they do for all ordinary tables.
    bool is_plain = true;
  };

  absl::Status Error(int code, const std::string& doing) const;
  absl::Status ReadSchema();
  const Table* FindTable(std::string_view table) const;
  absl::Status ScanByQuery(const Table& table, const std::vector<std::string>& columns,
                           const std::function<void(const SqliteRow&)>& read) const;

  const std::string path_;
  sqlite3* const database_;
  sqlite3_stmt* reading_ = nullptr;  // holds the lock that keeps writers away
  std::unique_ptr<SqlitePages> pages_;
  bool reads_pages_ = false;  // else only the library can read
  std::vector<Table> tables_;
};

}  // namespace ott::prof

#endif  // OTT_TOOLS_PROF_SQLITE_TABLE_H_
