#include "ott/core/tensor/scattered_elements.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/strided_copy.h"

namespace ott {
namespace {

bool IsAligned(const TensorView& view) {
  const int64_t alignment = IsComplex(view.dtype()) ? SizeOf(view.dtype()) / 2 : SizeOf(view.dtype());
  return reinterpret_cast<uintptr_t>(view.data()) % static_cast<uintptr_t>(alignment) == 0;
}

bool Overlap(const TensorPart& a, const TensorPart& b) {
  for (size_t dim = 0; dim < a.offset.size(); ++dim) {
    if (a.offset[dim] >= b.offset[dim] + b.tensor.view.shape()[dim] ||
        b.offset[dim] >= a.offset[dim] + a.tensor.view.shape()[dim]) {
      return false;
    }
  }
  return true;
}

bool Lies(const TensorPart& part, absl::Span<const int64_t> index) {
  for (size_t dim = 0; dim < index.size(); ++dim) {
    if (index[dim] < part.offset[dim] || index[dim] - part.offset[dim] >= part.tensor.view.shape()[dim]) {
      return false;
    }
  }
  return true;
}

// REQUIRES: the parts are sorted by offset and have elements
absl::Status CheckOverlaps(const std::vector<TensorPart>& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t end = parts[i].offset.empty() ? 1 : parts[i].offset[0] + parts[i].tensor.view.shape()[0];
    for (size_t j = i + 1; j < parts.size() && (parts[j].offset.empty() || parts[j].offset[0] < end); ++j) {
      if (!Overlap(parts[i], parts[j])) continue;
      return absl::InvalidArgumentError(absl::StrCat("its parts at ", ShapeToString(parts[i].offset), " and ",
                                                     ShapeToString(parts[j].offset), " overlap"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPart(const TensorPart& part, DType dtype, absl::Span<const int64_t> shape) {
  const TensorView& view = part.tensor.view;
  if (view.dtype() != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part is ", std::string(Name(view.dtype())), ", not ", std::string(Name(dtype))));
  }
  bool fits = view.shape().size() == shape.size() && part.offset.size() == shape.size();
  for (size_t dim = 0; fits && dim < shape.size(); ++dim) {
    fits = part.offset[dim] >= 0 && part.offset[dim] <= shape[dim] &&
           view.shape()[dim] <= shape[dim] - part.offset[dim];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a part of ", ShapeToString(view.shape()), " at ",
                                                 ShapeToString(part.offset), " is not within ",
                                                 ShapeToString(shape)));
}

}  // namespace

absl::StatusOr<Tensor> ScatteredElements::Join(DType dtype, absl::Span<const int64_t> shape,
                                               absl::Span<const int64_t> box_shape,
                                               std::vector<TensorPart> parts) {
  // More would take too long to check.
  constexpr size_t kMaxParts = 20000;
  OTT_ASSIGN_OR_RETURN(const int64_t num_bytes, CheckedNumBytes(dtype, shape));
  OTT_ASSIGN_OR_RETURN(const int64_t num_box_bytes, CheckedNumBytes(dtype, box_shape));
  if (num_bytes != num_box_bytes)
    return absl::InvalidArgumentError("two shapes of other numbers of elements");
  int64_t num_elements = 0;
  for (const TensorPart& part : parts) {
    OTT_RETURN_IF_ERROR(CheckPart(part, dtype, box_shape));
    num_elements += part.tensor.view.num_elements();
    if (num_elements > num_bytes / SizeOf(dtype)) break;
  }
  parts.erase(std::remove_if(parts.begin(), parts.end(),
                             [](const TensorPart& part) { return part.tensor.view.num_elements() == 0; }),
              parts.end());
  if (parts.size() > kMaxParts) return absl::InvalidArgumentError(absl::StrCat(parts.size(), " parts"));
  std::sort(parts.begin(), parts.end(),
            [](const TensorPart& a, const TensorPart& b) { return a.offset < b.offset; });
  OTT_RETURN_IF_ERROR(CheckOverlaps(parts));
  if (num_elements != num_bytes / SizeOf(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("its parts have ", num_elements, " of ", num_bytes / SizeOf(dtype), " elements"));
  }
  // No memory is at this address, so a read there by mistake ends the process.
  const void* const nowhere = reinterpret_cast<const void*>(64);
  if (parts.empty()) return Tensor{TensorView(nowhere, dtype, shape), nullptr};
  if (const Tensor& only = parts[0].tensor; parts.size() == 1 && IsAligned(only.view)) {
    if (only.view.shape() == Dims(shape.begin(), shape.end())) return only;
    if (only.view.is_contiguous()) {
      return Tensor{TensorView(only.view.data(), dtype, shape), only.owner, only.file_backed};
    }
  }
  Tensor joined{TensorView(nowhere, dtype, shape), nullptr};
  joined.scattered = std::shared_ptr<const ScatteredElements>(
      new ScatteredElements(dtype, Dims(box_shape.begin(), box_shape.end()), std::move(parts)));
  return joined;
}

ScatteredElements::Run ScatteredElements::RunAt(int64_t position) const {
  const Dims index = IndexAt(shape_, position);
  auto part = std::upper_bound(parts_.begin(), parts_.end(), index,
                               [](const Dims& at, const TensorPart& p) { return at < p.offset; });
  // Takes the nearest of the parts that begin before it and hold it.
  do --part;
  while (!Lies(*part, index));
  const Dims& part_shape = part->tensor.view.shape();
  int64_t in_part = 0;
  for (size_t dim = 0; dim < index.size(); ++dim) {
    in_part = in_part * part_shape[dim] + (index[dim] - part->offset[dim]);
  }
  // Rows of dimensions in which the part is all follow each other.
  int64_t row = 1;
  size_t dim = index.size();
  while (dim > 0 && part_shape[dim - 1] == shape_[dim - 1]) row *= shape_[--dim];
  const int64_t rows = dim == 0 ? 1 : part->offset[dim - 1] + part_shape[dim - 1] - index[dim - 1];
  return {&*part, in_part, rows * row - position % row};
}

void ScatteredElements::Copy(int64_t begin, int64_t end, void* destination) const {
  char* to = static_cast<char*>(destination);
  while (begin < end) {
    const Run run = RunAt(begin);
    const int64_t size = std::min(run.size, end - begin);
    CopyElements(run.part->tensor.view, run.begin, run.begin + size, to);
    to += size * SizeOf(dtype_);
    begin += size;
  }
}

const void* ScatteredElements::Find(int64_t begin, int64_t end) const {
  const Run run = RunAt(begin);
  const TensorView& view = run.part->tensor.view;
  if (run.size < end - begin || !view.is_contiguous() || !IsAligned(view)) return nullptr;
  return static_cast<const char*>(view.data()) + run.begin * SizeOf(dtype_);
}

void ScatteredElements::DropPages(int64_t begin, int64_t end) const {
  if (shape_.empty() || begin >= end) return;
  int64_t row = 1;
  for (size_t dim = 1; dim < shape_.size(); ++dim) row *= shape_[dim];
  for (const TensorPart& part : parts_) {
    const int64_t num_rows = part.tensor.view.shape()[0];
    const int64_t first = std::max<int64_t>(begin / row - part.offset[0], 0);
    const int64_t last = std::min((end + row - 1) / row - part.offset[0], num_rows);
    const int64_t part_row = part.tensor.view.num_elements() / num_rows;
    if (first < last) ott::DropPages(part.tensor, first * part_row, last * part_row);
  }
}

void DropPages(const Tensor& tensor, int64_t begin, int64_t end) {
  if (tensor.scattered != nullptr) return tensor.scattered->DropPages(begin, end);
  if (!tensor.file_backed || !tensor.view.is_contiguous()) return;
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t data = reinterpret_cast<uintptr_t>(tensor.view.data());
  const int64_t element_bytes = SizeOf(tensor.view.dtype());
  const uintptr_t first = (data + begin * element_bytes) / page * page;
  const uintptr_t last = (data + end * element_bytes) / page * page;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

absl::StatusOr<Tensor> Gathered(const Tensor& tensor) {
  if (tensor.scattered == nullptr) return tensor;
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, AllocateHost(tensor.view.num_bytes()));
  tensor.scattered->Copy(0, tensor.view.num_elements(), memory.get());
  return Tensor{TensorView(memory.get(), tensor.view.dtype(), tensor.view.shape()), std::move(memory)};
}

}  // namespace ott
