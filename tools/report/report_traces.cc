#include "tools/report/report_traces.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/file.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/directory/run_directory.h"
#include "tools/kineto/read_trace.h"
#include "tools/prof/kernel_join.h"
#include "tools/prof/profile_reader.h"
#include "tools/prof/profile_rows.h"
#include "tools/ranks/job.h"
#include "tools/ranks/parallel.h"
#include "tools/report/report_html.h"

namespace ott::report {
namespace {

using prof::KernelRow;

constexpr size_t kTopOps = 15;
constexpr size_t kTopCollectives = 10;

// An op on all ranks.
struct OpSum {
  std::map<int, int64_t> nanoseconds;  // by rank
  double flops = 0;
  int64_t flops_time = 0;
  double peak = 0;  // percent times nanoseconds
  int64_t peak_time = 0;
  int64_t compute_time = 0;  // that compute limits, of peak_time
};

// By op and direction.
using OpSums = std::map<std::string, OpSum>;

void AddOps(const prof::ProfileRows& rows, int rank, OpSums* sums) {
  KernelRow row;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows.Get(i, &row);
    if (row.join == "no_launch") continue;
    OpSum& sum = (*sums)[absl::StrCat(row.op.empty() ? "(no op)" : std::string(row.op),
                                      row.dir == "bprop" ? " (backward)" : "")];
    sum.nanoseconds[rank] += row.sil;
    const int64_t call = row.call == prof::kNoInteger ? row.sil : row.call;
    if (row.flops > 0) {
      sum.flops += row.flops;
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

std::string FormatOps(const OpSums& sums, size_t num_ranks) {
  double total = 0;
  std::vector<std::pair<double, const OpSums::value_type*>> order;
  for (const auto& entry : sums) {
    double time = 0;
    for (const auto& [rank, nanoseconds] : entry.second.nanoseconds) time += static_cast<double>(nanoseconds);
    total += time;
    order.emplace_back(time, &entry);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  TextTable table({"op", "share", "time a rank", "most on", "TFLOP/s", "of peak", "limited by"});
  for (size_t i = 0; i < std::min(kTopOps, order.size()); ++i) {
    const auto& [time, entry] = order[i];
    const OpSum& sum = entry->second;
    const auto most = std::max_element(sum.nanoseconds.begin(), sum.nanoseconds.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const bool has_peak = sum.peak_time > 0;
    table.AddRow({entry->first, absl::StrFormat("%.1f %%", total > 0 ? 100 * time / total : 0),
                  Time(time / static_cast<double>(num_ranks)),
                  absl::StrCat("rank ", most->first, ": ", Time(static_cast<double>(most->second))),
                  sum.flops_time > 0
                      ? absl::StrFormat("%.4g", sum.flops / static_cast<double>(sum.flops_time) * 1e-3)
                      : "na",
                  has_peak ? absl::StrFormat("%.1f %%", sum.peak / static_cast<double>(sum.peak_time)) : "na",
                  !has_peak                              ? "na"
                  : 2 * sum.compute_time > sum.peak_time ? "compute"
                                                         : "memory"});
  }
  return table.ToString();
}

// A bar a rank.
std::string DrawSplits(const ranks::Job& job) {
  constexpr int kRowHeight = 22;
  int64_t longest = 1;
  for (const ranks::Job::Rank& rank : job.ranks) longest = std::max(longest, rank.split.total);
  std::string svg = absl::StrFormat("<svg viewBox=\"0 0 1000 %d\" role=\"img\">\n",
                                    static_cast<int>(job.ranks.size() + 1) * kRowHeight);
  const std::pair<const char*, const char*> looks[] = {{"compute", "#1a7f37"},
                                                       {"exposed communication", "#cf222e"},
                                                       {"exposed copies", "#d4a72c"},
                                                       {"idle", "#afb8c1"}};
  int y = 0;
  for (const ranks::Job::Rank& rank : job.ranks) {
    absl::StrAppendFormat(&svg, "<text x=\"0\" y=\"%d\">rank %d</text>\n", y + 15, rank.rank);
    const int64_t parts[] = {rank.split.compute, rank.split.exposed_communication, rank.split.exposed_copies,
                             rank.split.idle};
    double x = 80;
    for (size_t i = 0; i < std::size(parts); ++i) {
      const double width = 900.0 * static_cast<double>(parts[i]) / static_cast<double>(longest);
      absl::StrAppendFormat(&svg,
                            "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"16\" fill=\"%s\"><title>%s: "
                            "%s</title></rect>\n",
                            x, y + 2, width, looks[i].second, looks[i].first,
                            Time(static_cast<double>(parts[i])));
      x += width;
    }
    y += kRowHeight;
  }
  int x = 80;
  for (const auto& [name, color] : looks) {
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%d\" "
                          "y=\"%d\">%s</text>\n",
                          x, y + 4, color, x + 18, y + 15, name);
    x += 220;
  }
  return svg + "</svg>\n";
}

}  // namespace

std::vector<std::string> ListTraces(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error) || IsRunDirectory(directory)) return paths;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!absl::EndsWith(path, ".json") && !absl::EndsWith(path, ".json.gz")) continue;
    if (IsRegularFile(path) && kineto::IsTorchTrace(path)) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<TracesReport> ReportTraces(const std::string& directory,
                                          const std::vector<std::string>& paths) {
  std::vector<absl::StatusOr<prof::Profile>> read(paths.size());
  prof::ReadProfileOptions options;
  options.transfers = true;
  ranks::ForEachInParallel(paths.size(), [&](size_t i) { read[i] = prof::ReadProfile(paths[i], options); });
  std::vector<ranks::RankTrace> traces;
  std::vector<prof::Profile*> profiles;
  std::string problems;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!read[i].ok()) {
      absl::StrAppend(&problems, std::string(read[i].status().message()), "\n");
      continue;
    }
    profiles.push_back(&*read[i]);
    const int rank = read[i]->rank >= 0 ? read[i]->rank : static_cast<int>(i);
    const bool is_known = std::any_of(traces.begin(), traces.end(),
                                      [rank](const ranks::RankTrace& trace) { return trace.rank == rank; });
    if (is_known) absl::StrAppend(&problems, paths[i], ": rank ", rank, " has another trace here as well\n");
    traces.push_back({rank, &*read[i]});
    for (const std::string& note : read[i]->notes) absl::StrAppend(&problems, paths[i], ": ", note, "\n");
  }
  if (traces.empty()) return read[0].status();
  const ranks::Job job = ranks::DescribeJob(traces);
  OpSums ops;
  for (size_t i = 0; i < traces.size(); ++i) {
    const prof::KernelJoin join = prof::JoinKernels(profiles[i]);
    AddOps(prof::ProfileRows(*profiles[i], join, std::nullopt), traces[i].rank, &ops);
  }

  TracesReport report;
  report.somebody_is_waited_for = !job.hold_ups.empty();
  const bool can_tell = report.somebody_is_waited_for || job.most_intervals >= ranks::kMinIntervalsOfHoldUp;
  report.complete = problems.empty() && (can_tell || traces.size() == 1);
  const std::string title = absl::StrCat(traces.size(), traces.size() == 1 ? " trace" : " traces",
                                         " of torch.profiler in ", directory);
  const Grade grade = report.somebody_is_waited_for ? Grade::kBad : can_tell ? Grade::kGood : Grade::kUnknown;
  std::vector<Answer> answers = {{"Who waits for whom?", grade, ranks::FormatHoldUps(job)}};
  if (!problems.empty()) answers.push_back({"Incomplete", Grade::kUnknown, problems});
  const std::vector<HtmlSection> sections = {
      {"Where the time goes", DrawSplits(job), ranks::FormatSplits(job)},
      {"What the ranks do together", "", ranks::FormatCollectives(job, kTopCollectives)},
      {"Ops that take most time, and what limits them", "", FormatOps(ops, traces.size())},
  };
  absl::StrAppend(&report.text, title, "\n");
  for (const Answer& answer : answers)
    absl::StrAppend(&report.text, "\n", answer.question, "\n", answer.text);
  for (const HtmlSection& section : sections)
    absl::StrAppend(&report.text, "\n", section.title, "\n", section.text);
  report.html = ToHtmlPage(title, answers, sections);
  return report;
}

}  // namespace ott::report
