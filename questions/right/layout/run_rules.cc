#include "ott/questions/right/layout/run_rules.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/status_macros.h"

namespace ott::crosscheck {
namespace {

using internal::Quoted;

// No tensor has so many.
constexpr int kMaxDims = 64;
constexpr int64_t kMaxNumbers = 1 << 20;

absl::Status CheckDim(int dim) {
  if (dim >= -kMaxDims && dim < kMaxDims) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("dim ", dim, " is none of any tensor"));
}

// Turns one TensorRule into a Rule.
class RuleMaker {
 public:
  RuleMaker(const TensorRule& proto, const RankMesh& mesh) : proto_(proto), mesh_(mesh) {}

  absl::StatusOr<Rule> Make() {
    OTT_ASSIGN_OR_RETURN(rule_.path, PathPattern::Parse(proto_.path()));
    if (proto_.path().empty()) return absl::InvalidArgumentError("it has no path");
    for (const auto step :
         {&RuleMaker::MakeSections, &RuleMaker::MakeTranspose, &RuleMaker::MakeSplits, &RuleMaker::MakeSums,
          &RuleMaker::MakePadding, &RuleMaker::MakeNumbers, &RuleMaker::MakeReplicas}) {
      OTT_RETURN_IF_ERROR((this->*step)());
    }
    rule_.optional = proto_.optional();
    return std::move(rule_);
  }

 private:
  absl::Status AddSection(const std::string& whole, int64_t share) {
    if (share < 0) return absl::InvalidArgumentError(absl::StrCat("a section has the share ", share));
    Rule::Section& section = rule_.sections.emplace_back();
    section.begin = rule_.num_shares;
    section.share = std::max<int64_t>(share, 1);
    if (section.share > kMaxNumbers) {
      return absl::InvalidArgumentError(absl::StrCat("a section has the share ", share));
    }
    rule_.num_shares += section.share;
    if (whole.empty()) return absl::OkStatus();
    OTT_ASSIGN_OR_RETURN(section.whole, PathPattern::Parse(whole));
    return section.whole->CheckNamesAreIn(rule_.path);
  }

  absl::Status MakeSections() {
    rule_.num_shares = 0;
    if (!proto_.has_fused()) return AddSection(proto_.whole().empty() ? proto_.path() : proto_.whole(), 1);
    const FusedTensors& fused = proto_.fused();
    if (!proto_.whole().empty()) return absl::InvalidArgumentError("it has both whole and fused");
    if (fused.sections().empty()) return absl::InvalidArgumentError("fused has no sections");
    if (fused.group() < 0) return absl::InvalidArgumentError(absl::StrCat("a group of ", fused.group()));
    OTT_RETURN_IF_ERROR(CheckDim(fused.dim()));
    rule_.fused_dim = fused.dim();
    rule_.group = fused.group();
    for (const FusedSection& section : fused.sections()) {
      OTT_RETURN_IF_ERROR(AddSection(section.whole(), section.share()));
    }
    return absl::OkStatus();
  }

  absl::Status MakeTranspose() {
    std::vector<int> sorted = {proto_.transpose().begin(), proto_.transpose().end()};
    rule_.transpose = sorted;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] == static_cast<int>(i)) continue;
      return absl::InvalidArgumentError(absl::StrCat("transpose [", absl::StrJoin(proto_.transpose(), ", "),
                                                     "] does not name each dimension once"));
    }
    return absl::OkStatus();
  }

  // An axis that nothing else of the rule names.
  absl::StatusOr<int> UseAxis(const std::string& name) {
    OTT_ASSIGN_OR_RETURN(const int axis, mesh_.FindAxis(name));
    if (std::find(used_.begin(), used_.end(), axis) != used_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("it uses the axis ", Quoted(name), " twice"));
    }
    used_.push_back(axis);
    return axis;
  }

  absl::Status MakeSplits() {
    for (const Split& split : proto_.split()) {
      OTT_RETURN_IF_ERROR(CheckDim(split.dim()));
      OTT_ASSIGN_OR_RETURN(const int axis, UseAxis(split.axis()));
      auto found = std::find_if(rule_.splits.begin(), rule_.splits.end(),
                                [&](const Rule::SplitDim& of) { return of.dim == split.dim(); });
      if (found == rule_.splits.end()) found = rule_.splits.insert(found, {split.dim(), {}});
      found->axes.push_back(axis);
    }
    return absl::OkStatus();
  }

  absl::Status MakeSums() {
    for (const std::string& name : proto_.sum()) {
      OTT_ASSIGN_OR_RETURN(const int axis, UseAxis(name));
      rule_.sum_axes.push_back(axis);
    }
    for (const std::string& name : proto_.average()) {
      OTT_ASSIGN_OR_RETURN(const int axis, UseAxis(name));
      rule_.sum_axes.push_back(axis);
      rule_.divisor *= mesh_.axes()[axis].size();
    }
    return absl::OkStatus();
  }

  absl::Status MakePadding() {
    for (const Padding& padding : proto_.padding()) {
      OTT_RETURN_IF_ERROR(CheckDim(padding.dim()));
      if (padding.size() < 1) {
        return absl::InvalidArgumentError("padding without the size of the whole tensor");
      }
      rule_.padding.push_back(padding);
    }
    return absl::OkStatus();
  }

  absl::Status MakeNumbers() {
    for (const LocalNumber& number : proto_.numbers()) {
      const absl::Status status = MakeNumber(number);
      if (!status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("numbers of {", number.name(), "}: ", status.message()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status MakeNumber(const LocalNumber& number) {
    if (!rule_.path.Has(number.name())) return absl::InvalidArgumentError("the path has no such name");
    Rule::Numbers& numbers = rule_.numbers.emplace_back();
    numbers.name = number.name();
    OTT_ASSIGN_OR_RETURN(numbers.axis, mesh_.FindAxis(number.axis()));
    const int size = mesh_.axes()[numbers.axis].size();
    numbers.by_position.resize(size);
    if (number.positions().empty() == (number.count() == 0)) {
      return absl::InvalidArgumentError("they need either count or positions");
    }
    if (number.count() < 0 || number.count() > kMaxNumbers || number.count() % size != 0) {
      return absl::InvalidArgumentError(absl::StrCat("a count of ", number.count(), " on ", size,
                                                     " ranks: positions says where each of them is"));
    }
    for (int64_t i = 0; i < number.count(); ++i)
      numbers.by_position[i / (number.count() / size)].push_back(i);
    for (int i = 0; i < number.positions_size(); ++i) {
      const int position = number.positions(i);
      if (position < 0 || position >= size) {
        return absl::InvalidArgumentError(absl::StrCat("the position ", position, " of ", size, " ranks"));
      }
      numbers.by_position[position].push_back(i);
    }
    return absl::OkStatus();
  }

  absl::Status MakeReplicas() {
    for (const std::string& name : proto_.one_of()) {
      OTT_ASSIGN_OR_RETURN(const int axis, UseAxis(name));
      rule_.one_of_axes.push_back(axis);
    }
    for (int axis = 0; axis < static_cast<int>(mesh_.axes().size()); ++axis) {
      const auto is = [axis](int of) { return of == axis; };
      const bool one_of = std::any_of(rule_.one_of_axes.begin(), rule_.one_of_axes.end(), is);
      if (std::any_of(used_.begin(), used_.end(), is) && !one_of) continue;
      rule_.replica_axes.push_back(axis);
      if (mesh_.axes()[axis].own_tensors()) rule_.own_axes.push_back(axis);
    }
    return absl::OkStatus();
  }

  const TensorRule& proto_;
  const RankMesh& mesh_;
  std::vector<int> used_;
  Rule rule_;
};

}  // namespace

std::string Rule::Describe(const RankMesh& mesh) const {
  const auto names = [&](const std::vector<int>& axes) {
    return absl::StrJoin(axes, ", ", [&](std::string* text, int axis) { *text += mesh.axes()[axis].name(); });
  };
  std::vector<std::string> parts;
  std::vector<std::string> wholes;
  for (const Section& section : sections) {
    wholes.push_back(section.whole.has_value() ? Quoted(section.whole->text()) : "what is not compared");
    if (sections.size() > 1) absl::StrAppend(&wholes.back(), " (", section.share, "/", num_shares, ")");
  }
  if (sections.size() > 1) {
    parts.push_back(absl::StrCat("dim ", fused_dim, " holds ", absl::StrJoin(wholes, ", "),
                                 group > 0 ? absl::StrCat(" in groups of ", group) : ""));
  } else if (wholes[0] != Quoted(path.text())) {
    parts.push_back(absl::StrCat("is ", wholes[0]));
  }
  if (!transpose.empty()) parts.push_back(absl::StrCat("transposed [", absl::StrJoin(transpose, ", "), "]"));
  for (const SplitDim& split : splits) {
    parts.push_back(absl::StrCat("dim ", split.dim, " split over ", names(split.axes)));
  }
  if (!sum_axes.empty()) {
    parts.push_back(absl::StrCat("the sum over ", names(sum_axes),
                                 divisor > 1 ? absl::StrCat(" divided by ", divisor) : ""));
  }
  for (const Padding& pad : padding) {
    parts.push_back(absl::StrCat("dim ", pad.dim(), " padded from ", pad.size()));
  }
  for (const Numbers& number : numbers) {
    parts.push_back(absl::StrCat("{", number.name, "} counted within ", mesh.axes()[number.axis].name()));
  }
  std::vector<int> several;
  std::copy_if(replica_axes.begin(), replica_axes.end(), std::back_inserter(several),
               [&](int axis) { return mesh.axes()[axis].size() > 1; });
  if (!several.empty()) parts.push_back(absl::StrCat("replicas over ", names(several)));
  if (!one_of_axes.empty()) parts.push_back(absl::StrCat("one replica of ", names(one_of_axes), " compared"));
  return absl::StrCat(Quoted(path.text()), ": ", parts.empty() ? "whole" : absl::StrJoin(parts, "; "));
}

absl::StatusOr<RunRules> RunRules::Create(const RunLayout& layout, const DeviceMesh& mesh, int num_ranks) {
  RunRules rules;
  OTT_ASSIGN_OR_RETURN(rules.mesh, RankMesh::Create(layout.has_mesh() ? layout.mesh() : mesh, num_ranks));
  TensorRule all;
  all.set_path("*");
  std::vector<TensorRule> protos = {layout.tensors().begin(), layout.tensors().end()};
  if (protos.empty()) protos.push_back(all);
  for (size_t i = 0; i < protos.size(); ++i) {
    absl::StatusOr<Rule> rule = RuleMaker(protos[i], rules.mesh).Make();
    if (!rule.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rule ", i + 1, " (path ", Quoted(protos[i].path()), "): ", rule.status().message()));
    }
    rules.rules.push_back(*std::move(rule));
  }
  for (const std::string& text : layout.ignore()) {
    OTT_ASSIGN_OR_RETURN(rules.ignore.emplace_back(), PathPattern::Parse(text));
  }
  return rules;
}

}  // namespace ott::crosscheck
