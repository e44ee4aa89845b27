// Says which operation may be the first that computed something else.

#ifndef OTT_QUESTIONS_ORIGIN_CANDIDATE_H_
#define OTT_QUESTIONS_ORIGIN_CANDIDATE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "ott/core/op_log/op_log_reader.h"
#include "ott/questions/origin/aligned_ops.h"
#include "ott/questions/origin/differences.h"
#include "ott/questions/origin/origin.pb.h"

namespace ott::origin {

struct Candidate {
  OriginVerdict::Kind kind = OriginVerdict::OPERATION;
  // The iteration of the operation to name.
  int64_t iteration = -1;
  // The iteration in which the difference was found, and where among its pairs. An operation that only one
  // run has shows where its output is read.
  int64_t found_in = 0;
  size_t position = 0;
  // The index in AlignedOps::pairs from which it spreads.
  size_t pair = 0;
  // The operation to name.
  const LoggedOp* op = nullptr;
  // The tensor's name, and which of op's it is; -1: of none.
  std::string tensor;
  int tensor_a = -1;
  int tensor_b = -1;
  bool tensor_is_output = true;
  double difference = 0;
  double input_difference = 0;
  double explained = 0;
  // These are of what an update adds to the tensor, over its norm.
  bool of_increment = false;
  // Says what is wrong where that is no computation: an operation that is missing, a value that is stale.
  std::string detail;
  std::string last_written_by;
};

// Compares by name, module and direction.
bool IsSameOperation(const OpDefinition& a, const OpDefinition& b);

// Returns "linear (fc1)": the name, and the module if there is one.
std::string DescribeOperation(const OpDefinition& definition);

// The operations that wrote the value of an input, in the logs of run a and of run b; -1: none that was
// logged.
struct InputWriters {
  int64_t a = -1;
  int64_t b = -1;
  // If only b ran the writer: the first of the operations that only b ran which led to it.
  int64_t first_inserted = -1;
};

// Explains why an input differs of which no pair of operations made both values.
Candidate ExplainInput(const AlignedOps& aligned, const OpPair& pair, const TensorPair& tensor,
                       const InputWriters& writers, double difference);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_CANDIDATE_H_
