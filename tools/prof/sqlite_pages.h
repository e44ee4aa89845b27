// The rows of a table straight from the pages of an SQLite file, several times as fast as by its library.

#ifndef OTT_TOOLS_PROF_SQLITE_PAGES_H_
#define OTT_TOOLS_PROF_SQLITE_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ott::prof {

struct SqliteValue {
  enum class Type : uint8_t { kNull, kInteger, kReal, kText, kBlob };

  Type type = Type::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string_view bytes;  // of a text or a blob
};

// One row, valid until the next.
class SqliteRow {
 public:
  using Type = SqliteValue::Type;

  explicit SqliteRow(const std::vector<SqliteValue>& values) : values_(values) {}

  Type type(int column) const { return values_[static_cast<size_t>(column)].type; }
  // Of a text or a blob; else "".
  std::string_view bytes(int column) const {
    const SqliteValue& value = values_[static_cast<size_t>(column)];
    return value.type == Type::kText || value.type == Type::kBlob ? value.bytes : std::string_view();
  }
  // False, with *value left alone, for what is no integer (NULL included).
  bool GetInteger(int column, int64_t* value) const {
    const SqliteValue& cell = values_[static_cast<size_t>(column)];
    if (cell.type != Type::kInteger) return false;
    *value = cell.integer;
    return true;
  }

 private:
  const std::vector<SqliteValue>& values_;
};

// Format: https://www.sqlite.org/fileformat2.html, table b-trees of UTF-8 databases without a write-ahead
// log. Not thread-safe. Whoever opens it keeps writers away.
class SqlitePages {
 public:
  // Keeps the file open until the end: to close it would give up the locks that the library holds on it.
  static absl::StatusOr<std::unique_ptr<SqlitePages>> Open(const std::string& path);
  SqlitePages(const SqlitePages&) = delete;
  SqlitePages& operator=(const SqlitePages&) = delete;
  ~SqlitePages();

  // Reads the header. False for files of another kind, which the library can read.
  bool IsPlain();
  // Calls read for each row with the values of these columns: indices in the table, -1 for none, which reads
  // as NULL. rowid_column: the column that stands for the row's id, -1 if there is none. DATA_LOSS where the
  // pages do not make a table. REQUIRES: IsPlain() said so.
  absl::Status Scan(uint32_t root_page, const std::vector<int>& columns, int rowid_column,
                    const std::function<void(const SqliteRow&)>& read);

 private:
  explicit SqlitePages(int fd) : fd_(fd) {}

  // Some pages of the file.
  struct Pages {
    uint32_t first = 0;
    uint32_t count = 0;
    std::vector<uint8_t> bytes;
  };

  // A page, valid until the next call with these pages; nullptr if it is not there.
  const uint8_t* Page(uint32_t number, Pages* pages) const;
  absl::Status ReadLeaf(const uint8_t* page, size_t header);
  // False if the record is not one.
  bool ReadRecord(const uint8_t* record, size_t size, int64_t rowid);
  // A record that goes on in overflow pages.
  bool ReadOverflow(const uint8_t* local, size_t local_size, size_t size);

  const int fd_;
  size_t page_size_ = 0;
  size_t usable_size_ = 0;
  uint32_t num_pages_ = 0;
  Pages tree_;
  Pages overflow_;
  std::vector<uint8_t> record_;  // put together from overflow pages

  // Of the scan under way.
  std::vector<int> slots_;  // of each column up to the last wanted one: where it goes in values_, or -1
  std::vector<SqliteValue> values_;
  int rowid_slot_ = -1;
  const std::function<void(const SqliteRow&)>* read_ = nullptr;
};

}  // namespace ott::prof

#endif  // OTT_TOOLS_PROF_SQLITE_PAGES_H_
