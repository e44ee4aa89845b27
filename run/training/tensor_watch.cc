#include "ott/run/training/tensor_watch.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_sink.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/stopwatch/stopwatch_scope.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/nccl_communicator.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/run/training/dump_notice.h"

namespace ott {
namespace {

// Limits the failures that the ranks have yet to agree to act upon.
constexpr size_t kMaxFailuresKept = 16;
// Limits the printed failures of one kind; all are in cross_check.jsonl.
constexpr int kMaxFailuresPrinted = 3;

TensorDumperOptions MakeDumperOptions(const RunFrame& frame) {
  const Config& config = frame.config;
  TensorDumperOptions options = TensorDumper::FromConfig(config.dump());
  options.rank = frame.ranks.rank();
  options.world_size = frame.ranks.size();
  // Without a run directory tensors are only checked.
  options.dir = config.run_dir().empty() ? "." : DumpsDirectory(config.run_dir(), options.rank);
  if (!config.dump().reference_run().empty()) {
    options.reference_dir = DumpsDirectory(LatestAttempt(config.dump().reference_run()), options.rank);
  }
  // The cross-check has iterations and tensors of its own.
  options.adds_all = config.has_cross_check();
  options.around_add = [](const std::function<void()>& add) {
    OTT_STOPWATCH_SCOPE(kObserverMeasurement);
    add();
  };
  return options;
}

// The first rank that dumps.
int FirstRank(const Selection& selection, int world_size) {
  int rank = 0;
  while (rank + 1 < world_size && !selection.WantsRank(rank)) ++rank;
  return rank;
}

CrossCheck::Collectives CollectivesOf(Communicator& ranks) {
  CrossCheck::Collectives by_nccl;
  NcclCommunicator* const nccl = ranks.nccl();
  if (nccl == nullptr) return by_nccl;
  by_nccl.are_equal = [nccl](absl::Span<const uint64_t> words, Deadline deadline) {
    return nccl->AreEqual(words, deadline);
  };
  by_nccl.all_gather = [nccl](std::string_view bytes, Deadline deadline) {
    return nccl->AllGatherByNccl(bytes, deadline);
  };
  return by_nccl;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorWatch>> TensorWatch::Enable(const RunFrame& frame) {
  TensorDumperOptions options = MakeDumperOptions(frame);
  OTT_ASSIGN_OR_RETURN(Selection selection, Selection::Create(options.selection));
  const std::string& run_dir = frame.config.run_dir();
  OTT_ASSIGN_OR_RETURN(
      std::unique_ptr<VerdictLog> verdicts,
      VerdictLog::Open(run_dir.empty() ? "" : RankDirectory(run_dir, options.rank) + "/cross_check.jsonl"));
  if (options.rank == FirstRank(selection, options.world_size)) {
    options.on_first_dump = [selection, first = frame.config.start_iteration(),
                             world_size = options.world_size](const DumpSize& size) {
      PrintLines(FormatDumpNotice(size, selection, first, world_size));
    };
  }
  OTT_RETURN_IF_ERROR(TensorDumper::Get().Enable(std::move(options)));
  return std::unique_ptr<TensorWatch>(new TensorWatch(frame, std::move(selection), std::move(verdicts)));
}

absl::Status TensorWatch::StartChecks(RankRecorder* recorder) {
  recorder_ = recorder;
  OTT_ASSIGN_OR_RETURN(cross_check_, CrossCheck::Create(ranks(), frame_.config.cross_check(), frame_.timeout,
                                                        CollectivesOf(frame_.ranks), frame_.meshes));
  return absl::OkStatus();
}

void TensorWatch::BeginIteration(int64_t iteration) {
  iteration_ = iteration;
  is_dumped_ = frame_.config.has_dump() && dump_selection_.WantsIteration(iteration) &&
               dump_selection_.WantsRank(frame_.ranks.rank());
  is_wanted_ = is_dumped_ || (cross_check_ != nullptr && cross_check_->Selects(iteration));
  TensorDumper& dumper = TensorDumper::Get();
  dumper.SetDumpCount(iteration);
  // Digests are enough to compare ranks bit for bit; files, references and tolerances take the elements.
  dumper.SetKeepOnDevice(!is_dumped_ && cross_check_ != nullptr && !cross_check_->has_reference() &&
                         !frame_.config.cross_check().has_replica_tolerance());
  if (is_wanted_) {
    dumper.Resume();
  } else {
    dumper.Pause();
  }
}

absl::Status TensorWatch::FinishIter() {
  absl::Status status;
  if (cross_check_ != nullptr && cross_check_->Selects(iteration_)) status.Update(Check());
  if (is_dumped_) {
    frame_.NoteLost(TensorDumper::Get().Dump());
  } else {
    TensorDumper::Get().Discard();
  }
  return status;
}

absl::Status TensorWatch::Check() {
  const RecordedOperation recorded = RankRecorder::InCheck(recorder_);
  absl::Status status;
  const absl::StatusOr<Value> added = TensorDumper::Get().tensors();
  const absl::StatusOr<Value> added_grads = TensorDumper::Get().grads();
  // The other ranks wait for this one, which has no tensors where a copy from a device failed.
  const absl::Status& problem = added.ok() ? added_grads.status() : added.status();
  const Value tensors = problem.ok() ? *added : ValueMap();
  const Value grads = problem.ok() ? *added_grads : ValueMap();
  const Value* const gradients = grads.map().empty() ? nullptr : &grads;
  const std::vector<NamedTensor> listed = ListTensorsAndGrads(
      tensors, gradients, TensorDumper::Get().tensor_order(), TensorDumper::Get().grad_order());
  if (const auto verdict = cross_check_->CheckReplicas(iteration_, listed, problem)) {
    AddVerdict(*verdict);
  }
  if (const auto verdict = cross_check_->CheckDistinct(iteration_, listed, problem)) {
    AddVerdict(*verdict);
  }
  for (const CrossCheckVerdict& verdict : cross_check_->CheckShards(iteration_, listed, problem)) {
    AddVerdict(verdict);
  }
  if (cross_check_->has_reference()) {
    AddVerdict(cross_check_->CheckReference(iteration_, tensors, gradients, problem));
  }
  status.Update(ActOnDivergence());
  return status;
}

void TensorWatch::AddVerdict(const CrossCheckVerdict& verdict) {
  const Outcome outcome = OutcomeOfAllRanks(verdict);
  const bool passed = SeverityOf(outcome) <= SeverityOf(WITHIN_TOLERANCE);
  frame_.NoteLost(verdicts_->Add(verdict));
  if (passed) return;
  diverged_ = true;
  failed_.push_back(verdict);
  if (failed_.size() > kMaxFailuresKept) failed_.pop_front();
  // The rank with the worst verdict on a reference, or on its shards, prints it. A verdict that all ranks
  // share has worst rank 0, so rank 0 prints that.
  const bool is_mine = frame_.ranks.rank() == verdict.worst_rank();
  // Each kind has a count of its own, so that a reference that is missing hides no replicas that differ.
  int& num_printed = num_failures_printed_[{verdict.mode(), outcome}];
  if (is_mine && num_printed++ < kMaxFailuresPrinted) {
    std::string lines = FormatVerdict(verdict);
    if (num_printed == kMaxFailuresPrinted) {
      const std::string& run = frame_.config.run_dir();
      absl::StrAppend(&lines, "    further ones of this kind are only counted",
                      run.empty() ? "" : absl::StrCat(", and in ", run, "/rank_*/cross_check.jsonl"), "\n");
    }
    PrintLines(lines);
  }
}

absl::Status TensorWatch::ActOnDivergence() {
  const CrossCheck::Decision decision = cross_check_->AgreeOnDivergence({failed_.begin(), failed_.end()});
  diverged_ = diverged_ || decision.diverged;
  if (!decision.verdict) return absl::OkStatus();
  if (failed_.empty()) failed_.push_back(*decision.verdict);
  absl::Status status;
  for (const CrossCheckVerdict& verdict : std::exchange(failed_, {})) {
    if (on_divergence_) status.Update(on_divergence_(verdict));
  }
  if (frame_.config.cross_check().abort_on_divergence()) {
    status.Update(absl::AbortedError(FormatVerdict(*decision.verdict)));
  }
  return status;
}

absl::Status TensorWatch::Flush() { return TensorDumper::Get().Flush(); }

absl::Status TensorWatch::Finish() {
  if (cross_check_ == nullptr) return absl::OkStatus();
  absl::Status status = verdicts_->Flush();
  status.Update(PrintSummary());
  return status;
}

absl::Status TensorWatch::PrintSummary() {
  // Also where a rank is gone, the errors of the others are shown.
  VerdictSummary reference = verdicts_->reference();
  absl::Status status;
  if (cross_check_->has_reference()) {
    double& largest = reference.max_abs_error;
    const std::string_view mine(reinterpret_cast<const char*>(&largest), sizeof(largest));
    OTT_ASSIGN_OR_RETURN(const auto errors, ranks().GatherAvailable(0, mine, frame_.NextDeadline()));
    for (const absl::StatusOr<std::string>& bytes : errors) {
      status.Update(bytes.status());
      double error = 0;
      if (bytes.ok() && bytes->size() == sizeof(error)) std::memcpy(&error, bytes->data(), sizeof(error));
      largest = std::max(largest, error);
    }
  }
  if (frame_.ranks.rank() != 0) return status;
  std::string lines = absl::StrCat("cross-check of ", FormatSummary("replicas", verdicts_->replicas()), "\n");
  if (verdicts_->distinct().num_checks > 0) {
    absl::StrAppend(&lines, "cross-check of ", FormatSummary("distinct tensors", verdicts_->distinct()),
                    "\n");
  }
  if (cross_check_->has_reference()) {
    const std::string subject = absl::StrCat("reference ", frame_.config.cross_check().reference_run());
    absl::StrAppend(&lines, "cross-check against ", FormatSummary(subject, reference), "\n");
  }
  PrintLines(lines);
  return status;
}

}  // namespace ott
