// Elements of one tensor that lie in several places, such as the shards that ranks wrote.

#ifndef OTT_CORE_TENSOR_SCATTERED_ELEMENTS_H_
#define OTT_CORE_TENSOR_SCATTERED_ELEMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/core/tensor/tensor.h"

namespace ott {

// A box of the tensor's elements.
struct TensorPart {
  Tensor tensor;
  Dims offset;  // of its first element
};

// Thread-safe: nothing changes after construction.
class ScatteredElements {
 public:
  // Returns the tensor that the parts make up; data() of its view is not to be read. Parts are in host
  // memory, need no alignment, and are boxes of `box_shape`, which is `shape`, or any that has the same
  // elements in row-major order: ranges of a flat buffer are boxes of {num_elements}. One part that is all
  // and is aligned is returned without this class. INVALID_ARGUMENT if they overlap, leave a gap, or are of
  // another dtype.
  static absl::StatusOr<Tensor> Join(DType dtype, absl::Span<const int64_t> shape,
                                     absl::Span<const int64_t> box_shape, std::vector<TensorPart> parts);

  // Copies the elements at row-major positions [begin, end).
  // REQUIRES: 0 <= begin <= end <= the number of elements
  void Copy(int64_t begin, int64_t end, void* destination) const;

  // The elements where they lie, aligned and one after the other; null if they do not.
  // REQUIRES: as above, and begin < end
  const void* Find(int64_t begin, int64_t end) const;

  // Drops the pages of mapped files that hold these elements and no others of the rows that they are in.
  void DropPages(int64_t begin, int64_t end) const;

  const std::vector<TensorPart>& parts() const { return parts_; }

 private:
  // Elements that follow each other in a part, too.
  struct Run {
    const TensorPart* part;
    int64_t begin;  // in the part
    int64_t size;
  };

  ScatteredElements(DType dtype, Dims shape, std::vector<TensorPart> parts)
      : dtype_(dtype), shape_(std::move(shape)), parts_(std::move(parts)) {}

  // Returns the run that begins at a position.
  Run RunAt(int64_t position) const;

  DType dtype_;
  Dims shape_;                     // in which the parts are boxes
  std::vector<TensorPart> parts_;  // by offset
};

// Drops the pages of a mapped file that hold the elements [begin, end) of a contiguous tensor, which are done
// with; of any other tensor, none. The first page may hold other elements too: whoever still needs them reads
// it again.
void DropPages(const Tensor& tensor, int64_t begin, int64_t end);

// Returns a copy in memory of its own where the elements are scattered; else the tensor itself.
absl::StatusOr<Tensor> Gathered(const Tensor& tensor);

}  // namespace ott

#endif  // OTT_CORE_TENSOR_SCATTERED_ELEMENTS_H_
