#include "ott/questions/origin/kept_tensors.h"

#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/op_log/op_log.h"

namespace ott::origin {
namespace {

// The dump owns the tensor.
struct Kept {
  Dump dump;
  const Tensor* tensor = nullptr;
};

std::optional<Kept> Read(const KeptTensor& kept) {
  absl::StatusOr<Dump> dump = ReadDump(absl::StrCat(kept.dir, "/", kept.iteration));
  if (!dump.ok()) return std::nullopt;
  const bool is_output = kept.op->definition().tensors[kept.tensor].is_output;
  int index = 0;
  for (int i = 0; i < kept.tensor; ++i) {
    if (kept.op->definition().tensors[i].is_output == is_output) ++index;
  }
  // The path has two parts: the operation, and which of its tensors.
  const std::string path = OpTensorPath(kept.op->number(), is_output, index);
  const size_t dot = path.find('.');
  Kept result{*std::move(dump)};
  const Value* value = &result.dump.tensors;
  for (const std::string& part : {path.substr(0, dot), path.substr(dot + 1)}) {
    if (value == nullptr || value->kind() != Value::Kind::kMap) return std::nullopt;
    value = value->map().Find(part);
  }
  if (value == nullptr || !value->is_tensor()) return std::nullopt;
  result.tensor = &value->tensor();
  return result;
}

}  // namespace

std::optional<KeptComparison> CompareKept(const KeptTensor& reference, const KeptTensor& current) {
  const std::optional<Kept> a = Read(reference);
  const std::optional<Kept> b = Read(current);
  if (!a || !b) return std::nullopt;
  TensorCompareOptions options;
  options.compare_dtype = false;
  options.tolerance.bitwise = true;
  const TensorComparison comparison = CompareTensors(*a->tensor, *b->tensor, options);
  if (!comparison.max_rel_error) return std::nullopt;
  KeptComparison result;
  const double norm_of_reference = reference.op->norm(reference.tensor);
  const double norm = norm_of_reference > 0 ? norm_of_reference : current.op->norm(current.tensor);
  const double difference =
      comparison.root_mean_square_error * std::sqrt(static_cast<double>(comparison.num_elements));
  result.relative_difference = norm > 0 ? difference / norm : 0;
  result.text = absl::StrFormat("%d of %d elements, max rel error %.2g", comparison.num_mismatched,
                                comparison.num_elements, comparison.max_rel_error->error);
  return result;
}

}  // namespace ott::origin
