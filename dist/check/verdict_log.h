// The verdicts of a run: written as they come, summed up at the end.

#ifndef OTT_DIST_CHECK_VERDICT_LOG_H_
#define OTT_DIST_CHECK_VERDICT_LOG_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/dist/check/cross_check.pb.h"

namespace ott {

// Sums up the checks of one mode, by the worst rank's outcome.
struct VerdictSummary {
  int64_t num_checks = 0;
  int64_t num_bitwise_equal = 0;
  int64_t num_within_tolerance = 0;
  int64_t num_different = 0;
  int64_t num_not_compared = 0;
  // The passes of checks of mode DISTINCT, and whether the summary is of that mode.
  int64_t num_distinct = 0;
  bool is_distinct = false;
  // The iteration of the first comparison that was not bitwise equal; -1 while there is none.
  int64_t first_not_bitwise_equal = -1;
  // The largest error of this rank.
  double max_abs_error = 0;

  static VerdictSummary OfDistinct() {
    VerdictSummary summary;
    summary.is_distinct = true;
    return summary;
  }

  bool passed() const { return num_different == 0 && num_not_compared == 0; }
};

// Not thread-safe.
//
//   OTT_ASSIGN_OR_RETURN(auto log, VerdictLog::Open(rank_dir + "/cross_check.jsonl"));
//   OTT_RETURN_IF_ERROR(log->Add(verdict));
//   puts(FormatSummary("replicas", log->replicas()).c_str());
class VerdictLog {
 public:
  // The file grows to max_bytes at most, and with passes to half of that, so that there is room for worse
  // verdicts that come later. Verdicts for which there is no room are counted in omitted() and in a file
  // beside it (OmittedVerdictsPath). With an empty path, no file is kept.
  static absl::StatusOr<std::unique_ptr<VerdictLog>> Open(const std::string& path,
                                                          int64_t max_bytes = int64_t{64} << 20);

  // Writes what was not written yet.
  ~VerdictLog();

  // Appends a line. Passes are collected and written at most a second later, since writing costs more than
  // checking; any other verdict has been handed to the operating system when this returns. So a rank that is
  // killed loses no more than a second of passes.
  absl::Status Add(const CrossCheckVerdict& verdict);
  absl::Status Flush();

  // Counts the verdicts of shards, too.
  const VerdictSummary& replicas() const { return replicas_; }
  const VerdictSummary& reference() const { return reference_; }
  const VerdictSummary& distinct() const { return distinct_; }
  const OmittedVerdicts& omitted() const { return omitted_; }

 private:
  VerdictLog(const std::string& path, std::FILE* file, int64_t num_bytes, int64_t max_bytes)
      : path_(path), file_(file, &std::fclose), num_bytes_(num_bytes), max_bytes_(max_bytes) {}

  // Returns true if it is in the file, or was counted because there is no room.
  bool Write(const CrossCheckVerdict& verdict);

  const std::string path_;
  // Null if there is no file.
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  int64_t num_bytes_;
  const int64_t max_bytes_;
  OmittedVerdicts omitted_;
  bool omits_more_ = false;  // than what lies beside the file
  std::vector<CrossCheckVerdict> pending_;
  std::chrono::steady_clock::time_point next_flush_;
  VerdictSummary replicas_;
  VerdictSummary reference_;
  VerdictSummary distinct_ = VerdictSummary::OfDistinct();
};

// Returns the path beside the file of a log.
std::string OmittedVerdictsPath(const std::string& log_path);

// Returns one line without its newline: "replicas: 20 checks, all equal bit for bit".
std::string FormatSummary(const std::string& subject, const VerdictSummary& summary);

}  // namespace ott

#endif  // OTT_DIST_CHECK_VERDICT_LOG_H_
