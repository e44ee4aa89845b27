// The rows of a table straight from the pages of an SQLite file, ten times as fast as by its library.

#ifndef OTT_TOOLS_PROF_SQLITE_PAGES_H_
#define OTT_TOOLS_PROF_SQLITE_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/file.h"

namespace ott {

struct SqliteValue {
  enum class Type : uint8_t { kNull, kInteger, kReal, kText, kBlob };

  Type type = Type::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string_view bytes;  // of a text or a blob, until the next row
};

// Format: https://www.sqlite.org/fileformat2.html, table b-trees of UTF-8 databases without a write-ahead
// log. Not thread-safe. Whoever opens it keeps writers away.
class SqlitePages {
 public:
  // FAILED_PRECONDITION for files of another kind, which the library can read.
  static absl::StatusOr<std::unique_ptr<SqlitePages>> Open(const std::string& path);
  // Calls read for each row with the values of these columns: indices in the table, -1 for none, which reads
  // as NULL. rowid_column: the column that stands for the row's id, -1 if there is none. DATA_LOSS where the
  // pages do not make a table.
  absl::Status Scan(uint32_t root_page, const std::vector<int>& columns, int rowid_column,
                    const std::function<void(const std::vector<SqliteValue>&)>& read);

 private:
  SqlitePages(std::shared_ptr<const MappedFile> file, size_t page_size, size_t usable_size);

  // nullptr if it is not there.
  const uint8_t* Page(uint32_t number);
  absl::Status ReadLeaf(const uint8_t* page, size_t header);
  // False if the record is not one.
  bool ReadRecord(const uint8_t* record, size_t size, int64_t rowid);
  // A record that goes on in overflow pages.
  bool ReadOverflow(const uint8_t* local, size_t local_size, size_t size);

  const std::shared_ptr<const MappedFile> file_;
  const size_t page_size_;
  const size_t usable_size_;
  const uint32_t num_pages_;
  uint32_t num_touched_ = 0;     // pages since memory was last given back
  std::vector<uint8_t> record_;  // put together from overflow pages

  // Of the scan under way.
  std::vector<int> slots_;  // of each column up to the last wanted one: where it goes in values_, or -1
  std::vector<SqliteValue> values_;
  int rowid_slot_ = -1;
  const std::function<void(const std::vector<SqliteValue>&)>* read_ = nullptr;
};

}  // namespace ott

#endif  // OTT_TOOLS_PROF_SQLITE_PAGES_H_
