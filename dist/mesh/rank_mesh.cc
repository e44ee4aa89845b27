#include "ott/dist/mesh/rank_mesh.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/misuse.h"

namespace ott {

using internal::Quoted;

absl::StatusOr<RankMesh> RankMesh::Create(const DeviceMesh& proto, int num_ranks) {
  RankMesh mesh;
  mesh.axes_.assign(proto.axes().begin(), proto.axes().end());
  mesh.index_of_rank_.assign(num_ranks, -1);
  if (mesh.axes_.empty()) {
    mesh.axes_.emplace_back().set_name("rank");
    mesh.axes_.back().set_size(num_ranks);
  }
  int64_t product = 1;
  for (size_t i = 0; i < mesh.axes_.size(); ++i) {
    const MeshAxis& axis = mesh.axes_[i];
    if (axis.name().empty()) return absl::InvalidArgumentError("an axis has no name");
    if (axis.size() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the axis ", Quoted(axis.name()), " has the size ", axis.size()));
    }
    product = std::min<int64_t>(product * axis.size(), int64_t{1} << 30);
    for (size_t j = 0; j < i; ++j) {
      if (mesh.axes_[j].name() != axis.name()) continue;
      return absl::InvalidArgumentError(absl::StrCat("there are two axes ", Quoted(axis.name())));
    }
  }
  if (product != num_ranks) {
    return absl::InvalidArgumentError(absl::StrCat("the axes make up ", product, " ranks (", mesh.ToString(),
                                                   "), the run has ", num_ranks));
  }
  if (proto.ranks_size() != 0 && proto.ranks_size() != num_ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("ranks has ", proto.ranks_size(), " entries, the run ", num_ranks, " ranks"));
  }
  for (int i = 0; i < num_ranks; ++i) {
    const int rank = proto.ranks_size() == 0 ? i : proto.ranks(i);
    if (rank < 0 || rank >= num_ranks || mesh.index_of_rank_[rank] >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("ranks has ", rank, rank < 0 || rank >= num_ranks ? ", which is no rank" : " twice"));
    }
    mesh.index_of_rank_[rank] = i;
  }
  return mesh;
}

absl::StatusOr<int> RankMesh::FindAxis(const std::string& name) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name() == name) return static_cast<int>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no axis ", Quoted(name), ", only ", ToString()));
}

int RankMesh::Position(int rank, int axis) const {
  int index = index_of_rank_[rank];
  for (int i = static_cast<int>(axes_.size()) - 1; i > axis; --i) index /= axes_[i].size();
  return index % axes_[axis].size();
}

int RankMesh::Position(int rank, const std::vector<int>& axes) const {
  int position = 0;
  for (const int axis : axes) position = position * axes_[axis].size() + Position(rank, axis);
  return position;
}

int RankMesh::NumPositions(const std::vector<int>& axes) const {
  int count = 1;
  for (const int axis : axes) count *= axes_[axis].size();
  return count;
}

std::string RankMesh::ToString() const {
  return absl::StrJoin(axes_, " x ", [](std::string* text, const MeshAxis& axis) {
    absl::StrAppend(text, axis.name(), " ", axis.size());
  });
}

std::string RankMesh::Describe(int rank) const {
  if (axes_.size() == 1) return absl::StrCat("rank ", rank);
  std::vector<std::string> positions;
  for (size_t i = 0; i < axes_.size(); ++i) {
    positions.push_back(absl::StrCat(axes_[i].name(), " ", Position(rank, static_cast<int>(i))));
  }
  return absl::StrCat("rank ", rank, " (", absl::StrJoin(positions, ", "), ")");
}

absl::StatusOr<RankMeshes> RankMeshes::Create(const google::protobuf::RepeatedPtrField<DeviceMesh>& protos,
                                              int num_ranks) {
  RankMeshes meshes(num_ranks);
  for (const DeviceMesh& proto : protos) {
    absl::StatusOr<RankMesh> mesh = RankMesh::Create(proto, num_ranks);
    if (!mesh.ok())
      return absl::InvalidArgumentError(absl::StrCat("ott.Config: mesh: ", mesh.status().message()));
    for (const RankMesh& other : meshes.meshes_) {
      for (const MeshAxis& axis : mesh->axes()) {
        if (!other.FindAxis(axis.name()).ok()) continue;
        return absl::InvalidArgumentError(absl::StrCat("ott.Config: mesh: two meshes have an axis ",
                                                       Quoted(axis.name()), "; give each a name of its own"));
      }
    }
    meshes.meshes_.push_back(*std::move(mesh));
  }
  return meshes;
}

absl::StatusOr<RanksAlong> RankMeshes::Along(const google::protobuf::RepeatedPtrField<std::string>& names,
                                             std::string_view field) const {
  RanksAlong along;
  if (names.empty()) {
    along.positions.assign(num_ranks_, 0);
    for (int rank = 0; rank < num_ranks_; ++rank) along.groups.push_back(rank);
    return along;
  }
  const auto has_first = [&](const RankMesh& mesh) { return mesh.FindAxis(names.Get(0)).ok(); };
  const auto mesh = std::find_if(meshes_.begin(), meshes_.end(), has_first);
  if (mesh == meshes_.end()) {
    const std::string known =
        absl::StrJoin(meshes_, ", ", [](std::string* text, const RankMesh& of) { *text += of.ToString(); });
    return absl::InvalidArgumentError(
        absl::StrCat("ott.Config: ", std::string(field), ": there is no axis ", Quoted(names.Get(0)),
                     known.empty() ? "; `mesh` declares none" : ", only ", known));
  }
  std::vector<int> axes;
  std::vector<int> rest;
  for (const std::string& name : names) {
    const absl::StatusOr<int> axis = mesh->FindAxis(name);
    if (!axis.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("ott.Config: ", std::string(field), ": ", axis.status().message()));
    }
    if (std::find(axes.begin(), axes.end(), *axis) != axes.end()) {
      return absl::InvalidArgumentError(absl::StrCat("ott.Config: ", std::string(field), ": the axis ",
                                                     Quoted(name), " stands there twice"));
    }
    axes.push_back(*axis);
  }
  for (int axis = 0; axis < static_cast<int>(mesh->axes().size()); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) rest.push_back(axis);
  }
  along.num_positions = mesh->NumPositions(axes);
  for (int rank = 0; rank < num_ranks_; ++rank) {
    along.positions.push_back(mesh->Position(rank, axes));
    along.groups.push_back(mesh->Position(rank, rest));
  }
  return along;
}

}  // namespace ott
