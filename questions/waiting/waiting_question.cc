#include "ott/questions/waiting/waiting_question.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/waiting/arrivals_picture.pb.h"
#include "ott/questions/waiting/gathered_stats.h"
#include "ott/questions/waiting/waiting_answer.h"

namespace ott::waiting {
namespace {

constexpr int kMaxCollectives = 50;

void AddArrivals(const ClusterStats& stats, Document* document) {
  if (stats.arrivals().empty()) return;
  ArrivalsPicture picture;
  *picture.mutable_collectives() = stats.arrivals();
  KeepFirst(kMaxCollectives, picture.mutable_collectives());
  document->pictures["arrivals"] = DrawMessage(picture);
  if (stats.arrivals_size() > kMaxCollectives) {
    document->thinned.push_back(absl::StrCat("arrivals at ", kMaxCollectives, " of ", stats.arrivals_size(),
                                             " collectives are shown"));
  }
}

// Seconds since the file was written; nullopt if there is none.
std::optional<double> AgeOf(const std::string& path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  if (error) return std::nullopt;
  return std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - written).count();
}

Metric HoldUpMetric(const ClusterStats& stats) {
  Metric metric = {
      "ott_waiting_for_rank_seconds", "Of an iteration, that all wait for this rank at this collective.", {}};
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    if (!arrivals.has_hold_up()) continue;
    const HoldUp& hold_up = arrivals.hold_up();
    metric.samples.push_back({hold_up.seconds_per_iteration(),
                              {{"rank", absl::StrCat(hold_up.rank())},
                               {"host", hold_up.host()},
                               {"collective", arrivals.name()},
                               {"group", arrivals.group()}}});
  }
  return metric;
}

absl::StatusOr<Findings> Ask(const AskedRun& run) {
  const bool has_collectives = run.info && run.info->config().stopwatch().collective_measurements_size() > 0;
  const std::optional<double> age = AgeOf(ClusterStatsPath(run.run_dir));
  Findings findings;
  absl::StatusOr<ClusterStats> stats = ReadGatheredStats(run.run_dir, &findings.problems);
  std::optional<ClusterStats> gathered;
  if (stats.ok()) {
    findings.metrics.push_back(HoldUpMetric(*stats));
    findings.draw = [stats = *stats](const std::vector<int>&, Document* document) {
      AddArrivals(stats, document);
    };
    gathered = *std::move(stats);
  } else if (!absl::IsNotFound(stats.status())) {
    findings.problems.push_back(std::string(stats.status().message()));
  }
  findings.answers = {AnswerWaiting(gathered, has_collectives, age.has_value())};
  AddNextOf(run.run_dir, &findings.answers[0]);
  if (age) {
    findings.metrics.push_back({"ott_gather_age_seconds",
                                "Since rank 0 last gathered the statistics of all ranks.",
                                {{std::max(0.0, *age), {}}}});
  }
  return findings;
}

}  // namespace

Question WaitingQuestion() {
  return {kQuestion.title, nullptr, Ask, /*is_about_tensors=*/false, /*depends_on_time=*/true};
}

}  // namespace ott::waiting
