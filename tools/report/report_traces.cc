#include "tools/report/report_traces.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/file.h"
#include "ott/core/base/text_table.h"
#include "ott/core/kineto/read_trace.h"
#include "ott/core/op_cost/device_peaks.h"
#include "ott/core/tensor/parallel_for.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/kernels/host_time.h"
#include "ott/questions/kernels/kernel_join.h"
#include "ott/questions/kernels/kernels_picture.pb.h"
#include "ott/questions/kernels/profile_reader.h"
#include "ott/questions/kernels/profile_rows.h"
#include "ott/questions/saved/sampled_timeline.h"
#include "ott/questions/waiting/arrivals_picture.pb.h"
#include "ott/questions/waiting/traced_job.h"
#include "ott/questions/waiting/waiting_answer.h"
#include "tools/report/traces_timeline.h"

namespace ott::report {
namespace {

using kernels::KernelRow;

constexpr size_t kTopOps = 15;
constexpr size_t kTopCollectives = 10;
constexpr int kMaxRanks = 256;
constexpr int kMaxOps = 60;

// An op on all ranks.
struct OpSum {
  std::map<int, int64_t> nanoseconds;  // by rank
  double flops = 0;
  double bytes = 0;  // of the same calls
  int64_t flops_time = 0;
  double peak = 0;  // percent times nanoseconds
  int64_t peak_time = 0;
  int64_t compute_time = 0;  // that compute limits, of peak_time

  const char* limited_by() const { return 2 * compute_time > peak_time ? "compute" : "memory"; }
};

// By op and direction.
using OpSums = std::map<std::string, OpSum>;

void AddRows(const kernels::ProfileRows& rows, const waiting::RankProfile& trace, OpSums* sums,
             std::vector<DeviceActivity>* spans) {
  const int rank = trace.rank;
  KernelRow row;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows.Get(i, &row);
    spans->push_back({trace.profile->first_time + row.start, row.sil,
                      std::string(row.op.empty() ? row.name : row.op), row.kernel.substr(0, 4) == "nccl"});
    if (row.join == "no_launch") continue;
    OpSum& sum = (*sums)[absl::StrCat(row.op.empty() ? "(no op)" : std::string(row.op),
                                      row.dir == "bprop" ? " (backward)" : "")];
    sum.nanoseconds[rank] += row.sil;
    const int64_t call = row.call == kernels::kNoInteger ? row.sil : row.call;
    if (row.flops > 0) {
      sum.flops += row.flops;
      if (row.bytes > 0) sum.bytes += row.bytes;
      sum.flops_time += call;
    }
    if (!std::isnan(row.percent_peak)) {
      sum.peak += row.percent_peak * static_cast<double>(call);
      sum.peak_time += call;
      if (row.roof == "compute") sum.compute_time += call;
    }
  }
}

std::string Time(double nanoseconds) { return FormatSeconds(nanoseconds * 1e-9); }

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

Json DrawSplits(const waiting::TracedJob& job) {
  DeviceTimePicture picture;
  for (const waiting::TracedJob::Rank& rank : job.ranks) {
    if (picture.ranks_size() == kMaxRanks) break;
    DeviceTimePicture::Rank& drawn = *picture.add_ranks();
    drawn.set_rank(rank.rank);
    drawn.set_seconds(Seconds(rank.split.total));
    drawn.set_compute(Seconds(rank.split.compute));
    drawn.set_exposed_communication(Seconds(rank.split.exposed_communication));
    drawn.set_exposed_copies(Seconds(rank.split.exposed_copies));
    drawn.set_idle(Seconds(rank.split.idle));
  }
  return DrawMessage(picture);
}

// As those of a run, as far as traces tell.
ArrivalStats ArrivalsOf(const waiting::TracedJob& job, const waiting::CollectiveSum& sum) {
  ArrivalStats arrivals;
  arrivals.set_name(sum.kind->name);
  arrivals.set_group(sum.kind->group_name());
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
    if (found.rank != sum.last_rank || found.collective != sum.kind->name ||
        found.group != sum.kind->group_name()) {
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
  const OpSum* sum;
  double time;
  double share;
};

// Ops with their FLOPs and bytes, and the roofs of the first device that is known.
Json DrawKernels(const std::vector<RankedOp>& order, const std::optional<DevicePeaks>& peaks) {
  KernelsPicture picture;
  for (const RankedOp& op : order) {
    if (picture.ops_size() == kMaxOps) break;
    const OpSum& sum = *op.sum;
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
      drawn.set_limited_by(sum.limited_by());
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
  for (const auto& [name, sum] : sums) {
    double time = 0;
    for (const auto& [rank, nanoseconds] : sum.nanoseconds) time += static_cast<double>(nanoseconds);
    total += time;
    order.push_back({&name, &sum, time, 0});
  }
  for (RankedOp& op : order) op.share = total > 0 ? op.time / total : 0;
  std::stable_sort(order.begin(), order.end(),
                   [](const RankedOp& a, const RankedOp& b) { return a.time > b.time; });
  return order;
}

std::string FormatOps(const std::vector<RankedOp>& order, size_t num_ranks) {
  TextTable table({"op", "share", "time a rank", "most on", "TFLOP/s", "of peak", "limited by"});
  for (size_t i = 0; i < std::min(kTopOps, order.size()); ++i) {
    const OpSum& sum = *order[i].sum;
    const auto most = std::max_element(sum.nanoseconds.begin(), sum.nanoseconds.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const bool has_peak = sum.peak_time > 0;
    table.AddRow({*order[i].name, absl::StrFormat("%.1f %%", 100 * order[i].share),
                  Time(order[i].time / static_cast<double>(num_ranks)),
                  absl::StrCat("rank ", most->first, ": ", Time(static_cast<double>(most->second))),
                  sum.flops_time > 0
                      ? absl::StrFormat("%.4g", sum.flops / static_cast<double>(sum.flops_time) * 1e-3)
                      : "na",
                  has_peak ? absl::StrFormat("%.1f %%", sum.peak / static_cast<double>(sum.peak_time)) : "na",
                  has_peak ? sum.limited_by() : "na"});
  }
  return table.ToString();
}

// Empty where devices did something.
std::string FormatHostTimes(const kernels::Profile& profile) {
  if (!profile.kernels.empty() || !profile.transfers.empty()) return "";
  std::string text;
  const absl::Status status = kernels::WriteHostTimes(profile, kernels::TableLayout(), kTopOps,
                                                      [&text](std::string_view part) { text += part; });
  return status.ok() ? text : "";
}

// Returns those of the device that most ranks have, which is the first one's.
std::optional<DevicePeaks> PeaksOf(const kernels::Profile& profile) {
  if (profile.devices.empty()) return std::nullopt;
  return PeaksByName(profile.devices.begin()->second.name);
}

bool IsNamedAsATrace(const std::string& path) {
  return absl::EndsWith(path, ".json") || absl::EndsWith(path, ".json.gz");
}

// Ranks that have no trace here: whoever is waited for may be among them.
void AddWhatIsNotTraced(const waiting::TracedJob& job, std::vector<std::string>* problems) {
  const waiting::CollectiveSum* least = nullptr;
  for (const waiting::CollectiveSum& sum : job.collectives) {
    const int64_t missing = sum.kind->group_size - sum.num_ranks;
    if (missing > 0 && (least == nullptr || missing > least->kind->group_size - least->num_ranks))
      least = &sum;
  }
  if (least == nullptr) return;
  problems->push_back(absl::StrCat("traces of ", least->num_ranks, " of the ", least->kind->group_size,
                                   " ranks that come to ", least->kind->name, " of group ",
                                   least->kind->group_name()));
}

// Files that are named as traces and hold nothing, as of a rank that was killed while it wrote.
void AddWhatIsNoTrace(const std::string& directory, const std::vector<std::string>& paths,
                      std::vector<std::string>* problems) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!IsNamedAsATrace(path) || std::binary_search(paths.begin(), paths.end(), path)) continue;
    std::error_code of_entry;
    if (!IsRegularFile(path)) {
      problems->push_back(absl::StrCat(path, ": no regular file"));
    } else if (entry->file_size(of_entry) == 0) {
      problems->push_back(absl::StrCat(path, ": empty; was the rank killed while it wrote?"));
    }
  }
}

Answer AnswerHoldUps(const waiting::TracedJob& job) {
  Answer answer = MakeAnswer(waiting::kQuestion);
  if (!job.hold_ups.found.empty()) {
    answer.set_finding(Answer::BAD);
  } else if (job.hold_ups.CanTell()) {
    answer.set_finding(Answer::GOOD);
  } else if (job.ranks.size() > 1) {
    answer.set_finding(Answer::CANNOT_TELL);
  }
  AddSentences(waiting::HoldUpLines(job), &answer);
  answer.set_how_sure(absl::StrCat(job.hold_ups.most_steps, job.has_steps ? " steps" : " parts of the trace",
                                   ", and up to ", job.hold_ups.most_intervals,
                                   " moments in them to which all traced ranks came"));
  answer.add_pictures("arrivals");
  return answer;
}

}  // namespace

std::vector<std::string> ListTraces(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error) || IsRunDirectory(directory)) return paths;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (IsNamedAsATrace(path) && IsRegularFile(path) && kineto::IsTorchTrace(path)) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<Document> ReportTraces(const std::string& directory, const std::vector<std::string>& paths) {
  std::vector<absl::StatusOr<kernels::Profile>> read(paths.size());
  kernels::ReadProfileOptions options;
  options.transfers = true;
  ParallelFor(static_cast<int64_t>(paths.size()), NumThreads(0),
              [&](int64_t i) { read[i] = kernels::ReadProfile(paths[i], options); });
  std::vector<waiting::RankProfile> traces;
  std::vector<kernels::Profile*> profiles;
  std::vector<std::string> problems;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!read[i].ok()) {
      problems.push_back(std::string(read[i].status().message()));
      continue;
    }
    const int rank = read[i]->rank >= 0 ? read[i]->rank : static_cast<int>(i);
    const bool is_known =
        std::any_of(traces.begin(), traces.end(),
                    [rank](const waiting::RankProfile& trace) { return trace.rank == rank; });
    if (is_known) {
      // Ranks of two runs would seem to wait for each other.
      problems.push_back(
          absl::StrCat(paths[i], ": left out, as rank ", rank, " has another trace here; keep one run's"));
      continue;
    }
    profiles.push_back(&*read[i]);
    traces.push_back({rank, &*read[i]});
    for (const std::string& note : read[i]->notes) problems.push_back(absl::StrCat(paths[i], ": ", note));
  }
  if (traces.empty()) return read[0].status();
  const waiting::TracedJob job = waiting::DescribeJob(traces);
  AddWhatIsNotTraced(job, &problems);
  AddWhatIsNoTrace(directory, paths, &problems);
  OpSums ops;
  std::vector<std::vector<DeviceActivity>> spans(traces.size());
  // Joining takes the ranges.
  const std::string host_times = FormatHostTimes(*profiles[0]);
  std::vector<Steps> steps;
  for (const waiting::RankProfile& trace : traces) steps.push_back(waiting::StepsOf(*trace.profile));
  for (size_t i = 0; i < traces.size(); ++i) {
    const kernels::KernelJoin join = kernels::JoinKernels(profiles[i]);
    AddRows(kernels::ProfileRows(*profiles[i], join, std::nullopt), traces[i], &ops, &spans[i]);
  }

  const std::vector<RankedOp> order = InOrder(ops);
  Document document;
  document.title = directory;
  document.subject =
      absl::StrCat(traces.size(), traces.size() == 1 ? " trace" : " traces", " of torch.profiler");
  document.answers = {AnswerHoldUps(job)};
  document.problems = std::move(problems);
  document.details = {{"Where the time goes", waiting::FormatSplits(job)},
                      {"What the ranks do together", waiting::FormatCollectives(job, kTopCollectives)}};
  if (order.empty()) {
    document.details.push_back(
        {absl::StrCat("Host time by range on rank ", traces[0].rank, ", ns"), host_times});
  } else {
    document.details.push_back(
        {"Ops that take most time, and what limits them", FormatOps(order, traces.size())});
  }
  document.pictures["device_time"] = DrawSplits(job);
  document.pictures["arrivals"] = DrawMessage(DrawnCollectives(job));
  if (!order.empty()) document.pictures["kernels"] = DrawKernels(order, PeaksOf(*profiles.front()));
  saved::AddTimeline(TimelineOfTraces(traces, std::move(steps), job.clocks, spans), &document);
  return document;
}

void AddTorchTraces(const std::string& run_dir, bool with_pictures, Document* document) {
  std::vector<std::string> paths;
  for (const auto& [rank, path] : LatestTorchTraces(run_dir)) paths.push_back(path);
  if (paths.empty()) return;
  absl::StatusOr<Document> traces = ReportTraces(run_dir, paths);
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
