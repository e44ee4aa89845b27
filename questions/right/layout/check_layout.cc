#include "ott/questions/right/layout/check_layout.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/glob.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/compare/report.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/layout/run_rules.h"
#include "ott/questions/right/layout/tree_layout.h"
#include "ott/questions/right/layout/whole_comparison.h"
#include "ott/questions/right/layout/whole_reader.h"
#include "ott/questions/right/layout/whole_tensors.h"

namespace ott::crosscheck {
namespace {

// More of them say nothing new.
constexpr int kMaxDifferences = 100;

struct LayoutRun {
  const char* name;
  std::string dir;
  std::optional<RunRules> rules = std::nullopt;
  std::optional<StateOfRanks> checkpoint = std::nullopt;
};

absl::StatusOr<RunRules> MakeRules(const RunLayout& layout, LayoutRun* run) {
  if (!IsRunDirectory(run->dir) && IsCheckpoint(run->dir)) {
    OTT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(run->dir));
    OTT_ASSIGN_OR_RETURN(run->checkpoint.emplace(), StateOfRanks::Of(checkpoint.state, layout));
    return RulesFor(*run->checkpoint, layout);
  }
  if (!layout.stacked().empty()) return absl::InvalidArgumentError("`stacked` is for checkpoints alone");
  OTT_ASSIGN_OR_RETURN(const RunInfo info, ReadRunInfo(run->dir));
  const DeviceMesh mesh = info.config().mesh().empty() ? DeviceMesh() : info.config().mesh(0);
  return RunRules::Create(layout, mesh, info.world_size());
}

absl::StatusOr<LayoutRun> MakeRun(const char* name, const std::string& dir, RunLayout layout,
                                  const Layout& of_both) {
  LayoutRun run{name, LatestAttempt(dir)};
  layout.mutable_tensors()->MergeFrom(of_both.tensors());
  absl::StatusOr<RunRules> rules = MakeRules(layout, &run);
  if (!rules.ok()) {
    return absl::Status(rules.status().code(),
                        absl::StrCat("layout of ", name, " (", run.dir, "): ", rules.status().message()));
  }
  run.rules = *std::move(rules);
  return run;
}

// The comparison of one iteration.
class IterationChecker {
 public:
  IterationChecker(const LayoutRun& a, const LayoutRun& b, const LayoutOptions& options)
      : a_(a), b_(b), options_(options) {}

  LayoutVerdict Check(int64_t iteration) && {
    verdict_.set_iteration(iteration);
    if (options_.tolerance_file.has_value()) path_tolerances_ = options_.tolerance_file->At(iteration);
    const BoundRun a_run = Bind(a_);
    const BoundRun b_run = Bind(b_);
    absl::flat_hash_map<std::string, const WholeTensor*> in_b;
    for (const WholeTensor& whole : b_run.tensors) in_b.emplace(whole.name, &whole);
    for (const WholeTensor& whole : a_run.tensors) {
      const auto found = in_b.find(whole.name);
      if (found == in_b.end()) {
        DoNotCompare(absl::StrCat("\"", whole.name, "\": a has it, b has not"));
        continue;
      }
      const WholeTensor& other = *found->second;
      in_b.erase(found);
      for (const auto& [run, of] : {std::pair(a_.name, &whole), std::pair(b_.name, &other)}) {
        if (!of->problem.empty())
          DoNotCompare(absl::StrCat("\"", whole.name, "\" of ", run, ": ", of->problem));
      }
      if (whole.problem.empty() && other.problem.empty()) Compare(a_run, whole, b_run, other);
    }
    for (const WholeTensor& whole : b_run.tensors) {
      if (in_b.contains(whole.name)) DoNotCompare(absl::StrCat("\"", whole.name, "\": b has it, a has not"));
    }
    Judge();
    return std::move(verdict_);
  }

 private:
  BoundRun Bind(const LayoutRun& run) {
    BoundRun bound = run.checkpoint.has_value() ? BindState(*run.checkpoint, *run.rules)
                                                : BindRun(run.dir, verdict_.iteration(), *run.rules);
    for (const std::string& problem : bound.problems) DoNotCompare(absl::StrCat(run.name, ": ", problem));
    verdict_.add_understood(AsUtf8(absl::StrCat(
        run.name, ": ", run.dir, ": ", run.rules->mesh.num_ranks(),
        run.rules->mesh.num_ranks() == 1 ? " rank = " : " ranks = ", run.rules->mesh.ToString())));
    for (const std::string& line : bound.understood)
      verdict_.add_understood(AsUtf8(absl::StrCat("  ", line)));
    return bound;
  }

  std::optional<Tolerance> ToleranceFor(const std::string& tensor) const {
    for (const PathTolerance& entry : path_tolerances_) {
      if (MatchesTensorGlob(tensor, entry.glob)) return entry.tolerance;
    }
    return options_.tolerance;
  }

  void DoNotCompare(const std::string& reason) { verdict_.add_not_compared(AsUtf8(reason)); }

  void Compare(const BoundRun& a_run, const WholeTensor& a, const BoundRun& b_run, const WholeTensor& b) {
    absl::StatusOr<WholeComparison> comparison = CompareWholes(a_run, a, b_run, b, ToleranceFor(a.name));
    if (!comparison.ok()) {
      return DoNotCompare(absl::StrCat("\"", a.name, "\": ", comparison.status().message()));
    }
    verdict_.set_num_tensors(verdict_.num_tensors() + 1);
    num_elements_ += Range{{}, a.shape}.num_elements();
    verdict_.set_max_abs_error(std::max(verdict_.max_abs_error(), comparison->max_abs_error));
    const bool different = !comparison->differences.empty();
    if (different || !comparison->bitwise_equal) {
      verdict_.set_num_not_bitwise_equal(verdict_.num_not_bitwise_equal() + 1);
    }
    if (different) verdict_.set_num_different(verdict_.num_different() + 1);
    for (LayoutDifference& difference : comparison->differences) {
      if (verdict_.differences_size() == kMaxDifferences) return;
      difference.set_tensor(a.name);
      difference.set_dtype(std::string(Name(a.dtype)));
      *difference.mutable_shape() = {a.shape.begin(), a.shape.end()};
      *verdict_.add_differences() = std::move(difference);
    }
  }

  void Judge() {
    if (num_elements_ == 0) DoNotCompare("there is no element to compare");
    verdict_.set_outcome(verdict_.num_different() > 0           ? DIFFERENT
                         : !verdict_.not_compared().empty()     ? NOT_COMPARED
                         : verdict_.num_not_bitwise_equal() > 0 ? WITHIN_TOLERANCE
                                                                : BITWISE_EQUAL);
  }

  const LayoutRun& a_;
  const LayoutRun& b_;
  const LayoutOptions& options_;
  std::vector<PathTolerance> path_tolerances_;
  int64_t num_elements_ = 0;
  LayoutVerdict verdict_;
};

}  // namespace

absl::StatusOr<std::vector<LayoutVerdict>> CheckLayout(const std::string& a_dir, const std::string& b_dir,
                                                       const Layout& layout, const LayoutOptions& options) {
  OTT_ASSIGN_OR_RETURN(const LayoutRun a, MakeRun("a", a_dir, layout.a(), layout));
  OTT_ASSIGN_OR_RETURN(const LayoutRun b, MakeRun("b", b_dir, layout.b(), layout));
  if (IsSameRun(a.dir, b.dir) && layout.a().SerializeAsString() == layout.b().SerializeAsString()) {
    return absl::InvalidArgumentError(
        absl::StrCat(b.dir, ": would be compared with itself, which always agrees"));
  }
  std::set<int64_t> iterations;
  if (a.checkpoint.has_value() != b.checkpoint.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat((a.checkpoint.has_value() ? a : b).dir,
                                                   " is a checkpoint, ",
                                                   (a.checkpoint.has_value() ? b : a).dir, " is a run"));
  }
  if (a.checkpoint.has_value()) iterations.insert(0);
  for (const LayoutRun* const run : {&a, &b}) {
    for (int rank = 0; !run->checkpoint.has_value() && rank < run->rules->mesh.num_ranks(); ++rank) {
      AddDumpedIterations(run->dir, rank, &iterations);
    }
  }
  if (iterations.empty()) return absl::NotFoundError(absl::StrCat(a_dir, ", ", b_dir, ": no rank has dumps"));
  std::vector<LayoutVerdict> verdicts;
  std::vector<std::string> understood;
  for (const int64_t iteration : iterations) {
    LayoutVerdict& verdict = verdicts.emplace_back(IterationChecker(a, b, options).Check(iteration));
    std::vector<std::string> lines = {verdict.understood().begin(), verdict.understood().end()};
    if (lines == understood) verdict.clear_understood();
    understood = std::move(lines);
  }
  return verdicts;
}

}  // namespace ott::crosscheck
