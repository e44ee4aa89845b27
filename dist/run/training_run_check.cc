// What a TrainingRun does with the tensors of an iteration, and with verdicts on them.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/run/training_run.h"
#include "ott/questions/hang/recorded_communicator.h"

namespace ott {
namespace {

// Of those that the ranks have yet to agree to act upon.
constexpr size_t kMaxFailuresKept = 16;
// Of one kind, on stdout; all are in cross_check.jsonl.
constexpr int kMaxFailuresPrinted = 3;

}  // namespace

absl::Status TrainingRun::CheckAndDump() {
  TensorDumper& dumper = TensorDumper::Get();
  absl::Status status;
  if (cross_check_ != nullptr && cross_check_->Selects(iteration_)) {
    const RecordedOperation recorded(recorded_check_, FlightClock());
    const absl::StatusOr<Value> added = dumper.tensors();
    const absl::StatusOr<Value> added_grads = dumper.grads();
    // The other ranks wait for this one, which has no tensors where a copy from a device failed.
    const absl::Status& problem = added.ok() ? added_grads.status() : added.status();
    const Value tensors = problem.ok() ? *added : ValueMap();
    const Value grads = problem.ok() ? *added_grads : ValueMap();
    const Value* const gradients = grads.map().empty() ? nullptr : &grads;
    const std::vector<NamedTensor> listed = ListTensorsAndGrads(tensors, gradients);
    if (const auto verdict = cross_check_->CheckReplicas(iteration_, listed, problem)) {
      status.Update(AddVerdict(*verdict));
    }
    if (const auto verdict = cross_check_->CheckDistinct(iteration_, listed, problem)) {
      status.Update(AddVerdict(*verdict));
    }
    for (const CrossCheckVerdict& verdict : cross_check_->CheckShards(iteration_, listed, problem)) {
      status.Update(AddVerdict(verdict));
    }
    if (cross_check_->has_reference()) {
      status.Update(AddVerdict(cross_check_->CheckReference(iteration_, tensors, gradients, problem)));
    }
    status.Update(ActOnDivergence());
  }
  if (DumpsThisIteration()) {
    status.Update(dumper.Dump());
    if (config_.has_stopwatch()) status.Update(WriteStatsSoon());
  } else {
    dumper.Discard();
  }
  return status;
}

absl::Status TrainingRun::AddVerdict(const CrossCheckVerdict& verdict) {
  const Outcome outcome = OutcomeOfAllRanks(verdict);
  const bool passed = SeverityOf(outcome) <= SeverityOf(WITHIN_TOLERANCE);
  const absl::Status written = verdicts_->Add(verdict);
  if (passed) return written;
  diverged_ = true;
  failed_.push_back(verdict);
  if (failed_.size() > kMaxFailuresKept) failed_.pop_front();
  // Replicas have one verdict, which rank 0 prints; of the ranks' verdicts on a reference, the worst is
  // printed.
  const bool is_mine = verdict.mode() == REPLICAS || verdict.mode() == DISTINCT
                           ? ranks_.rank() == 0
                           : ranks_.rank() == verdict.worst_rank();
  // Each kind has a count of its own, so that a reference that is missing hides no replicas that differ.
  int& num_printed = num_failures_printed_[{verdict.mode(), outcome}];
  if (is_mine && num_printed++ < kMaxFailuresPrinted) {
    std::fputs(FormatVerdict(verdict).c_str(), stdout);
    if (num_printed == kMaxFailuresPrinted) {
      std::printf("    further ones of this kind are only counted%s\n",
                  config_.run_dir().empty()
                      ? ""
                      : absl::StrCat(", and in ", config_.run_dir(), "/rank_*/cross_check.jsonl").c_str());
    }
    std::fflush(stdout);
  }
  return written;
}

absl::Status TrainingRun::ActOnDivergence() {
  const CrossCheck::Decision decision = cross_check_->AgreeOnDivergence({failed_.begin(), failed_.end()});
  diverged_ = diverged_ || decision.diverged;
  if (!decision.verdict) return absl::OkStatus();
  if (failed_.empty()) failed_.push_back(*decision.verdict);
  absl::Status status;
  for (const CrossCheckVerdict& verdict : std::exchange(failed_, {})) {
    if (on_divergence_) status.Update(on_divergence_(verdict));
  }
  if (config_.cross_check().abort_on_divergence()) {
    status.Update(absl::AbortedError(FormatVerdict(*decision.verdict)));
  }
  return status;
}

absl::Status TrainingRun::PrintSummary() {
  // Also where a rank is gone, the errors of the others are shown.
  VerdictSummary reference = verdicts_->reference();
  absl::Status status;
  if (cross_check_->has_reference()) {
    double& largest = reference.max_abs_error;
    const std::string_view mine(reinterpret_cast<const char*>(&largest), sizeof(largest));
    OTT_ASSIGN_OR_RETURN(const auto errors, RecordedRanks().GatherAvailable(0, mine, NextDeadline()));
    for (const absl::StatusOr<std::string>& bytes : errors) {
      status.Update(bytes.status());
      double error = 0;
      if (bytes.ok() && bytes->size() == sizeof(error)) std::memcpy(&error, bytes->data(), sizeof(error));
      largest = std::max(largest, error);
    }
  }
  if (ranks_.rank() != 0) return status;
  std::printf("cross-check of %s\n", FormatSummary("replicas", verdicts_->replicas()).c_str());
  if (verdicts_->distinct().num_checks > 0) {
    std::printf("cross-check of %s\n", FormatSummary("distinct tensors", verdicts_->distinct()).c_str());
  }
  if (cross_check_->has_reference()) {
    const std::string subject = absl::StrCat("reference ", config_.cross_check().reference_run());
    std::printf("cross-check against %s\n", FormatSummary(subject, reference).c_str());
  }
  std::fflush(stdout);
  return status;
}

}  // namespace ott
