// A verdict about a hang as people read it.

#ifndef OTT_QUESTIONS_HANG_HANG_REPORT_H_
#define OTT_QUESTIONS_HANG_HANG_REPORT_H_

#include <string>

#include "ott/questions/hang/hang.pb.h"

namespace ott {

// Returns the verdict on the first line, then notes, then a table of the ranks: those that are in the same
// place for the same reason share a row. Culprits are marked and come first. Ends with a newline.
std::string FormatHangVerdict(const HangVerdict& verdict);

// Does the same without the first line.
std::string FormatHangRanks(const HangVerdict& verdict);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_HANG_REPORT_H_
