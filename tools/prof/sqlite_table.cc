#include "tools/prof/sqlite_table.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott::prof {
namespace {

std::string Quoted(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

// In UTF-8, whatever the file has.
std::string_view TextOf(sqlite3_stmt* statement, int column) {
  const unsigned char* text = sqlite3_column_text(statement, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(sqlite3_column_bytes(statement, column))};
}

SqliteValue ValueOf(sqlite3_stmt* statement, int column) {
  SqliteValue value;
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      value.type = SqliteValue::Type::kInteger;
      value.integer = sqlite3_column_int64(statement, column);
      break;
    case SQLITE_FLOAT:
      value.type = SqliteValue::Type::kReal;
      value.real = sqlite3_column_double(statement, column);
      break;
    case SQLITE_TEXT:
      value.type = SqliteValue::Type::kText;
      value.bytes = TextOf(statement, column);
      break;
    case SQLITE_BLOB:
      value.type = SqliteValue::Type::kBlob;
      value.bytes = {static_cast<const char*>(sqlite3_column_blob(statement, column)),
                     static_cast<size_t>(sqlite3_column_bytes(statement, column))};
      break;
    default:
      break;
  }
  return value;
}

}  // namespace

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
  // Opened before there is a lock to lose, see SqlitePages.
  OTT_ASSIGN_OR_RETURN(file->pages_, SqlitePages::Open(path));
  // A query in the middle of its rows holds the lock.
  const int lock = sqlite3_prepare_v2(database, "SELECT 1 FROM sqlite_master UNION ALL SELECT 2", -1,
                                      &file->reading_, nullptr);
  const bool locked = lock == SQLITE_OK && sqlite3_step(file->reading_) == SQLITE_ROW;
  file->reads_pages_ = locked && file->pages_->IsPlain();
  OTT_RETURN_IF_ERROR(file->ReadSchema());
  return file;
}

SqliteFile::~SqliteFile() {
  sqlite3_finalize(reading_);
  sqlite3_close(database_);
}

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
      "SELECT m.name, c.name, m.rootpage, upper(c.type) = 'INTEGER' AND c.pk > 0, c.hidden != 0 OR "
      "c.dflt_value IS NOT "
      "NULL OR m.type != 'table' OR m.rootpage = 0 OR m.sql LIKE '%without%rowid%' FROM sqlite_master AS m, "
      "pragma_table_xinfo(m.name) AS c WHERE m.type IN ('table', 'view') ORDER BY m.name, c.cid";
  int code = sqlite3_prepare_v2(database_, query, -1, &raw, nullptr);
  const std::unique_ptr<sqlite3_stmt, Finalize> statement(raw);
  if (code != SQLITE_OK) return Error(code, "reading its schema");
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    if (tables_.empty() || tables_.back().name != TextOf(raw, 0)) {
      tables_.emplace_back().name = TextOf(raw, 0);
      tables_.back().root_page = static_cast<uint32_t>(sqlite3_column_int64(raw, 2));
    }
    Table& table = tables_.back();
    if (sqlite3_column_int(raw, 3) != 0) {
      // Two columns that make the key together do not stand for the row's id.
      if (table.rowid_column >= 0) table.is_plain = false;
      table.rowid_column = static_cast<int>(table.columns.size());
    }
    if (sqlite3_column_int(raw, 4) != 0) table.is_plain = false;
    table.columns.emplace_back(TextOf(raw, 1));
  }
  if (code != SQLITE_DONE) return Error(code, "reading its schema");
  return absl::OkStatus();
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
      "SELECT MAX(rowid), (SELECT page_count * page_size FROM pragma_page_count, "
      "pragma_page_size) FROM ",
      Quoted(table));
  const int code = sqlite3_prepare_v2(database_, query.c_str(), -1, &raw, nullptr);
  const std::unique_ptr<sqlite3_stmt, Finalize> statement(raw);
  if (code != SQLITE_OK || sqlite3_step(raw) != SQLITE_ROW) return 0;
  // No row of ours is shorter than 16 bytes.
  const int64_t rows = std::min(sqlite3_column_int64(raw, 0), sqlite3_column_int64(raw, 1) / 16);
  return static_cast<size_t>(std::max<int64_t>(rows, 0));
}

absl::Status SqliteFile::Scan(const std::string& table, const std::vector<std::string>& columns,
                              const std::function<void(const SqliteRow&)>& read) const {
  const Table* known = FindTable(table);
  if (known == nullptr) return absl::OkStatus();
  if (!reads_pages_ || !known->is_plain) return ScanByQuery(*known, columns, read);
  std::vector<int> indices;
  for (const std::string& column : columns) {
    const auto found = std::find(known->columns.begin(), known->columns.end(), column);
    indices.push_back(found == known->columns.end() ? -1 : static_cast<int>(found - known->columns.begin()));
  }
  const absl::Status status = pages_->Scan(known->root_page, indices, known->rowid_column, read);
  if (status.ok()) return status;
  return absl::DataLossError(absl::StrCat(path_, ": is damaged or cut short (", std::string(status.message()),
                                          ", reading ", table, "); export it again"));
}

absl::Status SqliteFile::ScanByQuery(const Table& table, const std::vector<std::string>& columns,
                                     const std::function<void(const SqliteRow&)>& read) const {
  std::string query = "SELECT ";
  for (const std::string& column : columns) {
    absl::StrAppend(&query, &column == &columns.front() ? "" : ", ",
                    HasColumns(table.name, {column}) ? Quoted(column) : "NULL");
  }
  absl::StrAppend(&query, " FROM ", Quoted(table.name));
  sqlite3_stmt* raw = nullptr;
  const std::string doing = absl::StrCat("reading ", table.name);
  int code = sqlite3_prepare_v2(database_, query.c_str(), -1, &raw, nullptr);
  const std::unique_ptr<sqlite3_stmt, Finalize> statement(raw);
  if (code != SQLITE_OK) return Error(code, doing);
  std::vector<SqliteValue> values(columns.size());
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = ValueOf(raw, static_cast<int>(i));
    read(SqliteRow(values));
  }
  return code == SQLITE_DONE ? absl::OkStatus() : Error(code, doing);
}

}  // namespace ott::prof
