// The columns of `ott prof`.

#ifndef OTT_QUESTIONS_KERNELS_PROF_COLUMN_H_
#define OTT_QUESTIONS_KERNELS_PROF_COLUMN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/kernels/kernel_rows.h"

namespace ott::kernels {

// A value of a row: a text, a number, not known ("na"), or not there ("-").
struct ProfCell {
  enum class Kind : uint8_t { kText, kInteger, kReal, kUnknown, kAbsent };

  Kind kind = Kind::kAbsent;
  std::string_view text;
  int64_t integer = 0;
  double real = 0;

  bool is_number() const { return kind == Kind::kInteger || kind == Kind::kReal; }
  double number() const { return kind == Kind::kInteger ? static_cast<double>(integer) : real; }
};

ProfCell TextCell(std::string_view text);  // "": not there
ProfCell IntegerCell(int64_t integer);     // kNoInteger: not there
ProfCell RealCell(double real);            // NaN: not known

// Appends what a cell shows; with spaces and control characters as '_' where one word is asked for.
void AppendCell(const ProfCell& cell, bool one_word, std::string* text);

struct ProfColumn {
  std::string_view name;
  std::string_view meaning;
  ProfCell (*get)(const KernelRow& row);
};

const std::vector<ProfColumn>& ProfColumns();

// Parses "idx,op,sil", or "all". INVALID_ARGUMENT names what is no column, and those that are.
absl::StatusOr<std::vector<const ProfColumn*>> ParseProfColumns(std::string_view names);

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_PROF_COLUMN_H_
