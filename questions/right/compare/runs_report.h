// The comparison of two runs, for people and for programs.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_RUNS_REPORT_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_RUNS_REPORT_H_

#include <string>

#include "ott/questions/right/compare/compare_runs.h"

namespace ott::compare {

// Returns a text for people. The line of the first divergence has all there is to know: iteration, rank,
// tensor, element, bits.
std::string ToText(const RunsComparison& comparison);

// Returns "iteration 30, rank 2, weights.w1: mismatch, first at element 517 ..."; empty if no tensor differs.
std::string DescribeFirstDivergence(const RunsComparison& comparison);

// Returns "iteration 10, rank 1, could not compare: ...; and 3 more", of the dumps that differ in nothing and
// of which not all could be compared; empty if there is none.
std::string DescribeNotCompared(const RunsComparison& comparison);

// Returns the members of RunsComparison, laid out as Python's json.dump(indent=2) does.
std::string ToJson(const RunsComparison& comparison);

// Returns one line for each tensor of each dump: iteration, rank, and the columns of core/compare/report.h;
// then one for each problem. REQUIRES, as does the next: CompareRunsOptions::keep_results.
std::string ToCsv(const RunsComparison& comparison);

// Returns a test suite for each dump, and one for the problems.
std::string ToJUnitXml(const RunsComparison& comparison);

}  // namespace ott::compare

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_RUNS_REPORT_H_
