#include "ott/questions/right/layout/whole_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/strided_copy.h"

namespace ott::crosscheck {
namespace {

// Elements that are read together in each dimension in which they follow each other: pages of files.
constexpr int64_t kFastElements = 512;

// Returns what two ranges have in common.
std::optional<Range> Intersect(const Range& range, const Box& box) {
  Range common;
  for (size_t dim = 0; dim < range.shape.size(); ++dim) {
    const int64_t begin = std::max(range.offset[dim], box.offset[dim]);
    const int64_t end = std::min(range.offset[dim] + range.shape[dim], box.offset[dim] + box.shape[dim]);
    if (begin >= end) return std::nullopt;
    common.offset.push_back(begin);
    common.shape.push_back(end - begin);
  }
  return common;
}

// The elements of a view from `begin` on.
TensorView Slice(const TensorView& view, const Dims& begin, const Dims& shape) {
  const char* data = static_cast<const char*>(view.data());
  for (size_t dim = 0; dim < begin.size(); ++dim)
    data += begin[dim] * view.strides()[dim] * SizeOf(view.dtype());
  return TensorView(data, view.dtype(), shape, view.strides());
}

// Copies a view's elements to their places in a row-major tensor.
void CopyInto(const TensorView& view, const Dims& offset, const Dims& shape, char* elements) {
  const int64_t element_bytes = SizeOf(view.dtype());
  Dims strides(shape.size());
  int64_t stride = element_bytes;
  // Trailing dimensions that the view fills are copied at once.
  size_t num_outer = shape.size();
  bool filled = true;
  for (size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= shape[dim];
    if (filled) num_outer = dim;
    filled = filled && view.shape()[dim] == shape[dim];
  }
  for (size_t dim = 0; dim < shape.size(); ++dim) elements += offset[dim] * strides[dim];
  int64_t num_runs = 1;
  const Dims outer(view.shape().begin(), view.shape().begin() + num_outer);
  for (const int64_t extent : outer) num_runs *= extent;
  const int64_t run = view.num_elements() / num_runs;
  for (int64_t i = 0; i < num_runs; ++i) {
    const Dims at = IndexAt(outer, i);
    char* to = elements;
    for (size_t dim = 0; dim < num_outer; ++dim) to += at[dim] * strides[dim];
    CopyElements(view, i * run, (i + 1) * run, to);
  }
}

}  // namespace

int64_t Range::num_elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

Dims TileShape(const Dims& shape, const std::vector<int>& fast_dims, int64_t max_elements) {
  Dims tile(shape.size(), 1);
  int64_t num_elements = 1;
  for (const int dim : fast_dims) {
    tile[dim] = std::max<int64_t>(std::min({shape[dim], kFastElements, max_elements / num_elements}), 1);
    num_elements *= tile[dim];
  }
  for (size_t dim = shape.size(); dim-- > 0;) {
    const int64_t others = num_elements / tile[dim];
    tile[dim] = std::max<int64_t>(std::min(shape[dim], max_elements / others), 1);
    num_elements = others * tile[dim];
  }
  return tile;
}

absl::StatusOr<WholeReader> WholeReader::Open(const BoundRun& run, const WholeTensor& whole,
                                              std::vector<const Cell*> cells) {
  WholeReader reader(run, whole);
  std::vector<bool> is_fast(whole.shape.size());
  for (const Cell* const cell : cells) {
    OpenCell& open = reader.cells_.emplace_back();
    open.cell = cell;
    for (const Part& part : cell->parts) {
      OTT_ASSIGN_OR_RETURN(Tensor tensor, run.dumps[part.rank]->Open(part.tensor));
      const TensorView& view = tensor.view;
      if (whole.transpose.empty()) {
        open.views.push_back(view);
      } else {
        OTT_ASSIGN_OR_RETURN(TensorView transposed, PermuteAxes(view, whole.transpose));
        open.views.push_back(std::move(transposed));
      }
      for (size_t dim = 0; dim < is_fast.size(); ++dim) {
        if (open.views.back().strides()[dim] == 1) is_fast[dim] = true;
      }
      open.parts.push_back(std::move(tensor));
    }
  }
  for (size_t dim = 0; dim < is_fast.size(); ++dim) {
    if (is_fast[dim]) reader.fast_dims_.push_back(static_cast<int>(dim));
  }
  return reader;
}

void WholeReader::ReadPart(size_t part, const Range& range, char* elements) const {
  for (const OpenCell& open : cells_) {
    for (const Box& box : open.cell->boxes) {
      const std::optional<Range> common = Intersect(range, box);
      if (!common.has_value()) continue;
      Dims begin;
      Dims offset;
      for (size_t dim = 0; dim < range.shape.size(); ++dim) {
        begin.push_back(box.begin[dim] + common->offset[dim] - box.offset[dim]);
        offset.push_back(common->offset[dim] - range.offset[dim]);
      }
      CopyInto(Slice(open.views[part], begin, common->shape), offset, range.shape, elements);
    }
  }
}

void WholeReader::Read(const Range& range, void* elements) const {
  ReadPart(0, range, static_cast<char*>(elements));
}

void WholeReader::Sum(const Range& range, std::vector<long double>* sums,
                      std::vector<long double>* magnitudes) const {
  const int64_t count = range.num_elements();
  sums->assign(count, 0);
  magnitudes->assign(count, 0);
  VisitDType(whole_->dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (!std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>) {
      const std::unique_ptr<T[]> elements(new T[count]);
      for (size_t part = 0; part < cells_[0].parts.size(); ++part) {
        ReadPart(part, range, reinterpret_cast<char*>(elements.get()));
        for (int64_t i = 0; i < count; ++i) {
          const auto value = static_cast<long double>(elements[i]);
          (*sums)[i] += value;
          (*magnitudes)[i] += std::fabs(value);
        }
      }
    }
  });
  if (whole_->divisor == 1) return;
  const auto divisor = static_cast<long double>(whole_->divisor);
  for (long double& sum : *sums) sum /= divisor;
  for (long double& magnitude : *magnitudes) magnitude /= divisor;
}

ElementPlace WholeReader::Locate(const Dims& index) const {
  ElementPlace place;
  Range element{index, Dims(index.size(), 1)};
  for (const OpenCell& open : cells_) {
    for (const Box& box : open.cell->boxes) {
      if (!Intersect(element, box).has_value()) continue;
      for (const Part& part : open.cell->parts) place.ranks.push_back(part.rank);
      const Part& first = open.cell->parts[0];
      place.path = run_->dumps[first.rank]->tensors()[first.tensor].path;
      place.index.resize(index.size());
      for (size_t dim = 0; dim < index.size(); ++dim) {
        const size_t dumped = whole_->transpose.empty() ? dim : whole_->transpose[dim];
        place.index[dumped] = box.begin[dim] + index[dim] - box.offset[dim];
      }
      return place;
    }
  }
  return place;
}

void WholeReader::DropPages() const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const OpenCell& open : cells_) {
    for (const Tensor& part : open.parts) {
      if (!part.file_backed) continue;
      const auto data = reinterpret_cast<uintptr_t>(part.view.data());
      const uintptr_t first = data / page * page;
      madvise(reinterpret_cast<void*>(first), data + part.view.num_bytes() - first, MADV_DONTNEED);
    }
  }
}

}  // namespace ott::crosscheck
