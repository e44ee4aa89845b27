#include "ott/core/base/csv.h"

namespace ott {

std::string CsvField(std::string_view text) {
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos) {
    return CsvField(std::string("'").append(text));
  }
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field.append(c == '"' ? 2 : 1, c);
  field.push_back('"');
  return field;
}

}  // namespace ott
