// The answer, for people and for programs.

#ifndef OTT_QUESTIONS_FASTER_REPORT_H_
#define OTT_QUESTIONS_FASTER_REPORT_H_

#include <string>

#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/samples.h"

namespace ott::ab {

// "B is faster by 4.1 % (99 %: 3.2 to 5.0 %)", without a newline.
std::string DescribeAnswer(const Comparison& comparison);

// "6 runs a side: B / A -3.1 % (-4.4 to -1.8 %)", for who waits.
std::string DescribeProgress(const Comparison& comparison);

// The answer, the measurements, what accounts for the change, and what makes the answer weak.
std::string ToText(const Comparison& comparison);

// verdict, ratio, low, high, runs_needed (null where there is none), the same by measurement, and every
// sample.
std::string ToJson(const Comparison& comparison, const Samples& samples);

// A line for each measurement, the primary one first.
std::string ToCsv(const Comparison& comparison);

// A test for each measurement: slower is a failure, cannot tell an error.
std::string ToJUnitXml(const Comparison& comparison);

}  // namespace ott::ab

#endif  // OTT_QUESTIONS_FASTER_REPORT_H_
