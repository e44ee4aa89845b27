#include "ott/questions/origin/candidate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ott::origin {
namespace {

std::string DescribeWriter(const LoggedOps& ops, int64_t writer) {
  if (writer < 0) return "no operation that was logged";
  const OpDefinition& definition = ops.ops[writer].definition();
  return absl::StrCat(DescribeOperation(definition), " in iteration ",
                      IterationOf(ops, static_cast<size_t>(writer)));
}

// Returns true if they have the same elements, in whatever order, as far as their statistics tell.
bool HaveSameElements(const LoggedOp& a, int tensor_a, const LoggedOp& b, int tensor_b) {
  constexpr double kOtherOrder = 1e-6;
  const OpTensorDefinition& of_a = a.definition().tensors[tensor_a];
  const OpTensorDefinition& of_b = b.definition().tensors[tensor_b];
  const double norm = a.norm(tensor_a);
  return a.is_known(tensor_a) && b.is_known(tensor_b) && norm > 0 && std::isfinite(norm) &&
         of_a.num_elements == of_b.num_elements && of_a.dtype == of_b.dtype &&
         a.max_abs(tensor_a) == b.max_abs(tensor_b) &&
         std::abs(b.norm(tensor_b) - norm) <= kOtherOrder * norm;
}

// Returns the last operation before `reader` that wrote the elements of this tensor in another shape or
// order, as digests do not tell and views are not logged; -1: none.
int64_t WriterOfView(const LoggedOps& ops, size_t reader, int tensor) {
  for (auto op = static_cast<int64_t>(reader) - 1; op >= 0; --op) {
    const LoggedOp& other = ops.ops[op];
    for (int i = 0; i < other.num_tensors(); ++i) {
      if (other.definition().tensors[i].is_output && HaveSameElements(other, i, ops.ops[reader], tensor)) {
        return op;
      }
    }
  }
  return -1;
}

// Says since when it may have come, if the iterations before that of an operation of b were not logged.
std::string DescribeUnlogged(const AlignedOps& aligned, size_t op_b) {
  const int64_t iteration = IterationOf(*aligned.b, op_b);
  const auto here =
      std::lower_bound(aligned.iterations.begin(), aligned.iterations.end(), iteration,
                       [](const AlignedOps::Iteration& a, int64_t number) { return a.number < number; });
  const int64_t before = here == aligned.iterations.begin() ? -1 : std::prev(here)->number;
  if (before + 1 >= iteration) return "";
  return absl::StrCat("; it may be of iterations ", before + 1, " to ", iteration - 1,
                      ", which were not logged: log them to see");
}

}  // namespace

std::string DescribeOperation(const OpDefinition& definition) {
  return definition.module.empty() ? definition.name
                                   : absl::StrCat(definition.name, " (", definition.module, ")");
}

bool IsSameOperation(const OpDefinition& a, const OpDefinition& b) {
  return a.name == b.name && a.module == b.module && a.is_backward == b.is_backward;
}

Candidate ExplainInput(const AlignedOps& aligned, const OpPair& pair, const TensorPair& tensor,
                       const InputWriters& writers, double difference) {
  const LoggedOp& b = aligned.op_b(pair);
  const std::string& name = b.definition().tensors[tensor.b].name;
  Candidate candidate;
  candidate.kind = OriginVerdict::INPUT;
  candidate.op = &b;
  candidate.tensor = name;
  candidate.tensor_a = tensor.a;
  candidate.tensor_b = tensor.b;
  candidate.tensor_is_output = false;
  candidate.difference = difference;
  const auto name_operation = [&](const LoggedOps& ops, int64_t index, std::string detail) {
    const LoggedOp& op = ops.ops[index];
    candidate.iteration = IterationOf(ops, static_cast<size_t>(index));
    candidate.kind =
        op.definition().role == OpRole::kUpdate ? OriginVerdict::UPDATE : OriginVerdict::OPERATION;
    candidate.op = &op;
    candidate.tensor_a = candidate.tensor_b = -1;
    candidate.detail = std::move(detail);
  };
  const std::string reader = DescribeOperation(b.definition());
  if (writers.first_inserted >= 0) {
    name_operation(*aligned.b, writers.first_inserted,
                   absl::StrCat("the reference does not run it; ", reader, " reads what it makes as ", name));
    return candidate;
  }
  if (writers.a >= 0 && aligned.partner_of_a[writers.a] < 0) {
    name_operation(*aligned.a, writers.a,
                   absl::StrCat("only the reference runs it; ", reader, " reads what ",
                                DescribeWriter(*aligned.b, writers.b), " wrote as ", name));
    return candidate;
  }
  const std::string by_a = DescribeWriter(*aligned.a, writers.a);
  const std::string by_b = DescribeWriter(*aligned.b, writers.b);
  const int64_t viewed =
      writers.a < 0 && writers.b < 0 && tensor.a >= 0 ? WriterOfView(*aligned.a, pair.a, tensor.a) : -1;
  if (viewed >= 0) {
    candidate.last_written_by = DescribeWriter(*aligned.a, viewed);
    candidate.detail = absl::StrCat("it is no view of what ", candidate.last_written_by,
                                    " wrote, as in the reference: something that is not logged wrote it");
  } else if (writers.a < 0 && writers.b < 0) {
    // A small difference of the same elements is one of their values.
    constexpr double kMoved = 0.01;
    const bool is_permuted =
        tensor.a >= 0 && difference > kMoved && HaveSameElements(aligned.op_a(pair), tensor.a, b, tensor.b);
    candidate.detail = absl::StrCat(
        is_permuted ? "it has the reference's elements in another order, as a transposed tensor has; " : "",
        "no operation that was logged made it, in either run", DescribeUnlogged(aligned, pair.b));
  } else if (writers.a >= 0 && writers.b >= 0) {
    candidate.last_written_by = by_b;
    candidate.detail =
        absl::StrCat("it is what ", by_b, " wrote; in the reference it is what ", by_a, " wrote");
  } else if (writers.b < 0) {
    candidate.last_written_by = by_a;
    candidate.detail = absl::StrCat("it is not what ", by_a,
                                    " wrote, as in the reference: something that is not logged wrote it");
  } else {
    candidate.last_written_by = by_b;
    candidate.detail =
        absl::StrCat("it is what ", by_b, " wrote; in the reference something that is not logged wrote it");
  }
  return candidate;
}

}  // namespace ott::origin
