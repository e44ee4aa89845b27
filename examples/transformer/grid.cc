#include "examples/transformer/grid.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ott::examples {

void Axis::Sum(std::vector<float>* values) const {
  if (size == 1) return;
  MPI_Allreduce(MPI_IN_PLACE, values->data(), static_cast<int>(values->size()), MPI_FLOAT, MPI_SUM, ranks);
}

absl::StatusOr<Grid> Grid::Create(int data, int pipeline, int tensor) {
  Grid grid;
  int world_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &grid.rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (data < 1 || pipeline < 1 || tensor < 1 || int64_t{data} * pipeline * tensor != world_size) {
    return absl::InvalidArgumentError(absl::StrCat("data_parallel ", data, " x pipeline_parallel ", pipeline,
                                                   " x tensor_parallel ", tensor, " are not the ", world_size,
                                                   " ranks of this job"));
  }
  const auto split = [&](int size, int stride, Axis* axis) {
    axis->size = size;
    axis->position = grid.rank_ / stride % size;
    const int first = grid.rank_ - axis->position * stride;
    MPI_Comm_split(MPI_COMM_WORLD, first, axis->position, &axis->ranks);
  };
  split(tensor, 1, &grid.tensor);
  split(pipeline, tensor, &grid.pipeline);
  split(data, tensor * pipeline, &grid.data);
  return grid;
}

void Grid::Send(const Matrix& matrix, int step) const {
  MPI_Send(matrix.data.data(), static_cast<int>(matrix.data.size()), MPI_FLOAT, pipeline.position + step, 0,
           pipeline.ranks);
}

void Grid::Receive(int step, Matrix* matrix) const {
  MPI_Recv(matrix->data.data(), static_cast<int>(matrix->data.size()), MPI_FLOAT, pipeline.position + step, 0,
           pipeline.ranks, MPI_STATUS_IGNORE);
}

}  // namespace ott::examples
