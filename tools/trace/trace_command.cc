#include "tools/trace/trace_command.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/answer/exit_code.h"
#include "ott/questions/waiting/traced_job.h"
#include "tools/trace/join_traces.h"
#include "tools/trace/read_run_traces.h"
#include "tools/trace/trace_report.h"

namespace ott::trace {
namespace {

struct TraceFlags {
  std::vector<std::string> runs;
  std::string output;
  TraceSelection selection;
  CaptureOptions captures;
  std::vector<int> ranks;
  uint64_t max_size = 0;
  bool tree = false;
  bool gaps = false;
  bool split = false;
  bool json = false;
  size_t top = 0;
  size_t collectives = 0;
  double min_percent = 0.1;
};

void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }

absl::Status Join(RunTraces& traces, const TraceFlags& flags) {
  const absl::StatusOr<JoinedTrace> joined =
      JoinTraces(traces, flags.output, static_cast<int64_t>(flags.max_size));
  if (!joined.ok()) return joined.status();
  Print(absl::StrCat(flags.output, ": ", joined->num_events, " events of ", traces.info().traces_size(),
                     " traces\n"));
  if (joined->num_left_out > 0) {
    Print(absl::StrCat("left out to stay below ", flags.max_size, " bytes: ", joined->num_left_out,
                       " events shorter than ", FormatSeconds(static_cast<double>(joined->shortest) * 1e-9),
                       "\n"));
  }
  const auto& infos = traces.info().traces();
  const auto has_clock = [](const TraceInfo& info) { return info.has_clock(); };
  if (infos.size() == 1 || std::none_of(infos.begin(), infos.end(), has_clock)) {
    return absl::OkStatus();
  }
  const auto worst = std::max_element(infos.begin(), infos.end(), [](const TraceInfo& a, const TraceInfo& b) {
    return a.clock().error_bound_nanoseconds() < b.clock().error_bound_nanoseconds();
  });
  const int64_t bound = worst->clock().error_bound_nanoseconds();
  Print(absl::StrCat("on rank 0's clock, at most ", FormatSeconds(static_cast<double>(bound) * 1e-9), " off",
                     bound == 0 ? "" : absl::StrCat(" (rank ", worst->rank(), ")"), "\n"));
  return absl::OkStatus();
}

absl::StatusOr<int> RunTrace(TraceFlags& flags) {
  flags.selection.ranks = std::set<int>(flags.ranks.begin(), flags.ranks.end());
  SayLatestAttempt("trace", flags.runs[0]);
  OTT_ASSIGN_OR_RETURN(RunTraces traces, RunTraces::Find(flags.runs, flags.selection, flags.captures));
  if (!flags.output.empty()) OTT_RETURN_IF_ERROR(Join(traces, flags));
  bool has_answer = true;
  Answer answer;
  if (flags.split || flags.collectives > 0) {
    const std::vector<waiting::RankProfile> rank_traces = traces.RankTraces();
    if (rank_traces.empty())
      return absl::InvalidArgumentError("--split and --collectives are for traces of torch.profiler");
    const waiting::TracedJob job = waiting::DescribeJob(rank_traces);
    if (flags.split) Print(flags.json ? waiting::SplitsToJson(job) : waiting::FormatSplits(job));
    if (flags.collectives > 0) {
      Print(waiting::FormatCollectives(job, flags.collectives));
      if (traces.two_runs().empty()) {
        Print(waiting::FormatHoldUps(job));
        answer = waiting::AnswerHoldUps(job);
      } else {
        Print(absl::StrCat("cannot tell who waits for whom: ", traces.two_runs(), "\n"));
      }
    }
  }
  if (flags.tree || flags.top > 0 || flags.gaps) {
    TraceReport report;
    traces.Visit([&report](const Trace& trace) { report.Add(trace); });
    if (flags.tree) Print(report.Tree(flags.min_percent / 100));
    if (flags.top > 0) Print(report.Top(flags.top));
    if (flags.gaps) {
      Print(report.Gaps());
      has_answer = !report.Gaps().empty();
      if (!has_answer)
        PrintError("trace", absl::NotFoundError("no device was active, so there are no gaps to tell of"));
    }
  }
  for (const std::string& note : traces.info().notes()) PrintError("trace", absl::DataLossError(note));
  const bool complete = traces.info().notes().empty() && has_answer;
  return ExitCodeOf(complete || answer.finding() == Answer::BAD ? answer.finding() : Answer::CANNOT_TELL);
}

}  // namespace

void AddTraceCommand(const CommandLine& line) {
  CLI::App* command = line.app.add_subcommand(
      "trace",
      "One timeline of all ranks' traces, on rank 0's clock, for Perfetto, speedscope or chrome://tracing");
  const auto flags = std::make_shared<TraceFlags>();
  command
      ->add_option("RUN", flags->runs,
                   "Run directory with traces, its own or torch.profiler's, one trace.json, or a capture "
                   "(SQLite); several files: traces of torch.profiler, one a rank")
      ->required();
  command->add_option(
      "--capture", flags->captures.files,
      "Kernels, memory copies and memsets from these files of `ott profile` or Nsight Systems' "
      "exports; RANK=FILE where neither rank_00003 in the name nor the process id tells the rank");
  command->add_option("--capture-offset", flags->captures.begin_unix_nanoseconds,
                      "Nanoseconds since 1970 at the captures' time 0, instead of what they say");
  CLI::Option* split = command->add_flag("--split", flags->split,
                                         "Print where each rank's time goes: compute, exposed and overlapped "
                                         "communication, copies, idle and why");
  command->add_flag("--json", flags->json, "Print the split as a line of JSON a rank")->needs(split);
  command->add_option("--collectives", flags->collectives,
                      "Print so many kinds of collectives: size, bandwidths, wait, who came last");
  command->add_option("-o,--output", flags->output,
                      "File to write: .json, .json.gz, .perfetto-trace or .perfetto-trace.gz");
  command->add_option("--begin", flags->selection.begin, "Only what reaches beyond this, in seconds")
      ->check(NumberFrom(-1e9, 1e9))
      ->capture_default_str();
  command->add_option("--end", flags->selection.end, "Only what begins before this, in seconds")
      ->check(NumberFrom(-1e9, 1e9));
  command->add_option("--ranks", flags->ranks, "Only these, such as 0,3")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--max-size", flags->max_size,
                   "Leave out the shortest ranges beyond this size before compression, such as 300MB")
      ->transform(CLI::AsSizeValue(false));
  command->add_flag("--tree", flags->tree,
                    "Print ranges inside of ranges: inclusive and exclusive time, count");
  command->add_option("--min-percent", flags->min_percent, "Of all time, for --tree")
      ->check(NumberFrom(0, 100))
      ->capture_default_str();
  command->add_option("--top", flags->top, "Print so many ranges with the most time of their own");
  command->add_flag("--gaps", flags->gaps,
                    "Print when devices had nothing to do, by what the host was doing");
  command->footer(
      "Exit code: 0 all is there, 1 with --collectives: all wait for one rank, 2 it cannot be told whether; "
      "or "
      "ranks, files or events are missing or cut (they are named).\n"
      "Examples:\n  ott trace out/run -o trace.json.gz --max-size 300MB --tree\n"
      "  ott trace out/run --capture kernels.rank_*.sqlite -o trace.json --gaps\n"
      "  ott trace kernels.rank_00000.sqlite -o trace.json\n"
      "  ott trace rank0.pt.trace.json.gz rank1.pt.trace.json.gz --split --collectives 10 -o trace.json.gz");
  command->callback([command, flags, exit_code = line.exit_code] {
    if (flags->output.empty() && !flags->tree && flags->top == 0 && !flags->gaps && !flags->split &&
        flags->collectives == 0) {
      throw CLI::RequiredError("one of --output, --tree, --top, --gaps, --split, --collectives");
    }
    *exit_code = FinishCommand("trace", RunTrace(*flags));
  });
}

}  // namespace ott::trace
