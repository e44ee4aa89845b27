// Formats what a comparison found, for people and for programs.

#ifndef OTT_CORE_COMPARE_REPORT_H_
#define OTT_CORE_COMPARE_REPORT_H_

#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "ott/core/compare/compare.h"
#include "ott/core/tensor/value.h"

namespace ott {

// Lists what failed with its figures, at most max_failures of them, then how many passed in which way, and a
// last line that starts with the verdict. Ends with a newline.
std::string ToText(const TreeComparison& comparison, int max_failures = 20);

// Returns the line that starts with the verdict, without a newline: "equal (bit for bit): 12 bitwise equal".
std::string SummaryText(const TreeComparison& comparison);

// Returns {"verdict": ..., "bitwise_equal": ..., "results": [{"path": ..., "status": ..., ...}]}, as
// WriteJson writes it. Figures that are no numbers are the texts "NaN", "Infinity" and "-Infinity".
std::string ToJson(const TreeComparison& comparison);

// Returns one line for each result, under a line with the columns' names: path, status, dtype, shape, the
// figures, detail (RFC 4180, lines end with \n).
std::string ToCsv(const TreeComparison& comparison);

// Returns one test case for each result, failed if it does not pass, and one for the verdict; in the form CI
// servers read.
std::string ToJUnitXml(const TreeComparison& comparison);

// Parts of these for reports of several comparisons.

// Makes a text that may hold any bytes, as names may, printable: as one line without control characters; and
// as UTF-8, for formats that escape control characters themselves.
std::string Printable(const std::string& text);
std::string AsUtf8(const std::string& text);

// Returns true for a result that is no answer, which is neither a pass nor a difference.
bool CouldNotCompare(CompareStatus status);

Value ToValue(const TreeComparison& comparison);
Value ToValue(const NamedComparison& result);

// Returns "flipped bit 20" or "flipped bits 3, 20"; empty if more bits differ, as after other arithmetic:
// then their numbers say nothing of a device that flips some.
std::string FlippedBitsText(absl::Span<const int> bits);

// Returns a line, indented, for each of the worst elements.
std::string WorstLines(const NamedComparison& result);

inline constexpr char kCsvColumns[] =
    "path,status,dtype,shape,num_elements,num_mismatched,num_bits_differ,max_abs_error,max_rel_error,"
    "mean_abs_error,root_mean_square_error,cosine_similarity,max_ulp_distance,num_nan_reference,"
    "num_nan_current,num_inf_reference,num_inf_current,passing_atol,passing_rtol,detail";

// Lines of these columns, each behind a prefix.
std::string CsvLines(const TreeComparison& comparison, std::string_view prefix = "");

// Returns a test suite of this name.
std::string JUnitSuite(const TreeComparison& comparison, std::string_view name);

// Returns the document with these suites.
std::string JUnitDocument(std::string_view suites);

}  // namespace ott

#endif  // OTT_CORE_COMPARE_REPORT_H_
