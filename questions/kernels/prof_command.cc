#include "ott/questions/kernels/prof_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/answer/exit_code.h"
#include "ott/questions/kernels/compare_rows.h"
#include "ott/questions/kernels/host_time.h"
#include "ott/questions/kernels/json_rows.h"
#include "ott/questions/kernels/kernel_join.h"
#include "ott/questions/kernels/prof_column.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/profile_reader.h"
#include "ott/questions/kernels/profile_rows.h"
#include "ott/questions/kernels/pyprof_reader.h"
#include "ott/questions/kernels/summary.h"

namespace ott::kernels {
namespace {

struct ProfFlags {
  std::string file;
  bool csv = false;
  bool json = false;
  bool summary = false;
  bool host = false;
  std::string gpu;
  std::string at;
  std::string against;
  std::string of_kernels;  // an option that was given and that host time has no use for
  ProfTableOptions table;
};

void PrintNote(const std::string& note) {
  std::fprintf(stderr, "  %s\n", EscapeControlCharacters(note).c_str());
}

// Prints what was read, how much of it was joined, and what could not be used: beside the table, on stderr.
void PrintNotes(const Profile& profile, const KernelJoin* join) {
  std::fprintf(stderr, "%s (%s): %zu kernels, %zu copies and memsets, %lld ranges\n",
               EscapeControlCharacters(profile.path).c_str(), profile.schema.c_str(), profile.kernels.size(),
               profile.transfers.size(), static_cast<long long>(profile.num_ranges));
  if (join != nullptr) {
    constexpr const char* kStates[] = {
        "kernels joined to an op", "launched within ranges of which none is an op",
        "launched outside of any range", "without the call that launched them in the file"};
    std::array<int64_t, std::size(kStates)> counts = {};
    int64_t in_graphs = 0;
    for (const Profile::Kernel& kernel : profile.kernels) {
      ++counts[static_cast<size_t>(join->StateOf(profile, kernel.launch))];
      if (kernel.in_graph) ++in_graphs;
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) std::fprintf(stderr, "  %lld %s\n", static_cast<long long>(counts[i]), kStates[i]);
    }
    if (in_graphs > 0) {
      std::fprintf(stderr,
                   "  %lld launched by CUDA graphs: their ops are those of the capture, not of the launch\n",
                   static_cast<long long>(in_graphs));
    }
    for (const std::string& note : join->notes) PrintNote(note);
  }
  for (const std::string& note : profile.notes) PrintNote(note);
}

void Print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

absl::Status WriteRows(const KernelRows& rows, const ProfFlags& flags) {
  if (!flags.summary) return WriteProfTable(rows, flags.table, Print);
  Print(Summarize(rows, flags.table));
  return absl::OkStatus();
}

// Writes what an earlier call wrote, from standard input; its first line was read.
absl::Status WriteJsonRows(const std::string& first_line, const ProfFlags& flags) {
  for (const auto& [option, value] : {std::pair("--at", &flags.at), std::pair("--gpu", &flags.gpu)}) {
    if (!value->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, " needs a capture: rows from standard input have their ops and peaks"));
    }
  }
  const JsonRows rows(std::cin, first_line);
  if (rows.num_bad_lines() > 0) {
    std::fprintf(stderr, "standard input: %lld lines are no rows of `ott prof --json` and were left out\n",
                 static_cast<long long>(rows.num_bad_lines()));
  }
  OTT_RETURN_IF_ERROR(WriteRows(rows, flags));
  if (rows.size() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "standard input: neither rows that `ott prof --json -c all` wrote nor dictionaries of PyProf");
}

// A capture with its rows.
struct JoinedProfile {
  Profile profile;
  KernelJoin join;

  static absl::StatusOr<std::unique_ptr<JoinedProfile>> Read(const std::string& path) {
    ReadProfileOptions read;
    read.transfers = true;
    auto result = std::make_unique<JoinedProfile>();
    OTT_ASSIGN_OR_RETURN(result->profile, ReadProfile(path, read));
    result->join = JoinKernels(&result->profile);
    PrintNotes(result->profile, &result->join);
    return result;
  }
};

absl::Status CompareWith(const std::string& base_path, const ProfFlags& flags) {
  constexpr size_t kMost = 15;
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<JoinedProfile> current, JoinedProfile::Read(flags.file));
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<JoinedProfile> base, JoinedProfile::Read(base_path));
  const ProfileRows rows(current->profile, current->join, std::nullopt, flags.at);
  const ProfileRows base_rows(base->profile, base->join, std::nullopt, flags.at);
  if (rows.size() == 0 || base_rows.size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows.size() == 0 ? flags.file : base_path, ": has no kernels to compare"));
  }
  Print(CompareRows({&rows, current->profile.num_steps}, {&base_rows, base->profile.num_steps}, flags.table,
                    flags.table.limit >= 0 ? static_cast<size_t>(flags.table.limit) : kMost));
  return absl::OkStatus();
}

// The latest trace that a rank of the run wrote by torch.profiler: of --ranks, else of the first that has
// one.
absl::StatusOr<std::string> TraceOfRun(const std::string& run_dir, const std::vector<int64_t>& ranks) {
  OTT_RETURN_IF_ERROR(CheckRunDirectory(run_dir));
  const std::map<int, std::string> traces = LatestTorchTraces(run_dir);
  if (traces.empty()) {
    return absl::NotFoundError(
        absl::StrCat(run_dir,
                     ": no rank has a trace of torch.profiler; one that a program writes under `python -m "
                     "optim_test_tools` is found here, and others are given by their file"));
  }
  if (ranks.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(run_dir, ": one rank's trace is read, and --ranks names ", ranks.size()));
  }
  const auto trace = std::find_if(traces.begin(), traces.end(), [&](const auto& of_rank) {
    return ranks.empty() || of_rank.first == ranks[0];
  });
  if (trace == traces.end())
    return absl::NotFoundError(absl::StrCat(run_dir, ": rank ", ranks[0], " has no trace of torch.profiler"));
  if (traces.size() > 1 && ranks.empty()) {
    std::fprintf(stderr, "%s: rank %d's trace of %zu; --ranks names another\n",
                 EscapeControlCharacters(run_dir).c_str(), trace->first, traces.size());
  }
  return trace->second;
}

absl::Status Prof(ProfFlags flags) {
  if (flags.file.empty() && isatty(STDIN_FILENO) != 0) {
    return absl::InvalidArgumentError(
        "FILE is missing; without it, standard input is read, which is a terminal here");
  }
  if (flags.file.empty()) flags.file = "-";
  bool is_of_run = false;
  for (std::string* const file : {&flags.file, &flags.against}) {
    if (IsDirectory(*file)) {
      OTT_ASSIGN_OR_RETURN(*file, TraceOfRun(*file, flags.table.ranks));
      is_of_run = true;
    }
  }
  if (is_of_run) {
    // They have named the trace.
    flags.table.ranks.clear();
    if (flags.of_kernels == "--ranks") flags.of_kernels.clear();
  }
  if (flags.csv) flags.table.layout.format = TableLayout::Format::kCsv;
  if (flags.json) flags.table.layout.format = TableLayout::Format::kJson;
  std::optional<DevicePeaks> gpu;
  if (!flags.gpu.empty()) {
    gpu = PeaksByName(flags.gpu);
    if (!gpu.has_value()) {
      std::string known;
      for (const std::string& name : KnownGpus()) absl::StrAppend(&known, known.empty() ? "" : ", ", name);
      return absl::InvalidArgumentError(
          absl::StrCat("no peaks of a GPU '", flags.gpu, "'; there are ", known));
    }
  }
  if (flags.host && !flags.of_kernels.empty())
    return absl::InvalidArgumentError(absl::StrCat("--host takes no ", flags.of_kernels));
  if (flags.host && flags.file == "-")
    return absl::InvalidArgumentError("--host needs a capture: rows from standard input are of kernels");
  if (!flags.against.empty()) return CompareWith(flags.against, flags);
  Profile profile;
  if (flags.file == "-") {
    std::string first;
    std::getline(std::cin, first);
    if (!IsPyProfDictionary(first)) return WriteJsonRows(first, flags);
    OTT_ASSIGN_OR_RETURN(profile, ReadPyProf(std::cin, "standard input", first));
  } else {
    ReadProfileOptions read;
    read.transfers = true;
    OTT_ASSIGN_OR_RETURN(profile, ReadProfile(flags.file, read));
  }
  if (flags.host || (profile.kernels.empty() && profile.transfers.empty())) {
    PrintNotes(profile, nullptr);
    if (!flags.host) std::fprintf(stderr, "  no kernels were captured\n");
    std::fprintf(stderr, "  host time by range, ns:\n");
    OTT_RETURN_IF_ERROR(WriteHostTimes(profile, flags.table.layout, flags.table.limit, Print));
    if (flags.of_kernels.empty()) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat(flags.file, ": no kernels were captured, so there are none for ", flags.of_kernels));
  }
  const KernelJoin join = JoinKernels(&profile);
  PrintNotes(profile, &join);
  const ProfileRows rows(profile, join, std::move(gpu), flags.at);
  for (const std::string& name : rows.DevicesWithoutPeaks()) {
    std::fprintf(stderr,
                 "  peak unknown: no peaks of %s are known, so peak and roof are na; --gpu tells them\n",
                 name.empty() ? "a device without a name" : EscapeControlCharacters(name).c_str());
  }
  return WriteRows(rows, flags);
}

}  // namespace

void AddProfCommand(const CommandLine& line) {
  CLI::App* command =
      line.app.add_subcommand("prof", "Kernels of a capture, with op, layer, FLOPs, bytes and Tensor Cores");
  const auto flags = std::make_shared<ProfFlags>();
  ProfTableOptions& table = flags->table;
  command->add_option(
      "FILE", flags->file,
      "Trace of torch.profiler (run directory that has them, .json or .json.gz), SQLite export of Nsight "
      "Systems, capture of `ott profile`, nvprof file, or PyProf's dictionaries (net.dict); - or none: "
      "standard input, with these dictionaries or rows that --json -c all wrote");
  CLI::Option* columns =
      command->add_option("-c,--columns", table.columns, "Columns, by commas, or all")->capture_default_str();
  CLI::Option* csv = command->add_flag("--csv", flags->csv, "RFC 4180");
  CLI::Option* json = command->add_flag("--json", flags->json, "One JSON object a line")->excludes(csv);
  CLI::Option* width = command
                           ->add_option("-w,--width", table.layout.width,
                                        "Cut texts and fill columns so that a line has so many characters")
                           ->excludes(csv)
                           ->excludes(json)
                           ->check(NumberFrom(1));
  CLI::Option* group_by =
      command->add_option("--group-by", table.group_by, "Columns, by commas: one row a group, with sums")
          ->excludes(columns);
  CLI::Option* sort = command->add_option("--sort", table.sort, "Column; largest numbers first");
  CLI::Option* summary =
      command->add_flag("--summary", flags->summary, "The ops that take most time, and advice");
  for (CLI::Option* option : {csv, json, width, columns, group_by, sort}) summary->excludes(option);
  CLI::Option* against = command->add_option(
      "--against", flags->against,
      "Compare with this capture: what became slower or faster in FILE, what is new and what is gone");
  CLI::Option* host =
      command->add_flag("--host", flags->host, "Host time by range, also if there are kernels");
  for (CLI::Option* option : {csv, json, width, columns, group_by, sort, summary, host})
    against->excludes(option);
  command->add_option("-n,--limit", table.limit, "At most so many rows (in a summary: ops)")
      ->check(NumberFrom(0));
  // Host time has no use for these options.
  const std::vector<CLI::Option*> of_kernels = {
      columns,
      group_by,
      sort,
      summary,
      command->add_option("--op", table.op, "Only kernels of ops like this glob"),
      command->add_option("--at", flags->at,
                          "Name kernels by the outermost op like one of these globs, by commas, that "
                          "called theirs: linear, '*'"),
      command->add_option("--layer", table.layer, "Only kernels of layers like this glob"),
      command->add_option("--kernel", table.kernel, "Only kernels (in brief) like this glob"),
      command->add_option("--phase", table.phase, "Only kernels of phases like this glob"),
      command->add_option("--dir", table.direction, "Only kernels of this direction")
          ->check(CLI::IsMember({"fprop", "bprop"})),
      command->add_option("--ranks", table.ranks, "Only these, such as 0,3; of a run, this one's trace")
          ->delimiter(',')
          ->allow_extra_args(false),
      command->add_option("--begin", table.begin_seconds, "Only kernels from this second of the capture on")
          ->check(NumberFrom(0)),
      command->add_option("--end", table.end_seconds, "Only kernels before this second of the capture")
          ->check(NumberFrom(0))};
  command->add_option("--gpu", flags->gpu,
                      "Peaks to compare with if FILE does not tell the device: H100, A100, ...");
  std::string footer = "Columns:\n";
  for (const ProfColumn& column : ProfColumns()) {
    absl::StrAppend(&footer, "  ", std::string(column.name), std::string(10 - column.name.size(), ' '),
                    std::string(column.meaning), "\n");
  }
  command->footer(
      footer +
      "Exit code: 0 printed, 2 FILE cannot be read, or has no kernels for an option that is about them.\n"
      "Examples:\n  ott prof run.sqlite --group-by op,dir -n 10\n"
      "  ott prof trace.json.gz --summary\n"
      "  ott prof after.json.gz --against before.json.gz");
  command->callback([flags, of_kernels, exit_code = line.exit_code] {
    for (const CLI::Option* option : of_kernels) {
      if (option->count() > 0) flags->of_kernels = option->get_name();
    }
    const absl::Status status = Prof(*flags);
    *exit_code = FinishCommand("prof", status.ok() ? absl::StatusOr<int>(kExitGood) : status);
  });
}

}  // namespace ott::kernels
