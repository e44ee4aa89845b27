#include "ott/questions/kernels/sqlite_table.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott::kernels {
namespace {

std::string Quoted(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

}  // namespace

std::string_view SqliteRow::bytes(int column) const {
  const Type type_of_column = type(column);
  if (type_of_column != Type::kText && type_of_column != Type::kBlob) return {};
  const void* bytes = type_of_column == Type::kText ? sqlite3_column_text(statement_, column)
                                                    : sqlite3_column_blob(statement_, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

absl::StatusOr<std::unique_ptr<SqliteFile>> SqliteFile::Open(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  if (S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory, not a capture"));
  }
  if (status.st_size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is empty; the capture or its export did not finish"));
  }
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr);
  std::unique_ptr<SqliteFile> file(new SqliteFile(path, database));
  if (code != SQLITE_OK) return file->Error(code, "opening it");
  sqlite3_busy_timeout(database, 500);
  // The first read within a transaction takes the lock that keeps writers away.
  sqlite3_exec(database, "BEGIN", nullptr, nullptr, nullptr);
  OTT_RETURN_IF_ERROR(file->ReadSchema());
  return file;
}

SqliteFile::~SqliteFile() { sqlite3_close(database_); }

absl::Status SqliteFile::Error(int code, const std::string& doing) const {
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": is no SQLite database; export a .nsys-rep with `nsys export --type sqlite`"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(
          absl::StrCat(path_, ": is locked by a program that writes it; wait until that has ended"));
    case SQLITE_CORRUPT:
      return absl::DataLossError(absl::StrCat(path_, ": is damaged or cut short (", sqlite3_errmsg(database_),
                                              ", ", doing, "); export it again"));
    default:
      return absl::UnknownError(absl::StrCat(path_, ": ", sqlite3_errmsg(database_), ", ", doing));
  }
}

absl::Status SqliteFile::ReadSchema() {
  sqlite3_stmt* raw = nullptr;
  const char* query =
      "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c "
      "WHERE m.type IN ('table', 'view') ORDER BY m.name, c.cid";
  int code = sqlite3_prepare_v2(database_, query, -1, &raw, nullptr);
  const Statement statement(raw);
  if (code != SQLITE_OK) return Error(code, "reading its schema");
  const SqliteRow row(raw);
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    if (tables_.empty() || tables_.back().name != row.bytes(0)) tables_.emplace_back().name = row.bytes(0);
    tables_.back().columns.emplace_back(row.bytes(1));
  }
  return code == SQLITE_DONE ? absl::OkStatus() : Error(code, "reading its schema");
}

const SqliteFile::Table* SqliteFile::FindTable(std::string_view table) const {
  const auto found =
      std::find_if(tables_.begin(), tables_.end(), [&](const Table& known) { return known.name == table; });
  return found == tables_.end() ? nullptr : &*found;
}

bool SqliteFile::HasTable(std::string_view table) const { return FindTable(table) != nullptr; }

bool SqliteFile::HasColumns(std::string_view table, const std::vector<std::string>& columns) const {
  const Table* known = FindTable(table);
  return known != nullptr && std::all_of(columns.begin(), columns.end(), [&](const std::string& column) {
           return std::find(known->columns.begin(), known->columns.end(), column) != known->columns.end();
         });
}

size_t SqliteFile::RowsAtMost(const std::string& table) const {
  if (!HasTable(table)) return 0;
  sqlite3_stmt* raw = nullptr;
  const std::string query = absl::StrCat(
      "SELECT MAX(rowid), (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) FROM ",
      Quoted(table));
  const int code = sqlite3_prepare_v2(database_, query.c_str(), -1, &raw, nullptr);
  const Statement statement(raw);
  if (code != SQLITE_OK || sqlite3_step(raw) != SQLITE_ROW) return 0;
  // No row of ours is shorter than 16 bytes.
  const int64_t rows = std::min(sqlite3_column_int64(raw, 0), sqlite3_column_int64(raw, 1) / 16);
  return static_cast<size_t>(std::max<int64_t>(rows, 0));
}

absl::Status SqliteFile::Scan(const std::string& table, const std::vector<std::string>& columns,
                              const std::function<void(const SqliteRow&)>& read) const {
  if (!HasTable(table)) return absl::OkStatus();
  std::string query = "SELECT ";
  for (const std::string& column : columns) {
    absl::StrAppend(&query, &column == &columns.front() ? "" : ", ",
                    HasColumns(table, {column}) ? Quoted(column) : "NULL");
  }
  absl::StrAppend(&query, " FROM ", Quoted(table));
  sqlite3_stmt* raw = nullptr;
  const std::string doing = absl::StrCat("reading ", table);
  int code = sqlite3_prepare_v2(database_, query.c_str(), -1, &raw, nullptr);
  const Statement statement(raw);
  if (code != SQLITE_OK) return Error(code, doing);
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) read(SqliteRow(raw));
  return code == SQLITE_DONE ? absl::OkStatus() : Error(code, doing);
}

}  // namespace ott::kernels
