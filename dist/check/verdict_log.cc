#include "ott/dist/check/verdict_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/file.h"
#include "ott/core/base/file_limit.h"
#include "ott/core/base/proto_json.h"
#include "ott/dist/check/verdict.h"

namespace ott {
namespace {

constexpr int kMaxTensorErrors = 256;
constexpr auto kTimeBetweenFlushes = std::chrono::seconds(1);

// Reads the counts of a run that goes on. If the file is damaged, its counts are lost and the training goes
// on.
OmittedVerdicts ReadOmitted(const std::string& log_path) {
  constexpr int64_t kMaxBytes = 1 << 20;
  const absl::StatusOr<std::string> json = ReadFile(OmittedVerdictsPath(log_path), kMaxBytes);
  OmittedVerdicts omitted;
  if (!json.ok() || !JsonToProto(*json, &omitted).ok()) return {};
  return omitted;
}

void Count(const CrossCheckVerdict& verdict, VerdictSummary* summary) {
  ++summary->num_checks;
  summary->max_abs_error = std::max(summary->max_abs_error, verdict.max_abs_error());
  const Outcome outcome = OutcomeOfAllRanks(verdict);
  const bool differs = verdict.mode() != DISTINCT && (outcome == WITHIN_TOLERANCE || outcome == DIFFERENT);
  if (differs && summary->first_not_bitwise_equal < 0) {
    summary->first_not_bitwise_equal = verdict.iteration();
  }
  switch (outcome) {
    case BITWISE_EQUAL:
      ++summary->num_bitwise_equal;
      break;
    case WITHIN_TOLERANCE:
      ++summary->num_within_tolerance;
      break;
    case ALL_DISTINCT:
      ++summary->num_distinct;
      break;
    case DIFFERENT:
      ++summary->num_different;
      break;
    default:
      ++summary->num_not_compared;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<VerdictLog>> VerdictLog::Open(const std::string& path, int64_t max_bytes) {
  if (path.empty()) return std::unique_ptr<VerdictLog>(new VerdictLog(path, nullptr, 0, max_bytes));
  // O_NONBLOCK: a FIFO that nobody reads is an error, and not waited for.
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened for appending"));
  struct stat info = {};
  fstat(fd, &info);
  std::unique_ptr<VerdictLog> log(new VerdictLog(path, fdopen(fd, "a"), info.st_size, max_bytes));
  log->omitted_ = ReadOmitted(path);
  return log;
}

absl::Status VerdictLog::Add(const CrossCheckVerdict& verdict) {
  Count(verdict, verdict.mode() == REFERENCE  ? &reference_
                 : verdict.mode() == DISTINCT ? &distinct_
                                              : &replicas_);
  if (file_ == nullptr) return absl::OkStatus();
  CrossCheckVerdict& kept = pending_.emplace_back(verdict);
  if (kept.tensor_errors_size() > kMaxTensorErrors) {
    kept.mutable_tensor_errors()->DeleteSubrange(kMaxTensorErrors,
                                                 kept.tensor_errors_size() - kMaxTensorErrors);
  }
  const bool can_wait = Passed(verdict) && std::chrono::steady_clock::now() < next_flush_;
  return can_wait ? absl::OkStatus() : Flush();
}

absl::Status VerdictLog::Flush() {
  const FileLimitIsAnError no_signal;
  const auto not_written = [this](const CrossCheckVerdict& verdict) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat(path_, ": the verdict of iteration ", verdict.iteration(), " cannot be written"));
  };
  absl::Status status;
  for (const CrossCheckVerdict& verdict : pending_) {
    if (!Write(verdict)) status.Update(not_written(verdict));
  }
  if (!pending_.empty() && std::fflush(file_.get()) != 0) status.Update(not_written(pending_.back()));
  pending_.clear();
  if (std::exchange(omits_more_, false)) {
    status.Update(
        WriteFileAtomically(OmittedVerdictsPath(path_), ProtoToJson(omitted_, JsonLayout::kIndented)));
  }
  next_flush_ = std::chrono::steady_clock::now() + kTimeBetweenFlushes;
  return status;
}

bool VerdictLog::Write(const CrossCheckVerdict& verdict) {
  const std::string line = VerdictToJsonLine(verdict);
  const int64_t limit = Passed(verdict) ? max_bytes_ / 2 : max_bytes_;
  if (num_bytes_ + static_cast<int64_t>(line.size()) <= limit) {
    num_bytes_ += static_cast<int64_t>(line.size());
    return std::fputs(line.c_str(), file_.get()) >= 0;
  }
  if (omitted_.num_checks() == 0) omitted_.set_first_iteration(verdict.iteration());
  omitted_.set_num_checks(omitted_.num_checks() + 1);
  if (verdict.outcome() == DIFFERENT) omitted_.set_num_different(omitted_.num_different() + 1);
  if (verdict.outcome() == NOT_COMPARED) omitted_.set_num_not_compared(omitted_.num_not_compared() + 1);
  omits_more_ = true;
  return true;
}

std::string OmittedVerdictsPath(const std::string& log_path) {
  return absl::StrCat(log_path.substr(0, log_path.rfind('.')), "_omitted.json");
}

VerdictLog::~VerdictLog() {
  Flush().IgnoreError();
  // Closing writes again what could not be written.
  const FileLimitIsAnError no_signal;
  file_.reset();
}

std::string FormatSummary(const std::string& subject, const VerdictSummary& summary) {
  std::string text =
      absl::StrCat(subject, ": ", summary.num_checks, summary.num_checks == 1 ? " check" : " checks");
  if (summary.num_checks == 0) return text;
  if (summary.num_bitwise_equal == summary.num_checks) return text + ", all equal bit for bit";
  if (summary.num_distinct == summary.num_checks) return text + ", all ranks have their own";
  const auto count = [&](int64_t number, const char* what) {
    if (number > 0) absl::StrAppend(&text, ", ", number, " ", what);
  };
  count(summary.num_different, summary.is_distinct ? "THE SAME on several ranks" : "DIFFER");
  count(summary.num_not_compared, "NOT COMPARED");
  count(summary.num_within_tolerance, "within tolerance");
  count(summary.num_bitwise_equal, "equal bit for bit");
  count(summary.num_distinct, "of their own on all ranks");
  if (summary.first_not_bitwise_equal >= 0) {
    absl::StrAppend(&text, "; not bitwise equal from iteration ", summary.first_not_bitwise_equal, " on");
  }
  if (summary.max_abs_error > 0) absl::StrAppendFormat(&text, "; max abs error %.3g", summary.max_abs_error);
  return text;
}

}  // namespace ott
