// The ranks of a training as a grid of data x pipeline x tensor parallel ones, the last running fastest.

#ifndef OTT_EXAMPLES_TRANSFORMER_GRID_H_
#define OTT_EXAMPLES_TRANSFORMER_GRID_H_

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "examples/transformer/matrix.h"

namespace ott::examples {

// Ranks that differ in their position along one axis only.
struct Axis {
  int size = 1;
  int position = 0;
  MPI_Comm ranks = MPI_COMM_NULL;

  // Sums over the axis, in each rank's own memory. Nothing for an axis of one rank.
  void Sum(std::vector<float>* values) const;
};

class Grid {
 public:
  // One rank, without MPI.
  Grid() = default;
  // Returns INVALID_ARGUMENT unless the sizes multiply to the number of ranks. REQUIRES: MPI is initialized
  static absl::StatusOr<Grid> Create(int data, int pipeline, int tensor);

  int rank() const { return rank_; }
  int size() const { return data.size * pipeline.size * tensor.size; }
  bool is_first_stage() const { return pipeline.position == 0; }
  bool is_last_stage() const { return pipeline.position == pipeline.size - 1; }

  // To and from the next or (-1) the previous stage of the pipeline.
  void Send(const Matrix& matrix, int step) const;
  void Receive(int step, Matrix* matrix) const;

  Axis data;
  Axis pipeline;
  Axis tensor;

 private:
  int rank_ = 0;
};

}  // namespace ott::examples

#endif  // OTT_EXAMPLES_TRANSFORMER_GRID_H_
