#include "ott/questions/sound/disk_evidence.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/tensor/element.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/crosscheck/check_history.h"
#include "ott/questions/sound/sound.h"

namespace ott::sound {
namespace {

constexpr char kCrossCheck[] = "cross_check";
constexpr char kFiniteGradients[] = "dumped_gradient_nonfinite";
constexpr char kChangedParameters[] = "dumped_parameter_unchanged";
// Each tensor of a dump is read.
constexpr size_t kMaxDumps = 64;

SoundRule* AddRule(const char* name, const char* must_hold, const char* advice, SoundRecord* record) {
  SoundRule* const rule = record->add_rules();
  rule->set_name(name);
  rule->set_must_hold(must_hold);
  rule->set_advice(advice);
  return rule;
}

void AddFinding(const char* rule, int64_t iteration, const std::vector<std::string>& names, std::string seen,
                SoundRecord* record) {
  SoundFinding* const finding = record->add_findings();
  finding->set_rule(rule);
  finding->set_iteration(iteration);
  *finding->mutable_names() = {names.begin(), names.end()};
  finding->set_seen(std::move(seen));
}

// Calls f(value) for each element of a floating-point dtype; of a complex one, for a part that is not finite,
// or else for one that is not 0.
template <typename F>
void VisitFloats(const TensorView& view, F f) {
  VisitDType(view.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* const values = static_cast<const T*>(view.data());
    if constexpr (kIsComplex<T>) {
      for (int64_t i = 0; i < view.num_elements(); ++i) {
        const double real = values[i].real(), imaginary = values[i].imag();
        f(std::isfinite(real) && imaginary != 0 ? imaginary : real);
      }
    } else if constexpr (!std::is_integral_v<T>) {
      for (int64_t i = 0; i < view.num_elements(); ++i) f(static_cast<double>(values[i]));
    }
  });
}

struct GradientFigures {
  int64_t num_nonfinite = 0;
  bool is_nonzero = false;
};

GradientFigures ReadGradient(const Tensor& tensor) {
  GradientFigures figures;
  VisitFloats(tensor.view, [&](double value) {
    figures.num_nonfinite += !std::isfinite(value);
    figures.is_nonzero = figures.is_nonzero || value != 0;
  });
  return figures;
}

// Parameters and gradients of a dump, by name.
struct DumpedStep {
  int64_t iteration = -1;
  std::map<std::string, Digest> parameters;
  std::map<std::string, GradientFigures> gradients;
  bool all_read = true;
};

DumpedStep ReadStep(const std::string& dir, const Manifest& manifest, const CrossCheckConfig& kinds) {
  DumpedStep step;
  step.iteration = manifest.iteration;
  for (const ManifestTensor& tensor : manifest.tensors) {
    const bool is_gradient = tensor.group == kGradsFile;
    const std::string name =
        is_gradient ? absl::StrCat("grads.", tensor.path) : TensorName(tensor.path, manifest.has_grads);
    const TensorKind kind = KindOfTensor(kinds, name);
    if (kind == TENSOR_KIND_PARAMETER) step.parameters[name] = tensor.digest;
    if (kind != TENSOR_KIND_GRADIENT) continue;
    const absl::StatusOr<Tensor> read = ReadTensorFile(dir, tensor);
    if (read.ok()) {
      step.gradients[name] = ReadGradient(*read);
    } else {
      step.all_read = false;
    }
  }
  return step;
}

// The gradient of "weights.w1" is "grads.weights.w1", "grads.w1" or "gradients.w1"; null: not known.
const GradientFigures* FindGradient(const DumpedStep& step, const std::string& parameter) {
  for (const char* const above : {"grads.", "gradients."}) {
    for (const std::string& name : {parameter, parameter.substr(parameter.find('.') + 1)}) {
      const auto found = step.gradients.find(absl::StrCat(above, name));
      if (found != step.gradients.end()) return &found->second;
    }
  }
  return nullptr;
}

bool HasUsableGradient(const DumpedStep& step, const std::string& parameter) {
  const GradientFigures* const gradient = FindGradient(step, parameter);
  return gradient != nullptr && gradient->is_nonzero && gradient->num_nonfinite == 0;
}

bool HasKnownGradient(const DumpedStep& step) {
  return std::any_of(step.parameters.begin(), step.parameters.end(),
                     [&](const auto& parameter) { return FindGradient(step, parameter.first) != nullptr; });
}

// Names of parameters that have the same bits as in the iteration before, with a gradient in both, while
// others changed. A dump may be made before its step or after it.
std::vector<std::string> FindUnchanged(const DumpedStep& before, const DumpedStep& now) {
  std::vector<std::string> unchanged;
  bool any_changed = false;
  for (const auto& [name, digest] : now.parameters) {
    const auto earlier = before.parameters.find(name);
    if (earlier == before.parameters.end()) continue;
    if (!(earlier->second == digest)) {
      any_changed = true;
      continue;
    }
    if (HasUsableGradient(before, name) && HasUsableGradient(now, name)) unchanged.push_back(name);
  }
  return any_changed ? unchanged : std::vector<std::string>();
}

void AddVerdict(const CrossCheckVerdict& verdict, int num_ranks, std::map<int, SoundRecord>* records) {
  std::vector<int> ranks = {verdict.culprit_ranks().begin(), verdict.culprit_ranks().end()};
  if (ranks.empty()) {
    for (int rank = 0; rank < num_ranks; ++rank) ranks.push_back(rank);
  }
  const char* const what =
      verdict.mode() == DISTINCT ? " tensors are the same on several ranks" : " tensors differ";
  for (const int rank : ranks) {
    AddFinding(kCrossCheck, verdict.iteration(), {verdict.tensor()},
               absl::StrCat(verdict.num_different_tensors(), " of ", verdict.num_tensors(), what),
               &(*records)[rank]);
  }
}

// Adds checks of replicas and of data that each rank has of its own; differences from a reference are another
// question. all_ranks: also to ranks that have no record yet.
void AddCrossChecks(const crosscheck::CheckHistories& histories, int num_ranks, bool all_ranks,
                    std::map<int, SoundRecord>* records) {
  const int64_t num_checks = histories.replicas.summary.num_checks + histories.distinct.summary.num_checks;
  if (num_checks == 0) return;
  std::set<int64_t> iterations;
  for (const crosscheck::CheckHistory* const history : {&histories.replicas, &histories.distinct}) {
    for (const CrossCheckVerdict& verdict : history->verdicts) iterations.insert(verdict.iteration());
  }
  const auto num_iterations = static_cast<int64_t>(iterations.size());
  for (int rank = 0; rank < num_ranks; ++rank) {
    if (!all_ranks && records->count(rank) == 0) continue;
    SoundRecord& record = (*records)[rank];
    record.set_num_iterations(std::max<int64_t>(record.num_iterations(), num_iterations));
    SoundRule* const rule =
        AddRule(kCrossCheck, "What the configuration says that ranks share, or each has of its own, is so.",
                "`ott crosscheck RUN` names the elements.", &record);
    const int64_t not_compared =
        histories.replicas.summary.num_not_compared + histories.distinct.summary.num_not_compared;
    rule->set_num_checks(num_checks - not_compared);
    if (not_compared > 0)
      rule->set_not_checked(absl::StrCat(not_compared, " of ", num_checks, " checks could not be made"));
  }
  for (const crosscheck::CheckHistory* history : {&histories.replicas, &histories.distinct}) {
    if (const CrossCheckVerdict* first = history->first_divergence()) AddVerdict(*first, num_ranks, records);
  }
}

}  // namespace

void AddDumpedSteps(const std::string& run_dir, int rank, const CrossCheckConfig& kinds,
                    SoundRecord* record) {
  const absl::StatusOr<std::vector<int64_t>> iterations = ListDumps(DumpsDirectory(run_dir, rank));
  if (!iterations.ok() || iterations->empty()) return;
  SoundRule finite;
  SoundRule changed;
  int64_t num_steps = 0;
  std::string not_checked;
  bool found_nonfinite = false;
  bool any_in_a_row = false;
  std::set<std::string> found_unchanged;
  DumpedStep before;
  for (size_t i = 0; i < std::min(iterations->size(), kMaxDumps); ++i) {
    const std::string dir = DumpPath(run_dir, rank, (*iterations)[i]);
    const absl::StatusOr<std::optional<Manifest>> manifest = ReadManifest(dir);
    if (!manifest.ok() || !*manifest) {
      not_checked = absl::StrCat(dir, " is not whole");
      continue;
    }
    DumpedStep step = ReadStep(dir, **manifest, kinds);
    ++num_steps;
    if (!step.all_read) not_checked = "gradients that are not in files of their own";
    finite.set_num_checks(finite.num_checks() + !step.gradients.empty());
    for (const auto& [name, figures] : step.gradients) {
      if (figures.num_nonfinite == 0 || std::exchange(found_nonfinite, true)) continue;
      AddFinding(kFiniteGradients, step.iteration, {name},
                 absl::StrCat(figures.num_nonfinite, " elements are not finite"), record);
    }
    if (before.iteration >= 0 && step.iteration == before.iteration + 1) {
      any_in_a_row = true;
      changed.set_num_checks(changed.num_checks() + (HasKnownGradient(before) && HasKnownGradient(step)));
      std::vector<std::string> unchanged = FindUnchanged(before, step);
      unchanged.erase(
          std::remove_if(unchanged.begin(), unchanged.end(),
                         [&](const std::string& name) { return !found_unchanged.insert(name).second; }),
          unchanged.end());
      if (!unchanged.empty()) {
        AddFinding(kChangedParameters, step.iteration, unchanged,
                   "has a gradient and did not change, and others did", record);
      }
    }
    before = std::move(step);
  }
  if (finite.num_checks() == 0) return;
  if (iterations->size() > kMaxDumps)
    not_checked = absl::StrCat("only the first ", kMaxDumps, " dumps were read");
  record->set_num_iterations(std::max(record->num_iterations(), num_steps));
  SoundRule* rule =
      AddRule(kFiniteGradients, "Gradients that a step uses are finite, or else parameters become NaN.",
              "Look for the operation with `ott origin`.", record);
  rule->set_num_checks(finite.num_checks());
  rule->set_not_checked(not_checked);
  rule = AddRule(kChangedParameters, "A parameter with a gradient changes in a step that changes others.",
                 "Look whether the optimizer has it.", record);
  rule->set_num_checks(changed.num_checks());
  if (changed.num_checks() == 0) {
    rule->set_not_checked(any_in_a_row ? "no gradient has the name of a parameter that was dumped with it"
                                       : "no two iterations in a row were dumped");
  }
}

std::map<int, SoundRecord> ReadEvidence(const std::string& run_dir, const std::vector<int>& ranks,
                                        const std::optional<RunInfo>& info,
                                        std::vector<std::string>* problems) {
  std::map<int, SoundRecord> records = ReadSoundRecords(run_dir, ranks, problems);
  // A rank without a record is missing if others left one, unless its dumps show a fault.
  const bool none_left_one = records.empty();
  const CrossCheckConfig kinds = info ? info->config().cross_check() : CrossCheckConfig();
  for (const int rank : ranks) {
    SoundRecord dumped;
    AddDumpedSteps(run_dir, rank, kinds, &dumped);
    const bool counts = none_left_one || records.count(rank) > 0 || !dumped.findings().empty();
    if (!dumped.rules().empty() && counts) records[rank].MergeFrom(dumped);
  }
  const auto histories = crosscheck::ReadCheckHistories(run_dir, ranks, info);
  const int num_ranks = info ? info->world_size() : static_cast<int>(ranks.size());
  if (!histories.ok()) {
    problems->emplace_back(histories.status().message());
    return records;
  }
  problems->insert(problems->end(), histories->problems.begin(), histories->problems.end());
  AddCrossChecks(*histories, num_ranks, none_left_one, &records);
  return records;
}

}  // namespace ott::sound
