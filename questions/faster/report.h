// The answer, for people and for programs.

#ifndef OTT_QUESTIONS_FASTER_REPORT_H_
#define OTT_QUESTIONS_FASTER_REPORT_H_

#include <string>

#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/samples.h"

namespace ott::faster {

// Returns "B is faster by 4.1 % (99 %: 3.2 to 5.0 %)", without a newline.
std::string DescribeAnswer(const Comparison& comparison);

// Returns "6 runs a side: B / A -3.1 % (-4.4 to -1.8 %)", for who waits.
std::string DescribeProgress(const Comparison& comparison);

// Returns the answer, the measurements, what accounts for the change, and what makes the answer weak.
std::string ToText(const Comparison& comparison);

// Returns verdict, ratio, low, high, runs_needed (null if there is none), the same by measurement, and every
// sample.
std::string ToJson(const Comparison& comparison, const Samples& samples);

// Returns a line for each measurement, the primary one first.
std::string ToCsv(const Comparison& comparison);

// Returns a test for each measurement: slower is a failure, cannot tell an error.
std::string ToJUnitXml(const Comparison& comparison);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_REPORT_H_
