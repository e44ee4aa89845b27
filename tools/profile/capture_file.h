// A capture file under construction: SQLite, written in transactions.
//
// After each Flush() what the file holds is whole and stays readable, whatever ends the process: SQLite
// itself rolls back what came later. Between two flushes no byte of the file changes.

#ifndef OTT_TOOLS_PROFILE_CAPTURE_FILE_H_
#define OTT_TOOLS_PROFILE_CAPTURE_FILE_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sqlite3.h"
#include "tools/profile/capture_schema.h"

namespace ott::profile {

// A value of a row: an integer, a double, a string_view, std::nullopt, or an optional of one. The name is a
// literal.
template <typename T>
struct Column {
  const char* name;
  const T& value;
};
template <typename T>
Column(const char*, const T&) -> Column<T>;

// Not thread-safe.
class CaptureFile {
 public:
  // Makes the file with its tables. ALREADY_EXISTS if there is one.
  static absl::StatusOr<std::unique_ptr<CaptureFile>> Create(const std::string& path);
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;
  ~CaptureFile();

  // Adds a row; columns that are not given are NULL. An error, such as a column that the table does not have,
  // is kept for Flush().
  template <typename... Values>
  void Insert(Table table, const Column<Values>&... columns) {
    sqlite3_stmt* const statement = InsertInto(table, {columns.name...});
    if (statement == nullptr) return;
    int index = 0;
    (Bind(statement, ++index, columns.value), ...);
    Run(statement);
  }

  // Returns the id of a text in StringIds. Bytes that are not UTF-8 are replaced.
  int64_t StringId(std::string_view text);

  // Changes rows; the values are those of the statement's question marks. Returns how many it changed; an
  // error is kept for Flush().
  template <typename... Values>
  int Update(const char* sql, const Values&... values) {
    sqlite3_stmt* statement = nullptr;
    if (!Begin() || Prepare(&statement, sql) == nullptr) return 0;
    int column = 0;
    (Bind(statement, ++column, values), ...);
    Run(statement);
    sqlite3_finalize(statement);
    return status_.ok() ? sqlite3_changes(database_) : 0;
  }

  // Rows since the last Flush().
  int64_t num_pending_rows() const { return num_pending_rows_; }

  // Commits. On an error the rows since the last Flush() are lost, and the next ones are tried again: a disk
  // may have room again. While somebody reads the file, waits a moment; then UNAVAILABLE, and nothing is lost
  // yet.
  absl::Status Flush();

 private:
  CaptureFile(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}

  absl::Status Error() const;
  absl::Status Execute(const std::string& sql);
  absl::Status MakeTables();
  absl::Status MakeTable(Table table);
  // Begins a transaction if none is open. Returns whether there was no error in it so far.
  bool Begin();
  // These return null after an error.
  sqlite3_stmt* Prepare(sqlite3_stmt** statement, const std::string& sql);
  sqlite3_stmt* InsertInto(Table table, std::initializer_list<const char*> columns);
  void Run(sqlite3_stmt* statement);
  void RollBack();
  void FinalizeStatements();

  template <typename Integer>
  static std::enable_if_t<std::is_integral_v<Integer>> Bind(sqlite3_stmt* statement, int column,
                                                            Integer value) {
    sqlite3_bind_int64(statement, column, static_cast<int64_t>(value));
  }
  static void Bind(sqlite3_stmt* statement, int column, double value) {
    sqlite3_bind_double(statement, column, value);
  }
  static void Bind(sqlite3_stmt* statement, int column, std::string_view value);
  static void Bind(sqlite3_stmt* statement, int column, std::nullopt_t) {
    sqlite3_bind_null(statement, column);
  }
  template <typename T>
  static void Bind(sqlite3_stmt* statement, int column, const std::optional<T>& value) {
    if (value.has_value()) {
      Bind(statement, column, *value);
    } else {
      Bind(statement, column, std::nullopt);
    }
  }

  struct InsertStatement {
    std::vector<const char*> columns;
    sqlite3_stmt* statement = nullptr;
  };

  const std::string path_;
  sqlite3* const database_;
  // A statement for each place in the code that inserts.
  std::vector<InsertStatement> inserts_[kNumTables];
  bool in_transaction_ = false;
  absl::Status status_;  // of the transaction
  int64_t num_pending_rows_ = 0;
  std::unordered_map<std::string, int64_t> strings_;
  std::vector<const std::string*> pending_strings_;
};

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_CAPTURE_FILE_H_
