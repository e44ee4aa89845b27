#include "tools/report/report_traces.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/file.h"
#include "ott/core/base/text_table.h"
#include "ott/core/op_cost/device_peaks.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/kernels/kernels_picture.pb.h"
#include "ott/questions/saved/sampled_timeline.h"
#include "ott/questions/waiting/arrivals_picture.pb.h"
#include "ott/questions/waiting/traced_job.h"
#include "tools/report/trace_piece.h"
#include "tools/report/traces_timeline.h"

namespace ott::report {
namespace {

constexpr size_t kTopOps = 15;
constexpr size_t kTopCollectives = 10;
constexpr int kMaxRanks = 256;
constexpr int kMaxOps = 60;

// An op on all ranks.
struct OpOfRanks {
  std::map<int, int64_t> nanoseconds;  // by rank
  OpSum sum;

  const char* limited_by() const { return 2 * sum.compute_time > sum.peak_time ? "compute" : "memory"; }
};

using OpSums = std::map<std::string, OpOfRanks>;

void AddOps(int rank, const std::map<std::string, OpSum>& ops, OpSums* sums) {
  for (const auto& [name, op] : ops) {
    OpOfRanks& of_ranks = (*sums)[name];
    of_ranks.nanoseconds[rank] += op.nanoseconds;
    of_ranks.sum.flops += op.flops;
    of_ranks.sum.bytes += op.bytes;
    of_ranks.sum.flops_time += op.flops_time;
    of_ranks.sum.peak += op.peak;
    of_ranks.sum.peak_time += op.peak_time;
    of_ranks.sum.compute_time += op.compute_time;
  }
}

std::string Time(double nanoseconds) { return FormatSeconds(nanoseconds * 1e-9); }

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

Json DrawSplits(const waiting::TracedJob& job) {
  DeviceTimePicture picture;
  for (const auto& [rank, split] : waiting::SplitsByRank(job)) {
    if (picture.ranks_size() == kMaxRanks) break;
    DeviceTimePicture::Rank& drawn = *picture.add_ranks();
    drawn.set_rank(rank);
    drawn.set_seconds(Seconds(split.total));
    drawn.set_compute(Seconds(split.compute));
    drawn.set_exposed_communication(Seconds(split.exposed_communication));
    drawn.set_exposed_copies(Seconds(split.exposed_copies));
    drawn.set_idle(Seconds(split.idle));
  }
  return DrawMessage(picture);
}

// As those of a run, as far as traces tell.
ArrivalStats ArrivalsOf(const waiting::TracedJob& job, const waiting::CollectiveSum& sum) {
  ArrivalStats arrivals;
  arrivals.set_name(sum.kind.name);
  arrivals.set_group(sum.kind.group_name());
  arrivals.set_num_ranks(sum.num_ranks);
  arrivals.set_num_intervals(sum.num_complete);
  arrivals.set_num_incomplete(sum.count - sum.num_complete);
  arrivals.set_mean_wait(Seconds(sum.wait) / static_cast<double>(sum.num_complete));
  arrivals.set_max_wait(Seconds(sum.longest_wait));
  if (sum.last_rank < 0) return arrivals;
  LastArrival& last = *arrivals.add_last();
  last.set_rank(sum.last_rank);
  last.set_num_intervals(sum.num_last);
  for (const waiting::TracedHoldUp& found : job.hold_ups.found) {
    if (found.rank != sum.last_rank || found.collective != sum.kind.name ||
        found.group != sum.kind.group_name()) {
      continue;
    }
    HoldUp& hold_up = *arrivals.mutable_hold_up();
    hold_up.set_rank(found.rank);
    hold_up.set_seconds_per_iteration(found.seconds_per_step);
    hold_up.set_share_of_iteration(found.share_of_step);
    break;
  }
  return arrivals;
}

ArrivalsPicture DrawnCollectives(const waiting::TracedJob& job) {
  ArrivalsPicture picture;
  for (const waiting::CollectiveSum& sum : job.collectives) {
    if (static_cast<size_t>(picture.collectives_size()) == kTopCollectives) break;
    if (sum.num_complete > 0) *picture.add_collectives() = ArrivalsOf(job, sum);
  }
  return picture;
}

// An op's share of the time of all.
struct RankedOp {
  const std::string* name;
  const OpOfRanks* op;
  double time;
  double share;
};

// Ops with their FLOPs and bytes, and the roofs of the first device that is known.
Json DrawKernels(const std::vector<RankedOp>& order, const std::optional<DevicePeaks>& peaks) {
  KernelsPicture picture;
  for (const RankedOp& op : order) {
    if (picture.ops_size() == kMaxOps) break;
    const OpSum& sum = op.op->sum;
    KernelsPicture::Op& drawn = *picture.add_ops();
    drawn.set_name(*op.name);
    drawn.set_share(op.share);
    drawn.set_seconds(op.time * 1e-9);
    if (sum.flops_time > 0 && sum.bytes > 0) {
      drawn.set_flops_per_second(sum.flops / Seconds(sum.flops_time));
      drawn.set_flops_per_byte(sum.flops / sum.bytes);
    }
    if (sum.peak_time > 0) {
      drawn.set_of_peak(sum.peak / static_cast<double>(sum.peak_time) / 100);
      drawn.set_limited_by(op.op->limited_by());
    }
  }
  if (peaks) {
    KernelsPicture::Roofs& roofs = *picture.mutable_roofs();
    roofs.set_device(std::string(peaks->name));
    roofs.set_bytes_per_second(peaks->memory);
    roofs.mutable_flops_per_second()->set_float16(peaks->fp16_tensor);
    roofs.mutable_flops_per_second()->set_float32(peaks->fp32);
  }
  return DrawMessage(picture);
}

// The longest first.
std::vector<RankedOp> InOrder(const OpSums& sums) {
  std::vector<RankedOp> order;
  double total = 0;
  for (const auto& [name, op] : sums) {
    double time = 0;
    for (const auto& [rank, nanoseconds] : op.nanoseconds) time += static_cast<double>(nanoseconds);
    total += time;
    order.push_back({&name, &op, time, 0});
  }
  for (RankedOp& op : order) op.share = total > 0 ? op.time / total : 0;
  std::stable_sort(order.begin(), order.end(),
                   [](const RankedOp& a, const RankedOp& b) { return a.time > b.time; });
  return order;
}

std::string FormatOps(const std::vector<RankedOp>& order, size_t num_ranks) {
  TextTable table({"op", "share", "time a rank", "most on", "TFLOP/s", "of peak", "limited by"});
  for (size_t i = 0; i < std::min(kTopOps, order.size()); ++i) {
    const OpSum& sum = order[i].op->sum;
    const std::map<int, int64_t>& nanoseconds = order[i].op->nanoseconds;
    const auto most = std::max_element(nanoseconds.begin(), nanoseconds.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const bool has_peak = sum.peak_time > 0;
    table.AddRow({*order[i].name, absl::StrFormat("%.1f %%", 100 * order[i].share),
                  Time(order[i].time / static_cast<double>(num_ranks)),
                  absl::StrCat("rank ", most->first, ": ", Time(static_cast<double>(most->second))),
                  sum.flops_time > 0
                      ? absl::StrFormat("%.4g", sum.flops / static_cast<double>(sum.flops_time) * 1e-3)
                      : "na",
                  has_peak ? absl::StrFormat("%.1f %%", sum.peak / static_cast<double>(sum.peak_time)) : "na",
                  has_peak ? order[i].op->limited_by() : "na"});
  }
  return table.ToString();
}

// Ranks that have no trace here: whoever is waited for may be among them.
void AddWhatIsNotTraced(const waiting::TracedJob& job, std::vector<std::string>* problems) {
  const waiting::CollectiveSum* least = nullptr;
  for (const waiting::CollectiveSum& sum : job.collectives) {
    const int64_t missing = sum.kind.group_size - sum.num_ranks;
    if (missing > 0 && (least == nullptr || missing > least->kind.group_size - least->num_ranks))
      least = &sum;
  }
  if (least == nullptr) return;
  problems->push_back(absl::StrCat("traces of ", least->num_ranks, " of the ", least->kind.group_size,
                                   " ranks that come to ", least->kind.name, " of group ",
                                   least->kind.group_name()));
}

// Files that are named as traces and hold nothing, as of a rank that was killed while it wrote.
void AddWhatIsNoTrace(const std::string& directory, std::vector<std::string>* problems) {
  for (const auto& [path, what] : ListNamedTraces(directory)) {
    if (what == NamedTrace::kNoFile) problems->push_back(absl::StrCat(path, ": no regular file"));
    if (what == NamedTrace::kEmpty)
      problems->push_back(absl::StrCat(path, ": empty; was the rank killed while it wrote?"));
  }
}

}  // namespace

std::vector<std::string> ListTraces(const std::string& directory) {
  std::vector<std::string> paths;
  if (!IsDirectory(directory) || IsRunDirectory(directory)) return paths;
  for (const auto& [path, what] : ListNamedTraces(directory)) {
    if (what == NamedTrace::kTrace) paths.push_back(path);
  }
  return paths;
}

absl::StatusOr<Document> ReportTraces(const std::string& directory, const std::vector<std::string>& paths,
                                      bool with_timeline) {
  std::vector<absl::StatusOr<TraceFindings>> read =
      ReadTraces(paths, with_timeline ? saved::kMaxTimelineRanks : 0);
  std::vector<TraceFindings> traces;
  std::vector<waiting::TraceSummary> summaries;
  std::vector<std::string> problems;
  std::set<int> told;
  for (const absl::StatusOr<TraceFindings>& trace : read) {
    if (trace.ok() && trace->summary.rank >= 0) told.insert(trace->summary.rank);
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!read[i].ok()) {
      problems.push_back(std::string(read[i].status().message()));
      continue;
    }
    TraceFindings& trace = *read[i];
    int& rank = trace.summary.rank;
    // By the order of the files, but none that another trace tells.
    for (int free = static_cast<int>(i); rank < 0; ++free) {
      if (told.insert(free).second) rank = free;
    }
    const bool is_of_another_run =
        std::any_of(summaries.begin(), summaries.end(), [&](const waiting::TraceSummary& summary) {
          return summary.rank == rank && !waiting::AreWindowsOfOneRun(summary, trace.summary);
        });
    if (is_of_another_run) {
      // Ranks of two runs would seem to wait for each other.
      problems.push_back(
          absl::StrCat(paths[i], ": left out, as rank ", rank, " has another trace here; keep one run's"));
      continue;
    }
    for (const std::string& note : trace.notes) problems.push_back(absl::StrCat(paths[i], ": ", note));
    summaries.push_back(trace.summary);
    traces.push_back(std::move(trace));
  }
  if (traces.empty()) return read[0].status();
  const waiting::TracedJob job = waiting::DescribeJob(summaries);
  AddWhatIsNotTraced(job, &problems);
  AddWhatIsNoTrace(directory, &problems);
  OpSums ops;
  std::set<int> ranks;
  for (const TraceFindings& trace : traces) {
    AddOps(trace.summary.rank, trace.ops, &ops);
    ranks.insert(trace.summary.rank);
  }

  const std::vector<RankedOp> order = InOrder(ops);
  Document document;
  document.title = directory;
  document.subject =
      absl::StrCat(traces.size(), traces.size() == 1 ? " trace" : " traces", " of torch.profiler");
  document.answers = {waiting::AnswerHoldUps(job)};
  document.problems = std::move(problems);
  document.details = {{"Where the time goes", waiting::FormatSplits(job)},
                      {"What the ranks do together", waiting::FormatCollectives(job, kTopCollectives)}};
  if (order.empty() && !traces[0].host_times.empty()) {
    document.details.push_back(
        {absl::StrCat("Host time by range on rank ", traces[0].summary.rank, ", ns"), traces[0].host_times});
  } else if (!order.empty()) {
    document.details.push_back(
        {"Ops that take most time, and what limits them", FormatOps(order, ranks.size())});
  }
  document.pictures["device_time"] = DrawSplits(job);
  document.pictures["arrivals"] = DrawMessage(DrawnCollectives(job));
  if (!order.empty()) {
    // Of the device that most ranks have, which is the first one's.
    document.pictures["kernels"] = DrawKernels(order, PeaksByName(traces[0].device));
  }
  if (with_timeline) saved::AddTimeline(TimelineOfTraces(traces, job.clocks), &document);
  return document;
}

void AddTorchTraces(const std::string& run_dir, bool with_pictures, Document* document) {
  std::vector<std::string> paths;
  for (const auto& [rank, path] : TorchTracesOfOneWindow(run_dir)) paths.push_back(path);
  if (paths.empty()) return;
  absl::StatusOr<Document> traces = ReportTraces(run_dir, paths, /*with_timeline=*/false);
  if (!traces.ok()) {
    document->problems.push_back(std::string(traces.status().message()));
    return;
  }
  for (Details& details : traces->details) {
    document->details.push_back(
        {absl::StrCat(details.title, " (traces of torch.profiler)"), std::move(details.text)});
  }
  document->problems.insert(document->problems.end(), traces->problems.begin(), traces->problems.end());
  for (const char* picture : {"device_time", "kernels"}) {
    if (with_pictures && traces->pictures.contains(picture))
      document->pictures[picture] = std::move(traces->pictures[picture]);
  }
}

}  // namespace ott::report
