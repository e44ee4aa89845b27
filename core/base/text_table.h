// Columns of text, aligned.

#ifndef OTT_CORE_BASE_TEXT_TABLE_H_
#define OTT_CORE_BASE_TEXT_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

namespace ott {

// The first column is flush left, the others are flush right; the last one may be flush left instead. Control
// characters in cells are escaped, so a row is a line whatever the names in it.
//
//   TextTable table({"name", "mean", "where"}, TextTable::LastColumn::kLeft);
//   table.AddRow({"forward", "1.2 ms", "rank 3"});
class TextTable {
 public:
  enum class LastColumn { kLeft, kRight };

  explicit TextTable(std::vector<std::string> header, LastColumn last_column = LastColumn::kRight);

  // REQUIRES: as many cells as the header has.
  void AddRow(std::vector<std::string> cells);

  // Returns true if there are no rows but the header.
  bool empty() const { return rows_.size() == 1; }

  // Each line ends with a newline and has no trailing spaces.
  std::string ToString() const;

 private:
  const LastColumn last_column_;
  std::vector<std::vector<std::string>> rows_;
};

// Control characters and backslashes as \n, \t, \xNN, \\, and what EscapeDirections() escapes; all else,
// UTF-8 included, as it is.
std::string EscapeControlCharacters(std::string_view text);

// Escapes what makes a terminal or browser show a text in another order or place than it is in, as \uNNNN:
// Unicode's marks of direction, its separators of lines, and its control characters beyond ASCII. ASCII as it
// is.
std::string EscapeDirections(std::string_view text);

// "12.3 ms": four significant digits in s, ms, us or ns.
std::string FormatSeconds(double seconds);

// The same for the cells of a column: "12.30 ms" and "1.000 s ", so that the decimal points of one unit are
// aligned.
std::string FormatSecondsCell(double seconds);

}  // namespace ott

#endif  // OTT_CORE_BASE_TEXT_TABLE_H_
