#include "ott/dist/check/verdict_log.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/verdict.h"

namespace ott {
namespace {

constexpr auto kTimeBetweenFlushes = std::chrono::seconds(1);

void Count(const CrossCheckVerdict& verdict, VerdictSummary* summary) {
  ++summary->num_checks;
  summary->max_abs_error = std::max(summary->max_abs_error, verdict.max_abs_error());
  const Outcome outcome = OutcomeOfAllRanks(verdict);
  const bool differs = outcome == WITHIN_TOLERANCE || outcome == DIFFERENT;
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
    case DIFFERENT:
      ++summary->num_different;
      break;
    default:
      ++summary->num_not_compared;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<VerdictLog>> VerdictLog::Open(const std::string& path) {
  std::FILE* file = nullptr;
  if (!path.empty()) {
    file = std::fopen(path.c_str(), "ae");
    if (file == nullptr)
      return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened for appending"));
  }
  return std::unique_ptr<VerdictLog>(new VerdictLog(path, file));
}

absl::Status VerdictLog::Add(const CrossCheckVerdict& verdict) {
  Count(verdict, verdict.mode() == REFERENCE ? &reference_ : &replicas_);
  if (file_ == nullptr) return absl::OkStatus();
  pending_.push_back(verdict);
  const bool can_wait = Passed(verdict) && std::chrono::steady_clock::now() < next_flush_;
  return can_wait ? absl::OkStatus() : Flush();
}

absl::Status VerdictLog::Flush() {
  absl::Status status;
  for (const CrossCheckVerdict& verdict : pending_) {
    if (std::fputs(VerdictToJsonLine(verdict).c_str(), file_.get()) >= 0) continue;
    status.Update(absl::ErrnoToStatus(errno, absl::StrCat(path_, ": the verdict of iteration ",
                                                          verdict.iteration(), " cannot be written")));
  }
  if (!pending_.empty() && std::fflush(file_.get()) != 0) {
    status.Update(
        absl::ErrnoToStatus(errno, absl::StrCat(path_, ": the verdict of iteration ",
                                                pending_.back().iteration(), " cannot be written")));
  }
  pending_.clear();
  next_flush_ = std::chrono::steady_clock::now() + kTimeBetweenFlushes;
  return status;
}

VerdictLog::~VerdictLog() { Flush().IgnoreError(); }

std::string FormatSummary(const std::string& subject, const VerdictSummary& summary) {
  std::string text =
      absl::StrCat(subject, ": ", summary.num_checks, summary.num_checks == 1 ? " check" : " checks");
  if (summary.num_checks == 0) return text;
  if (summary.num_bitwise_equal == summary.num_checks) return text + ", all equal bit for bit";
  const auto count = [&](int64_t number, const char* what) {
    if (number > 0) absl::StrAppend(&text, ", ", number, " ", what);
  };
  count(summary.num_different, "DIFFER");
  count(summary.num_not_compared, "NOT COMPARED");
  count(summary.num_within_tolerance, "within tolerance");
  count(summary.num_bitwise_equal, "equal bit for bit");
  if (summary.first_not_bitwise_equal >= 0) {
    absl::StrAppend(&text, "; not bitwise equal from iteration ", summary.first_not_bitwise_equal, " on");
  }
  if (summary.max_abs_error > 0) absl::StrAppendFormat(&text, "; max abs error %.3g", summary.max_abs_error);
  return text;
}

}  // namespace ott
