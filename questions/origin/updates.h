// Judges updates: what they add to their parameters, and those that one run alone makes.

#ifndef OTT_QUESTIONS_ORIGIN_UPDATES_H_
#define OTT_QUESTIONS_ORIGIN_UPDATES_H_

#include <optional>
#include <string>

#include "ott/core/op_log/op_log_reader.h"
#include "ott/questions/origin/aligned_ops.h"
#include "ott/questions/origin/candidate.h"
#include "ott/questions/origin/rounding.h"

namespace ott::origin {

// An update may jump where a gradient passes zero, as the first step of Adam, which is its sign: in so many
// elements by so many times what it adds on average.
inline constexpr int kFewSteps = 4;

// Returns the input that an update changed into this output; -1: none.
int InputUpdated(const LoggedOp& op, int output);

// Returns how far an update's output may be off, of its norm, since what it adds jumps in so many elements.
double StepAllowance(const LoggedOp& a, int output, double num_steps);

// Says how far what an update adds to its parameter is off, over its norm, and how far its other inputs
// explain.
struct IncrementExcess {
  double difference = 0;
  double explained = 0;
  // True if what is explained are jumps of many elements, and most sums are off.
  bool is_doubtful = false;
  // How many times as much it adds as the reference's, if that is what is off.
  double scale = 1;
  // The least by which its scale or its elements could be off and be noticed.
  double unseen = 0;
  double times() const { return explained > 0 ? difference / explained : 0; }
};

// a, b, perturbed: the same operation in the reference, in the other run and in the perturbed one. Returns
// nullopt if output `tensor` is not an update's.
std::optional<IncrementExcess> ExcessOfIncrement(const LoggedOp& a, const LoggedOp& b,
                                                 const LoggedOp& perturbed, int tensor,
                                                 const RoundedOutput& output);

// Returns the first update that only one run made, though the other one makes it in other iterations, or
// once less in this one. Nothing need read what it makes. `first_in_last` becomes the first update of the
// last iteration that only one run logged, where the other one logs none like it in any: "adam (fc1) in
// iteration 2".
std::optional<Candidate> FindLoneUpdate(const AlignedOps& aligned, std::string& first_in_last);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_UPDATES_H_
