#include "ott/questions/right/layout/tree_layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/scattered_elements.h"
#include "ott/questions/right/layout/whole_comparison.h"

namespace ott::crosscheck {
namespace {

constexpr int kMaxAxis = 4096;

// Along ep, pp and tp.
using Position = std::array<int, 3>;

// "mp_rank_01_002_003": tensor, pipeline, experts. nullopt for other names.
std::optional<Position> PositionOf(std::string_view name) {
  constexpr std::string_view kStart = "mp_rank_";
  if (name.substr(0, kStart.size()) != kStart) return std::nullopt;
  const std::vector<std::string> numbers = absl::StrSplit(std::string(name.substr(kStart.size())), '_');
  Position position = {0, 0, 0};
  if (numbers.size() > position.size()) return std::nullopt;
  for (size_t i = 0; i < numbers.size(); ++i) {
    int& number = position[position.size() - 1 - i];
    if (!absl::SimpleAtoi(numbers[i], &number) || number < 0 || number >= kMaxAxis) return std::nullopt;
  }
  return position;
}

// None has no elements, but that it is there has to be compared.
absl::StatusOr<Value> WithoutNulls(const std::string& path, const Value& value) {
  if (value.is_null()) return Value("None");
  return TransformChildren(path, value, WithoutNulls);
}

// A part of a rank's tensor, its dimensions in the order of the whole one's.
TensorPart PartOf(const Tensor& tensor, const Box& box) {
  const char* data = static_cast<const char*>(tensor.view.data());
  for (size_t dim = 0; dim < box.begin.size(); ++dim) {
    data += box.begin[dim] * tensor.view.strides()[dim] * SizeOf(tensor.view.dtype());
  }
  TensorPart part{tensor, box.offset};
  part.tensor.view = TensorView(data, tensor.view.dtype(), box.shape, tensor.view.strides());
  return part;
}

// The first replica.
absl::StatusOr<Tensor> Join(const BoundRun& run, const WholeTensor& whole) {
  std::vector<TensorPart> parts;
  for (const Cell& cell : whole.replicas[0]) {
    const Part& held = cell.parts[0];
    OTT_ASSIGN_OR_RETURN(Tensor tensor, run.dumps[held.rank]->Open(held.tensor));
    const bool is_all =
        cell.boxes.size() == 1 && cell.boxes[0].shape == whole.shape && tensor.view.shape() == whole.shape;
    if (is_all && whole.transpose.empty()) return tensor;
    OTT_ASSIGN_OR_RETURN(tensor, Gathered(tensor));
    if (!whole.transpose.empty()) {
      OTT_ASSIGN_OR_RETURN(tensor.view, PermuteAxes(tensor.view, whole.transpose));
    }
    for (const Box& box : cell.boxes) parts.push_back(PartOf(tensor, box));
  }
  return ScatteredElements::Join(whole.dtype, whole.shape, whole.shape, std::move(parts));
}

absl::StatusOr<Value> ValueOf(const BoundRun& run, const WholeTensor& whole) {
  if (!whole.problem.empty()) return absl::InvalidArgumentError(whole.problem);
  if (whole.is_sum) return absl::UnimplementedError("sums are compared by `ott crosscheck --layout`");
  if (whole.replicas.size() > 1) {
    OTT_ASSIGN_OR_RETURN(const WholeComparison replicas, CompareWholes(run, whole, run, whole, std::nullopt));
    if (!replicas.differences.empty()) {
      const LayoutDifference& first = replicas.differences[0];
      return absl::InvalidArgumentError(
          absl::StrCat("its replicas differ: rank ", first.ranks().empty() ? 0 : first.ranks(0),
                       " holds another than rank ", whole.replicas[0][0].parts[0].rank));
    }
  }
  OTT_ASSIGN_OR_RETURN(Tensor tensor, Join(run, whole));
  if (!whole.is_text) return Value(std::move(tensor));
  return Value(std::string_view(static_cast<const char*>(tensor.view.data()), tensor.view.num_elements()));
}

// Counts the numbers that the ranks at each position of an axis have, by the name in the pattern and the
// axis.
using Counts = std::map<std::tuple<std::string, std::string>, std::map<int, int64_t>>;

absl::Status CountNumbers(const StateOfRanks& state, const TensorRule& rule, const RankMesh& mesh,
                          const std::vector<std::vector<NamedTensor>>& tensors, Counts* counts) {
  for (const LocalNumber& number : rule.numbers()) {
    if (number.count() != 0 || !number.positions().empty()) continue;
    OTT_ASSIGN_OR_RETURN(const PathPattern path, PathPattern::Parse(rule.path()));
    OTT_ASSIGN_OR_RETURN(const int axis, mesh.FindAxis(number.axis()));
    std::map<int, int64_t>& at = (*counts)[{number.name(), number.axis()}];
    for (size_t rank = 0; rank < state.ranks.size(); ++rank) {
      for (const NamedTensor& tensor : tensors[rank]) {
        const std::optional<Captures> captures = path.Match(tensor.path);
        int64_t local = 0;
        if (!captures.has_value() || captures->count(number.name()) == 0) continue;
        if (!absl::SimpleAtoi(captures->find(number.name())->second, &local) || local >= 1 << 20) continue;
        int64_t& count = at[mesh.Position(static_cast<int>(rank), axis)];
        count = std::max(count, local + 1);
      }
    }
  }
  return absl::OkStatus();
}

// The tensor at one index of a dimension, without it.
absl::StatusOr<Tensor> SliceOf(const Tensor& tensor, size_t dim, int64_t index) {
  const auto without = [dim](Dims dims) {
    dims.erase(dims.begin() + static_cast<ptrdiff_t>(dim));
    return dims;
  };
  const Dims& shape = tensor.view.shape();
  std::vector<TensorPart> parts;
  for (const TensorPart& part : tensor.scattered != nullptr
                                    ? tensor.scattered->parts()
                                    : std::vector<TensorPart>{{tensor, Dims(shape.size())}}) {
    const TensorView& view = part.tensor.view;
    const int64_t within = index - part.offset[dim];
    if (within < 0 || within >= view.shape()[dim]) continue;
    const char* const data =
        static_cast<const char*>(view.data()) + within * view.strides()[dim] * SizeOf(view.dtype());
    TensorPart slice{part.tensor, without(part.offset)};
    slice.tensor.view = TensorView(data, view.dtype(), without(view.shape()), without(view.strides()));
    parts.push_back(std::move(slice));
  }
  return ScatteredElements::Join(tensor.view.dtype(), without(shape), without(shape), std::move(parts));
}

// The parts of a stack, in the map that holds all of them by path.
absl::Status TakeApart(const StackedTensors& stacked, const PathPattern& each, Captures captures,
                       const std::string& path, Tensor tensor, Value::Map* parts) {
  const auto num_dims = static_cast<int64_t>(tensor.view.shape().size());
  const int64_t dim = stacked.dim() < 0 ? stacked.dim() + num_dims : stacked.dim();
  if (dim < 0 || dim >= num_dims) {
    return absl::InvalidArgumentError(absl::StrCat("stacked { path: \"", stacked.path(), "\" }: '", path,
                                                   "' is ", ShapeToString(tensor.view.shape()),
                                                   " and has no dimension ", stacked.dim()));
  }
  // Ranges of a flat buffer are no boxes of the tensor.
  if (tensor.scattered != nullptr &&
      tensor.scattered->parts()[0].offset.size() != tensor.view.shape().size()) {
    OTT_ASSIGN_OR_RETURN(tensor, Gathered(tensor));
  }
  for (int64_t i = 0; i < tensor.view.shape()[dim]; ++i) {
    captures["number"] = absl::StrCat(i);
    OTT_ASSIGN_OR_RETURN(Tensor slice, SliceOf(tensor, dim, i));
    const std::string name = each.Expand(captures);
    if (parts->Insert(name, std::move(slice)) == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("two stacks have a '", name, "'"));
  }
  return absl::OkStatus();
}

// The value without the tensors that are stacked, whose parts are inserted; nullopt if it is one itself.
absl::StatusOr<std::optional<Value>> WithoutStack(const std::string& path, const Value& value,
                                                  const StackedTensors& stacked, const PathPattern& pattern,
                                                  const PathPattern& each, Value::Map* parts) {
  if (value.is_tensor()) {
    const std::optional<Captures> captures = pattern.Match(path);
    if (!captures.has_value()) return std::optional<Value>(value);
    OTT_RETURN_IF_ERROR(TakeApart(stacked, each, *captures, path, value.tensor(), parts));
    return std::optional<Value>();
  }
  if (!value.is_map()) return std::optional<Value>(value);
  Value::Map map;
  for (const auto& [name, child] : value.map()) {
    OTT_ASSIGN_OR_RETURN(std::optional<Value> kept,
                         WithoutStack(JoinPath(path, name), child, stacked, pattern, each, parts));
    if (kept.has_value()) map.Insert(name, *std::move(kept));
  }
  return std::optional<Value>(std::move(map));
}

absl::StatusOr<Value> Unstacked(Value state, const RunLayout& layout) {
  for (const StackedTensors& stacked : layout.stacked()) {
    OTT_ASSIGN_OR_RETURN(const PathPattern pattern, PathPattern::Parse(stacked.path()));
    OTT_ASSIGN_OR_RETURN(const PathPattern each, PathPattern::Parse(stacked.each()));
    OTT_ASSIGN_OR_RETURN(const PathPattern known, PathPattern::Parse(stacked.path() + ".{number}"));
    OTT_RETURN_IF_ERROR(each.CheckNamesAreIn(known));
    Value::Map parts;
    OTT_ASSIGN_OR_RETURN(std::optional<Value> rest, WithoutStack("", state, stacked, pattern, each, &parts));
    if (!rest.has_value()) continue;
    for (const auto& [name, part] : parts) {
      if (rest->map().Insert(name, part) == nullptr)
        return absl::InvalidArgumentError(absl::StrCat("'", name, "' is there by itself, and in a stack"));
    }
    state = *std::move(rest);
  }
  return state;
}

absl::StatusOr<StateOfRanks> SplitIntoRanks(const Value& state) {
  StateOfRanks result;
  std::map<Position, const Value*> by_position;
  Position sizes = {1, 1, 1};
  if (state.is_map()) {
    for (const auto& [name, child] : state.map()) {
      const std::optional<Position> position = PositionOf(name);
      if (!position.has_value()) {
        result.problems.push_back(
            absl::StrCat(name, " lies beside the folders of ranks, and is not compared"));
        continue;
      }
      by_position[*position] = &child;
      for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::max(sizes[i], (*position)[i] + 1);
    }
  }
  for (const auto& [name, size, own] :
       {std::tuple("ep", sizes[0], true), {"pp", sizes[1], true}, {"tp", sizes[2], false}}) {
    MeshAxis* const axis = result.mesh.add_axes();
    axis->set_name(name);
    axis->set_size(size);
    axis->set_own_tensors(own);
  }
  if (by_position.empty()) {
    result.problems.clear();
    result.ranks.push_back(state);
    return result;
  }
  if (int64_t{sizes[0]} * sizes[1] * sizes[2] != static_cast<int64_t>(by_position.size())) {
    return absl::InvalidArgumentError(absl::StrCat("has ", by_position.size(), " folders mp_rank_*, but ",
                                                   sizes[2], " of tensor, ", sizes[1], " of pipeline and ",
                                                   sizes[0], " of expert parallelism"));
  }
  for (const auto& [position, rank] : by_position) result.ranks.push_back(*rank);
  return result;
}

}  // namespace

absl::StatusOr<StateOfRanks> StateOfRanks::Of(const Value& state, const RunLayout& layout) {
  OTT_ASSIGN_OR_RETURN(StateOfRanks result, SplitIntoRanks(state));
  for (Value& rank : result.ranks) {
    OTT_ASSIGN_OR_RETURN(rank, Unstacked(std::move(rank), layout));
  }
  return result;
}

absl::StatusOr<RunRules> RulesFor(const StateOfRanks& state, RunLayout layout) {
  const DeviceMesh& axes = layout.has_mesh() ? layout.mesh() : state.mesh;
  const auto num_ranks = static_cast<int>(state.ranks.size());
  OTT_ASSIGN_OR_RETURN(const RankMesh mesh, RankMesh::Create(axes, num_ranks));
  std::vector<std::vector<NamedTensor>> tensors;
  for (const Value& rank : state.ranks) tensors.push_back(ListTensors(rank));
  Counts counts;
  for (const TensorRule& rule : layout.tensors()) {
    OTT_RETURN_IF_ERROR(CountNumbers(state, rule, mesh, tensors, &counts));
  }
  for (TensorRule& rule : *layout.mutable_tensors()) {
    for (LocalNumber& number : *rule.mutable_numbers()) {
      const auto found = counts.find({number.name(), number.axis()});
      if (found == counts.end() || number.count() != 0 || !number.positions().empty()) continue;
      for (const auto& [position, count] : found->second) {
        for (int64_t i = 0; i < count; ++i) number.add_positions(position);
      }
      // A rule that nothing matches is said later.
      if (number.positions().empty()) number.add_positions(0);
    }
  }
  return RunRules::Create(layout, axes, num_ranks);
}

BoundRun BindState(const StateOfRanks& state, const RunRules& rules) {
  std::vector<absl::StatusOr<RankDump>> dumps;
  for (const Value& rank : state.ranks) {
    const absl::StatusOr<Value> present = WithoutNulls("", rank);
    dumps.push_back(present.ok() ? absl::StatusOr<RankDump>(RankDump::Of(*present)) : present.status());
  }
  BoundRun run = BindDumps(std::move(dumps), rules);
  run.problems.insert(run.problems.begin(), state.problems.begin(), state.problems.end());
  return run;
}

absl::StatusOr<Value> ToWholes(const Value& tree, const RunLayout& layout,
                               std::vector<std::string>* problems) {
  OTT_ASSIGN_OR_RETURN(const StateOfRanks state, StateOfRanks::Of(tree, layout));
  OTT_ASSIGN_OR_RETURN(const RunRules rules, RulesFor(state, layout));
  const BoundRun run = BindState(state, rules);
  problems->insert(problems->end(), run.problems.begin(), run.problems.end());
  ValueMap wholes;
  for (const WholeTensor& whole : run.tensors) {
    absl::StatusOr<Value> value = ValueOf(run, whole);
    if (value.ok()) {
      wholes.Insert(whole.name, *std::move(value));
    } else {
      problems->push_back(absl::StrCat(whole.name, ": ", value.status().message()));
    }
  }
  return Value(std::move(wholes));
}

}  // namespace ott::crosscheck
