#include "tools/profile/capture_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"

namespace ott::profile {
namespace {

bool IsAscii(std::string_view text) {
  uint8_t all = 0;
  for (const char c : text) all |= static_cast<uint8_t>(c);
  return all < 0x80;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CaptureFile>> CaptureFile::Create(const std::string& path) {
  // SQLite cannot be told to refuse a file that is there.
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0) {
    const std::string message = absl::StrCat(path, ": ", std::strerror(errno));
    return errno == EEXIST ? absl::AlreadyExistsError(message) : absl::UnavailableError(message);
  }
  close(fd);
  sqlite3* database = nullptr;
  sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<CaptureFile> file(new CaptureFile(path, database));
  if (absl::Status made = file->MakeTables(); !made.ok()) {
    unlink(path.c_str());
    return made;
  }
  return file;
}

absl::Status CaptureFile::MakeTables() {
  sqlite3_busy_timeout(database_, 200);
  // synchronous: what the kernel has survives the end of any process. A cache that holds a whole transaction:
  // the file is touched at commits alone, and the journal is there no longer than they take.
  OTT_RETURN_IF_ERROR(
      Execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; PRAGMA cache_spill = OFF"));
  if (!Begin()) return status_;
  for (int i = 0; i < kNumTables; ++i) {
    const auto table = static_cast<Table>(i);
    if (SchemaOf(table).is_made_at_once) OTT_RETURN_IF_ERROR(MakeTable(table));
  }
  for (const EnumTable& table : EnumTables()) {
    OTT_RETURN_IF_ERROR(Execute(absl::StrCat("CREATE TABLE ", table.name,
                                             " (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)")));
    for (const EnumTable::Row& row : table.rows) {
      OTT_RETURN_IF_ERROR(Execute(absl::StrCat("INSERT INTO ", table.name, " VALUES (", row.id, ", '",
                                               row.name, "', '", row.label, "')")));
    }
  }
  return Flush();
}

absl::Status CaptureFile::Error() const {
  const std::string message = absl::StrCat(path_, ": ", sqlite3_errmsg(database_));
  switch (sqlite3_errcode(database_) & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(message);
    case SQLITE_BUSY:
      return absl::UnavailableError(message);
    default:
      return absl::DataLossError(message);
  }
}

absl::Status CaptureFile::Execute(const std::string& sql) {
  return sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? absl::OkStatus()
                                                                                      : Error();
}

absl::Status CaptureFile::MakeTable(Table table) {
  const TableSchema& schema = SchemaOf(table);
  return Execute(absl::StrCat("CREATE TABLE IF NOT EXISTS ", schema.name, " (", schema.columns, ")"));
}

bool CaptureFile::Begin() {
  if (!in_transaction_ && status_.ok()) {
    status_ = Execute("BEGIN IMMEDIATE");
    in_transaction_ = status_.ok();
  }
  return status_.ok();
}

sqlite3_stmt* CaptureFile::Prepare(sqlite3_stmt** statement, const std::string& sql) {
  if (sqlite3_prepare_v3(database_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, statement, nullptr) !=
      SQLITE_OK) {
    status_ = Error();
  }
  return *statement;
}

sqlite3_stmt* CaptureFile::InsertInto(Table table, std::initializer_list<const char*> columns) {
  ++num_pending_rows_;
  if (!Begin()) return nullptr;
  std::vector<InsertStatement>& inserts = inserts_[static_cast<int>(table)];
  // The addresses of the literals tell one place in the code from another.
  for (const InsertStatement& insert : inserts) {
    if (std::equal(columns.begin(), columns.end(), insert.columns.begin(), insert.columns.end())) {
      return insert.statement;
    }
  }
  const TableSchema& schema = SchemaOf(table);
  if (!schema.is_made_at_once) status_ = MakeTable(table);
  if (!status_.ok()) return nullptr;
  std::string values = "?";
  for (size_t i = 1; i < columns.size(); ++i) values += ",?";
  sqlite3_stmt* statement = nullptr;
  Prepare(&statement, absl::StrCat("INSERT INTO ", schema.name, " (", absl::StrJoin(columns, ","),
                                   ") VALUES (", values, ")"));
  if (statement != nullptr) inserts.push_back({columns, statement});
  return statement;
}

void CaptureFile::Run(sqlite3_stmt* statement) {
  if (sqlite3_step(statement) != SQLITE_DONE && status_.ok()) status_ = Error();
  sqlite3_reset(statement);
}

void CaptureFile::Bind(sqlite3_stmt* statement, int column, std::string_view value) {
  const bool is_valid = IsAscii(value);
  const std::string valid = is_valid ? std::string() : ValidUtf8(value);
  const std::string_view bound = is_valid ? value : valid;
  // An empty view may have no address, which SQLite takes for NULL.
  sqlite3_bind_text(statement, column, bound.empty() ? "" : bound.data(), static_cast<int>(bound.size()),
                    is_valid ? SQLITE_STATIC : SQLITE_TRANSIENT);
}

int64_t CaptureFile::StringId(std::string_view text) {
  const auto [found, is_new] = strings_.emplace(text, static_cast<int64_t>(strings_.size()));
  if (is_new) {
    pending_strings_.push_back(&found->first);
    Insert(Table::kStringIds, Column{"id", found->second}, Column{"value", text});
  }
  return found->second;
}

absl::Status CaptureFile::Flush() {
  if (!in_transaction_ && status_.ok()) return absl::OkStatus();
  if (status_.ok()) {
    const absl::Status committed = Execute("COMMIT");
    // Somebody reads the file; the transaction stands.
    if (absl::IsUnavailable(committed)) return committed;
    status_ = committed;
  }
  const absl::Status status = std::exchange(status_, absl::OkStatus());
  if (!status.ok()) RollBack();
  in_transaction_ = false;
  num_pending_rows_ = 0;
  pending_strings_.clear();
  return status;
}

void CaptureFile::RollBack() {
  FinalizeStatements();
  // SQLite may have done it already.
  sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  for (const std::string* text : pending_strings_) strings_.erase(strings_.find(*text));
}

void CaptureFile::FinalizeStatements() {
  for (std::vector<InsertStatement>& inserts : inserts_) {
    for (const InsertStatement& insert : inserts) sqlite3_finalize(insert.statement);
    inserts.clear();
  }
}

CaptureFile::~CaptureFile() {
  FinalizeStatements();
  sqlite3_close(database_);
}

}  // namespace ott::profile
