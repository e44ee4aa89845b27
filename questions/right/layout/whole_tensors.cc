#include "ott/questions/right/layout/whole_tensors.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::crosscheck {
namespace {

using internal::Quoted;

constexpr int64_t kMaxExtent = int64_t{1} << 60;
// Limits the groups of a fused tensor; each is a piece to be read.
constexpr int64_t kMaxGroups = 1 << 16;

// The part of a whole tensor that a rank's tensor, or a section of it, contributes. Its dimensions are in the
// order of the whole tensor's.
struct Contribution {
  Part part;
  size_t rule = 0;
  Dims shape;
  // It is cut out of the rank's tensor here: in this dimension, `width` elements from `first` on, and again
  // in each further group.
  int dim = 0;
  int64_t width = 0;
  int64_t first = 0;
  int64_t group = 0;
  bool is_section = false;
};

// The dimension as counted from 0. INVALID_ARGUMENT if the tensor has no such.
absl::StatusOr<int> ResolveDim(int dim, size_t num_dims) {
  const int resolved = dim < 0 ? dim + static_cast<int>(num_dims) : dim;
  if (resolved >= 0 && resolved < static_cast<int>(num_dims)) return resolved;
  return absl::InvalidArgumentError(absl::StrCat("it has ", num_dims, " dimensions, and no dim ", dim));
}

// One section of a tensor of this shape.
absl::StatusOr<Contribution> CutSection(const Rule& rule, size_t section, const Dims& shape) {
  Contribution contribution;
  Dims cut = shape;
  int fused_dim = -1;
  if (rule.sections.size() > 1 || rule.group > 0) {
    OTT_ASSIGN_OR_RETURN(fused_dim, ResolveDim(rule.fused_dim, shape.size()));
    const int64_t extent = shape[fused_dim];
    const int64_t group = rule.group > 0 ? rule.group : std::max<int64_t>(extent, rule.num_shares);
    if (extent % group != 0 || group % rule.num_shares != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dim ", rule.fused_dim, " of its shape ", ShapeToString(shape), " is no sections of ",
          rule.num_shares, " shares", rule.group > 0 ? absl::StrCat(" in groups of ", group) : ""));
    }
    if (extent / group > kMaxGroups) {
      return absl::InvalidArgumentError(absl::StrCat("dim ", rule.fused_dim, " of its shape ",
                                                     ShapeToString(shape), " is more than ", kMaxGroups,
                                                     " groups of ", group));
    }
    const int64_t share = group / rule.num_shares;
    contribution.is_section = true;
    contribution.group = group;
    contribution.first = rule.sections[section].begin * share;
    contribution.width = rule.sections[section].share * share;
    cut[fused_dim] = extent / group * contribution.width;
  }
  if (!rule.transpose.empty() && rule.transpose.size() != shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat("its shape ", ShapeToString(shape),
                                                   " cannot be transposed by [",
                                                   absl::StrJoin(rule.transpose, ", "), "]"));
  }
  contribution.shape = cut;
  contribution.dim = fused_dim;
  for (size_t i = 0; i < rule.transpose.size(); ++i) {
    contribution.shape[i] = cut[rule.transpose[i]];
    if (rule.transpose[i] == fused_dim) contribution.dim = static_cast<int>(i);
  }
  return contribution;
}

// The name in whole tensors. INVALID_ARGUMENT for a number that there is not.
absl::StatusOr<std::string> WholeName(const Rule& rule, const PathPattern& whole, Captures captures,
                                      const RankMesh& mesh, int rank) {
  for (const Rule::Numbers& numbers : rule.numbers) {
    std::string& text = captures[numbers.name];
    const std::vector<int64_t>& held = numbers.by_position[mesh.Position(rank, numbers.axis)];
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number) || number < 0 || number >= static_cast<int64_t>(held.size())) {
      return absl::InvalidArgumentError(absl::StrCat("{", numbers.name, "} is ", Quoted(text), ", and ",
                                                     mesh.Describe(rank), " holds ", held.size(),
                                                     " of them, from 0 on"));
    }
    text = absl::StrCat(held[number]);
  }
  return whole.Expand(captures);
}

// Puts together one whole tensor from what ranks hold of it.
class Assembler {
 public:
  Assembler(const BoundRun& run, const RunRules& rules, const std::vector<Contribution>& contributions)
      : run_(run),
        mesh_(rules.mesh),
        contributions_(contributions),
        rule_(rules.rules[contributions[0].rule]) {}

  absl::Status Assemble(WholeTensor* whole) {
    OTT_RETURN_IF_ERROR(CheckAlike(whole));
    OTT_RETURN_IF_ERROR(FindSplits());
    OTT_RETURN_IF_ERROR(CheckRanks());
    OTT_RETURN_IF_ERROR(FindExtents(whole));
    OTT_RETURN_IF_ERROR(Pad(whole));
    whole->is_sum = mesh_.NumPositions(rule_.sum_axes) > 1;
    whole->divisor = rule_.divisor;
    whole->transpose = rule_.transpose;
    if (whole->is_sum && IsComplex(whole->dtype)) {
      return absl::UnimplementedError("sums of complex numbers");
    }
    MakeReplicas(whole);
    return absl::OkStatus();
  }

 private:
  const DumpedTensor& Dumped(const Contribution& contribution) const {
    return run_.dumps[contribution.part.rank]->tensors()[contribution.part.tensor];
  }

  std::string PlaceOf(const Contribution& contribution) const {
    return absl::StrCat(mesh_.Describe(contribution.part.rank), " as ", Quoted(Dumped(contribution).path));
  }

  absl::Status CheckAlike(WholeTensor* whole) const {
    const Contribution& first = contributions_[0];
    for (const Contribution& other : contributions_) {
      if (!Dumped(other).problem.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(PlaceOf(other), " ", Dumped(other).problem));
      }
      if (other.rule != first.rule) {
        return absl::InvalidArgumentError(
            absl::StrCat("two rules make it: ", PlaceOf(first), ", and ", PlaceOf(other)));
      }
      if (Dumped(other).dtype != Dumped(first).dtype || Dumped(other).is_text != Dumped(first).is_text) {
        return absl::InvalidArgumentError(absl::StrCat(
            "its parts are ", std::string(Name(Dumped(first).dtype)), " on ", mesh_.Describe(first.part.rank),
            " and ", std::string(Name(Dumped(other).dtype)), " on ", mesh_.Describe(other.part.rank)));
      }
      whole->dtype_known &= Dumped(other).dtype_known;
    }
    whole->dtype = Dumped(first).dtype;
    whole->is_text = Dumped(first).is_text;
    return absl::OkStatus();
  }

  // splits_[d] are the axes that dimension d of the whole tensor is split over.
  absl::Status FindSplits() {
    const size_t num_dims = contributions_[0].shape.size();
    splits_.resize(num_dims);
    for (const Rule::SplitDim& split : rule_.splits) {
      OTT_ASSIGN_OR_RETURN(const int dim, ResolveDim(split.dim, num_dims));
      if (!splits_[dim].empty()) {
        return absl::InvalidArgumentError(absl::StrCat("dim ", split.dim, " is split by two names"));
      }
      splits_[dim] = split.axes;
    }
    return absl::OkStatus();
  }

  // Each rank that must hold a part does so once.
  absl::Status CheckRanks() const {
    std::map<int, const Contribution*> by_rank;
    std::set<int> own_positions;
    for (const Contribution& contribution : contributions_) {
      const auto [found, inserted] = by_rank.emplace(contribution.part.rank, &contribution);
      if (!inserted) {
        return absl::InvalidArgumentError(
            absl::StrCat("it is there twice: ", PlaceOf(*found->second), ", and ", PlaceOf(contribution)));
      }
      own_positions.insert(mesh_.Position(contribution.part.rank, rule_.own_axes));
    }
    std::vector<std::string> missing;
    for (int rank = 0; rank < mesh_.num_ranks(); ++rank) {
      const bool needed = own_positions.count(mesh_.Position(rank, rule_.own_axes)) > 0;
      if (needed && by_rank.count(rank) == 0) missing.push_back(mesh_.Describe(rank));
    }
    if (missing.empty()) return absl::OkStatus();
    constexpr size_t kMaxNamed = 4;
    const size_t num_missing = missing.size();
    if (num_missing > kMaxNamed) missing.resize(kMaxNamed);
    return absl::InvalidArgumentError(
        absl::StrCat("parts are missing on ", absl::StrJoin(missing, ", "),
                     num_missing > kMaxNamed ? absl::StrCat(" and ", num_missing - kMaxNamed, " more") : ""));
  }

  // The part's place among those that dimension `dim` is split into.
  int SplitPosition(const Contribution& contribution, size_t dim) const {
    return mesh_.Position(contribution.part.rank, splits_[dim]);
  }

  absl::Status DoNotFit(const Contribution& part, const Contribution& other) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "its parts do not fit: ", ShapeToString(part.shape), " on ", mesh_.Describe(part.part.rank), ", ",
        ShapeToString(other.shape), " on ", mesh_.Describe(other.part.rank)));
  }

  absl::Status FindExtents(WholeTensor* whole) {
    const size_t num_dims = contributions_[0].shape.size();
    for (const Contribution& contribution : contributions_) {
      if (contribution.shape.size() != num_dims) return DoNotFit(contributions_[0], contribution);
    }
    std::vector<std::string> texts;
    for (size_t dim = 0; dim < num_dims; ++dim) {
      std::vector<const Contribution*> by_position(mesh_.NumPositions(splits_[dim]));
      for (const Contribution& contribution : contributions_) {
        const Contribution*& known = by_position[SplitPosition(contribution, dim)];
        if (known == nullptr) known = &contribution;
        if (contribution.shape[dim] != known->shape[dim]) return DoNotFit(*known, contribution);
      }
      Dims& offsets = offsets_.emplace_back();
      int64_t extent = 0;
      std::vector<int64_t> extents;
      for (const Contribution* const part : by_position) {
        offsets.push_back(extent);
        extents.push_back(part->shape[dim]);
        if (part->shape[dim] > kMaxExtent - extent) {
          return absl::InvalidArgumentError(
              absl::StrCat("its parts are too large for one tensor in dim ", dim));
        }
        extent += part->shape[dim];
      }
      whole->shape.push_back(extent);
      if (extents.size() > 1)
        texts.push_back(absl::StrCat("dim ", dim, " = ", absl::StrJoin(extents, " + ")));
    }
    whole->extents = absl::StrJoin(texts, ", ");
    return CheckedNumBytes(whole->dtype, whole->shape).status();
  }

  absl::Status Pad(WholeTensor* whole) const {
    for (const Padding& padding : rule_.padding) {
      OTT_ASSIGN_OR_RETURN(const int dim, ResolveDim(padding.dim(), whole->shape.size()));
      if (padding.size() > whole->shape[dim]) {
        return absl::InvalidArgumentError(absl::StrCat("padded from ", padding.size(), " in dim ", dim,
                                                       ", but its parts make up ",
                                                       ShapeToString(whole->shape)));
      }
      absl::StrAppend(&whole->extents, whole->extents.empty() ? "" : ", ", whole->shape[dim] - padding.size(),
                      " of padding in dim ", dim);
      whole->shape[dim] = padding.size();
    }
    return absl::OkStatus();
  }

  std::vector<Box> MakeBoxes(const Contribution& contribution, const WholeTensor& whole) const {
    const size_t num_dims = contribution.shape.size();
    const int64_t num_groups =
        contribution.width > 0 ? contribution.shape[contribution.dim] / contribution.width : 1;
    std::vector<Box> boxes;
    for (int64_t group = 0; group < num_groups; ++group) {
      Box box;
      for (size_t dim = 0; dim < num_dims; ++dim) {
        box.offset.push_back(offsets_[dim][SplitPosition(contribution, dim)]);
        box.begin.push_back(0);
      }
      box.shape = contribution.shape;
      if (contribution.is_section) {
        box.offset[contribution.dim] += group * contribution.width;
        box.begin[contribution.dim] = group * contribution.group + contribution.first;
        box.shape[contribution.dim] = contribution.width;
      }
      for (size_t dim = 0; dim < num_dims; ++dim) {
        box.shape[dim] = std::clamp<int64_t>(whole.shape[dim] - box.offset[dim], 0, box.shape[dim]);
      }
      boxes.push_back(std::move(box));
    }
    return boxes;
  }

  void MakeReplicas(WholeTensor* whole) const {
    // By the position along the axes of replicas, then of splits.
    std::map<int, std::map<std::vector<int>, Cell>> replicas;
    const auto replica_of = [&](const Contribution& of) {
      return mesh_.Position(of.part.rank, rule_.one_of_axes);
    };
    // The first positions hold none if the axis has tensors of its own at each.
    int first_replica = replica_of(contributions_[0]);
    for (const Contribution& other : contributions_)
      first_replica = std::min(first_replica, replica_of(other));
    for (const Contribution& contribution : contributions_) {
      const int rank = contribution.part.rank;
      if (replica_of(contribution) != first_replica) continue;
      std::vector<int> positions;
      for (size_t dim = 0; dim < splits_.size(); ++dim) positions.push_back(SplitPosition(contribution, dim));
      Cell& cell = replicas[mesh_.Position(rank, rule_.replica_axes)][positions];
      cell.parts.push_back(contribution.part);
      if (cell.boxes.empty()) cell.boxes = MakeBoxes(contribution, *whole);
    }
    for (auto& [position, cells] : replicas) {
      std::vector<Cell>& replica = whole->replicas.emplace_back();
      for (auto& [positions, cell] : cells) replica.push_back(std::move(cell));
    }
  }

  const BoundRun& run_;
  const RankMesh& mesh_;
  const std::vector<Contribution>& contributions_;
  const Rule& rule_;
  std::vector<std::vector<int>> splits_;
  std::vector<Dims> offsets_;  // by dimension, of each place that it is split into
};

// Finds the rule of each tensor, and puts the whole tensors together.
class Binder {
 public:
  explicit Binder(const RunRules& rules) : rules_(rules), rule_tensors_(rules.rules.size()) {}

  BoundRun Bind(std::vector<absl::StatusOr<RankDump>> dumps) && {
    for (int rank = 0; rank < rules_.mesh.num_ranks(); ++rank) {
      absl::StatusOr<RankDump>& dump = dumps[rank];
      if (!dump.ok()) {
        run_.problems.push_back(absl::StrCat("rank ", rank, " has no dump: ", dump.status().message()));
        run_.dumps.emplace_back();
        continue;
      }
      run_.dumps.emplace_back(*std::move(dump));
      for (size_t i = 0; i < run_.dumps.back()->tensors().size(); ++i) AddTensor({rank, i});
    }
    for (const std::string& name : names_) {
      const std::vector<Contribution>& contributions = contributions_[name];
      WholeTensor& whole = run_.tensors.emplace_back();
      whole.name = name;
      const absl::Status status = Assembler(run_, rules_, contributions).Assemble(&whole);
      if (!status.ok()) whole.problem = std::string(status.message());
      rule_tensors_[contributions[0].rule].push_back(run_.tensors.size() - 1);
    }
    Describe();
    return std::move(run_);
  }

 private:
  void AddTensor(const Part& part) {
    const DumpedTensor& tensor = run_.dumps[part.rank]->tensors()[part.tensor];
    for (const PathPattern& ignored : rules_.ignore) {
      if (!ignored.Match(tensor.path).has_value()) continue;
      ++num_ignored_;
      return;
    }
    for (size_t i = 0; i < rules_.rules.size(); ++i) {
      const std::optional<Captures> captures = rules_.rules[i].path.Match(tensor.path);
      if (!captures.has_value()) continue;
      const absl::Status status = AddSections(i, part, tensor, *captures);
      if (!status.ok()) {
        run_.problems.push_back(
            absl::StrCat(rules_.mesh.Describe(part.rank), ": ", Quoted(tensor.path), ": ", status.message()));
      }
      return;
    }
    unmatched_[tensor.path].push_back(part.rank);
  }

  absl::Status AddSections(size_t rule_index, const Part& part, const DumpedTensor& tensor,
                           const Captures& captures) {
    const Rule& rule = rules_.rules[rule_index];
    for (size_t i = 0; i < rule.sections.size(); ++i) {
      if (!rule.sections[i].whole.has_value()) continue;
      OTT_ASSIGN_OR_RETURN(const std::string name,
                           WholeName(rule, *rule.sections[i].whole, captures, rules_.mesh, part.rank));
      Contribution contribution;
      if (tensor.problem.empty()) {
        OTT_ASSIGN_OR_RETURN(contribution, CutSection(rule, i, tensor.shape));
      }
      contribution.part = part;
      contribution.rule = rule_index;
      const auto [found, inserted] = contributions_.try_emplace(name);
      if (inserted) names_.push_back(name);
      found->second.push_back(std::move(contribution));
    }
    return absl::OkStatus();
  }

  void Describe() {
    for (size_t i = 0; i < rules_.rules.size(); ++i) {
      const Rule& rule = rules_.rules[i];
      const std::vector<size_t>& tensors = rule_tensors_[i];
      std::string line = absl::StrCat(rule.Describe(rules_.mesh), ": ", tensors.size(),
                                      tensors.size() == 1 ? " tensor" : " tensors");
      if (!tensors.empty()) {
        const WholeTensor& example = run_.tensors[tensors[0]];
        absl::StrAppend(&line, ", such as ", Quoted(example.name), " ", ShapeToString(example.shape),
                        example.extents.empty() ? "" : ": ", example.extents);
      } else if (rule.path.text() != "*" && !rule.optional) {
        run_.problems.push_back(absl::StrCat("no tensor matches the rule for ", Quoted(rule.path.text())));
      }
      run_.understood.push_back(std::move(line));
    }
    if (num_ignored_ > 0)
      run_.understood.push_back(absl::StrCat("ignored: ", num_ignored_, " tensors of ranks"));
    for (const auto& [path, ranks] : unmatched_) {
      run_.problems.push_back(absl::StrCat("no rule matches ", Quoted(path), ", which ", ranks.size(),
                                           ranks.size() == 1 ? " rank holds" : " ranks hold"));
    }
  }

  const RunRules& rules_;
  BoundRun run_;
  std::vector<std::vector<size_t>> rule_tensors_;
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, std::vector<Contribution>> contributions_;
  std::map<std::string, std::vector<int>> unmatched_;
  int64_t num_ignored_ = 0;
};

}  // namespace

BoundRun BindDumps(std::vector<absl::StatusOr<RankDump>> dumps, const RunRules& rules) {
  return Binder(rules).Bind(std::move(dumps));
}

BoundRun BindRun(const std::string& run_dir, int64_t iteration, const RunRules& rules) {
  std::vector<absl::StatusOr<RankDump>> dumps;
  for (int rank = 0; rank < rules.mesh.num_ranks(); ++rank) {
    dumps.push_back(RankDump::Read(DumpPath(run_dir, rank, iteration)));
  }
  return BindDumps(std::move(dumps), rules);
}

}  // namespace ott::crosscheck
