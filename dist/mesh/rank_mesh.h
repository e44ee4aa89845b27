// The ranks of a job as grids with named axes: the one notation for parallelism.

#ifndef OTT_DIST_MESH_RANK_MESH_H_
#define OTT_DIST_MESH_RANK_MESH_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"
#include "ott/core/base/config.pb.h"

namespace ott {

// One grid of all ranks. Axes are counted from the outermost.
//
// Immutable, so thread-safe.
class RankMesh {
 public:
  // A mesh without axes has one axis, "rank". INVALID_ARGUMENT unless the names differ, the sizes multiply to
  // num_ranks, and `ranks` of the mesh is empty or has each rank once.
  static absl::StatusOr<RankMesh> Create(const DeviceMesh& mesh, int num_ranks);

  int num_ranks() const { return static_cast<int>(index_of_rank_.size()); }
  const std::vector<MeshAxis>& axes() const { return axes_; }
  // Returns INVALID_ARGUMENT, naming those that there are, for another name.
  absl::StatusOr<int> FindAxis(const std::string& name) const;

  int Position(int rank, int axis) const;
  // Returns the rank's position along several axes, the first one outermost, and how many positions there
  // are.
  int Position(int rank, const std::vector<int>& axes) const;
  int NumPositions(const std::vector<int>& axes) const;

  std::string ToString() const;          // "data 2 x tensor 2"
  std::string Describe(int rank) const;  // "rank 3 (data 1, tensor 1)"

 private:
  std::vector<MeshAxis> axes_;
  std::vector<int> index_of_rank_;  // in the grid, row-major
};

// The positions of all ranks along some axes of a mesh.
struct RanksAlong {
  int num_positions = 1;
  // By rank, from 0.
  std::vector<int> positions;
  // By rank: ranks that differ along these axes alone have the same group, numbered from 0.
  std::vector<int> groups;
};

// All meshes of a configuration. Names of axes are unique over all of them.
//
// Immutable, so thread-safe.
class RankMeshes {
 public:
  // Makes the meshes of a job that declares none.
  explicit RankMeshes(int num_ranks) : num_ranks_(num_ranks) {}
  // Returns INVALID_ARGUMENT naming the mesh and what is wrong with it.
  static absl::StatusOr<RankMeshes> Create(const google::protobuf::RepeatedPtrField<DeviceMesh>& meshes,
                                           int num_ranks);

  int num_ranks() const { return num_ranks_; }

  // No axes: all ranks have position 0 and a group of their own. INVALID_ARGUMENT, beginning with `field`,
  // unless all of `axes` are different axes of one mesh.
  absl::StatusOr<RanksAlong> Along(const google::protobuf::RepeatedPtrField<std::string>& axes,
                                   std::string_view field) const;

 private:
  int num_ranks_;
  std::vector<RankMesh> meshes_;
};

}  // namespace ott

#endif  // OTT_DIST_MESH_RANK_MESH_H_
