// Verdicts of cross-checks for people and for programs.

#ifndef OTT_DIST_CHECK_VERDICT_H_
#define OTT_DIST_CHECK_VERDICT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/check/cross_check.pb.h"

namespace ott {

// Returns true if what was compared is equal, or within tolerance.
bool Passed(const CrossCheckVerdict& verdict);

// Returns the outcome of all ranks: the worst one if rank 0 could be heard, else this rank's.
Outcome OutcomeOfAllRanks(const CrossCheckVerdict& verdict);

// Finds what diverged first, in all ranks' verdicts on a reference in one iteration. That is the verdict with
// the worst outcome; of several, the one whose tensor comes first in order of insertion; of several, that of
// the lowest rank. Sets worst_outcome, worst_rank, first_tensor, first_ranks and num_ranks in all verdicts
// accordingly.
// REQUIRES: there is one
void FindFirst(std::vector<CrossCheckVerdict>& verdicts);
// Does the same for one verdict after the other: `first`, which is empty before, becomes the one that
// FindFirst() would find, with these fields set.
void AddToFirst(CrossCheckVerdict verdict, CrossCheckVerdict& first);

// Returns how much worse an outcome is than a pass: 0 for BITWISE_EQUAL to 3 for DIFFERENT.
int SeverityOf(Outcome outcome);

// Sets the verdict's outcome if it is worse than what it was.
void Worsen(Outcome outcome, CrossCheckVerdict& verdict);
void AddReason(std::string_view reason, CrossCheckVerdict& verdict);

// One line, and one more for each further difference. Ends with a newline.
//
//   iteration 30: replicas DIFFER in tensor "weights.w1" (float32 [64, 32]), the first of 2 of 6: rank 2
//   (node1)
//       element 517 = [16, 5]: 3.5e+37 on rank 2 (node1) instead of 0.25; 1065353216 ULP; flipped bit 30
std::string FormatVerdict(const CrossCheckVerdict& verdict);
// Returns the same line by line, without newlines.
std::vector<std::string> VerdictLines(const CrossCheckVerdict& verdict);

// Returns the part of FormatVerdict() that says what was found, without where and by whom: "DIFFER in tensor
// ...: rank 2 (node1)".
std::string FormatFinding(const CrossCheckVerdict& verdict);

// Adds to the count of a kind, which is appended where it is new.
void CountKind(TensorKind kind, bool is_different, google::protobuf::RepeatedPtrField<KindCount>& counts);

// Returns "parameters 27 of 27, gradients 0 of 27, optimizer state 0 of 81: gradients are equal, so it is the
// update or what became of them before it". Empty if there is but one kind, or nothing differs.
std::string FormatKinds(const google::protobuf::RepeatedPtrField<KindCount>& counts);

// Returns one line of JSON, with the names of cross_check.proto, and its newline.
std::string VerdictToJsonLine(const CrossCheckVerdict& verdict);

// Does the inverse. INVALID_ARGUMENT for what is no verdict. unknown: as of JsonToProto().
absl::StatusOr<CrossCheckVerdict> ParseVerdict(std::string_view json_line, std::string* unknown = nullptr);

}  // namespace ott

#endif  // OTT_DIST_CHECK_VERDICT_H_
