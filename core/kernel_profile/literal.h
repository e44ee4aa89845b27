// JSON values and Python literals: what labels of ranges are written in.

#ifndef OTT_CORE_KERNEL_PROFILE_LITERAL_H_
#define OTT_CORE_KERNEL_PROFILE_LITERAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ott::kernels {

struct Literal {
  enum class Kind { kOther, kNumber, kList, kMap };

  Kind kind = Kind::kOther;
  double number = 0;  // true and false are 1 and 0
  std::string text;
  std::vector<Literal> items;      // of a list or a tuple; a map's values
  std::vector<std::string> names;  // a map's, in the order of items

  bool is_number() const { return kind == Kind::kNumber; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }

  // Returns a map's value, the first where a name is there twice; nullptr where there is none.
  const Literal* Find(std::string_view name) const;
  // Returns a map's text; "" if there is none.
  std::string_view FindText(std::string_view name) const;
  // Returns a list of sizes, as of a tensor; absent for anything else.
  std::optional<std::vector<int64_t>> ToShape() const;
};

// Text in single or double quotes, numbers (also inf and nan), lists, tuples, maps, and both languages' words
// for true, false and nothing. Absent for anything else, and for nesting deeper than 64.
std::optional<Literal> ParseLiteral(std::string_view text);

}  // namespace ott::kernels

#endif  // OTT_CORE_KERNEL_PROFILE_LITERAL_H_
