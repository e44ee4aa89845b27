// Reads boxes of a whole tensor from the parts that ranks hold of it.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_WHOLE_READER_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_WHOLE_READER_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor.h"
#include "ott/questions/right/layout/whole_tensors.h"

namespace ott::crosscheck {

// Indices of a whole tensor.
struct Range {
  Dims offset;
  Dims shape;

  int64_t num_elements() const;
};

// The place where an element lies.
struct ElementPlace {
  std::vector<int> ranks;  // more than one where it is their sum
  std::string path;
  Dims index;
};

// Some cells of a replica, with their files mapped. What was read stays in memory until DropPages(), so that
// a tensor of any size needs little.
class WholeReader {
 public:
  // Errors of the dump. REQUIRES: run and cells outlive the reader; the cells are those of `whole`
  static absl::StatusOr<WholeReader> Open(const BoundRun& run, const WholeTensor& whole,
                                          std::vector<const Cell*> cells);

  // Reads the elements of a range, row-major. REQUIRES: the cells hold it; whole.is_sum is false
  void Read(const Range& range, void* elements) const;

  // Computes the range's sums, divided by whole.divisor, and the sums of magnitudes. Also of tensors that are
  // no sums.
  void Sum(const Range& range, std::vector<long double>* sums, std::vector<long double>* magnitudes) const;

  int64_t num_summed() const { return static_cast<int64_t>(cells_[0].parts.size()); }

  // Finds an index of the whole tensor. REQUIRES: the cells hold it
  ElementPlace Locate(const Dims& index) const;

  // Returns the dimensions along which elements of parts follow each other in memory.
  const std::vector<int>& fast_dims() const { return fast_dims_; }

  void DropPages() const;

 private:
  struct OpenCell {
    const Cell* cell;
    std::vector<Tensor> parts;      // as they were dumped
    std::vector<TensorView> views;  // with dimensions in the order of the whole tensor's
  };

  WholeReader(const BoundRun& run, const WholeTensor& whole) : run_(&run), whole_(&whole) {}

  // Reads one part of each cell.
  void ReadPart(size_t part, const Range& range, char* elements) const;

  const BoundRun* run_;
  const WholeTensor* whole_;
  std::vector<OpenCell> cells_;
  std::vector<int> fast_dims_;
};

// Calls f(range) for parts of a box that together are the box, in row-major order of their first elements.
// Each has at most max_elements, and is long in the dimensions that elements follow each other in.
template <typename F>
void ForEachTile(const Box& box, const std::vector<int>& fast_dims, int64_t max_elements, const F& f);

// Implementation.

Dims TileShape(const Dims& shape, const std::vector<int>& fast_dims, int64_t max_elements);

template <typename F>
void ForEachTile(const Box& box, const std::vector<int>& fast_dims, int64_t max_elements, const F& f) {
  const Dims tile = TileShape(box.shape, fast_dims, max_elements);
  Dims counts;
  int64_t num_tiles = 1;
  for (size_t dim = 0; dim < tile.size(); ++dim) {
    counts.push_back((box.shape[dim] + tile[dim] - 1) / tile[dim]);
    num_tiles *= counts.back();
  }
  for (int64_t i = 0; i < num_tiles; ++i) {
    const Dims at = IndexAt(counts, i);
    Range range;
    for (size_t dim = 0; dim < tile.size(); ++dim) {
      const int64_t first = at[dim] * tile[dim];
      range.offset.push_back(box.offset[dim] + first);
      range.shape.push_back(std::min(tile[dim], box.shape[dim] - first));
    }
    f(range);
  }
}

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_WHOLE_READER_H_
