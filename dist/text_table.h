// Columns of text, aligned.

#ifndef OTT_DIST_TEXT_TABLE_H_
#define OTT_DIST_TEXT_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

namespace ott {

// The first and the last column are flush left, the others flush right. Control characters in cells are
// escaped, so a row is a line whatever the names in it.
//
//   TextTable table({"name", "mean", "where"});
//   table.AddRow({"forward", "1.2 ms", "rank 3"});
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header);

  // REQUIRES: as many cells as the header has.
  void AddRow(std::vector<std::string> cells);

  // Each line ends with a newline and has no trailing spaces.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Control characters and backslashes as \n, \t, \xNN, \\; all else, UTF-8 included, as it is.
std::string EscapeControlCharacters(std::string_view text);

// "12.3 ms": four significant digits in s, ms, us or ns.
std::string FormatSeconds(double seconds);

}  // namespace ott

#endif  // OTT_DIST_TEXT_TABLE_H_
