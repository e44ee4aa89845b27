// live_rates MPIRUN START_RANKS LIVE_TRAINING [FLAG...]: how often verdicts about time of real processes are
// not true, by the shape of the training: those that the runs print while they go on and at their end, and
// those of the run directories that they leave.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/questions/saved/run_job.h"
#include "ott/questions/slow/read_cluster_stats.h"
#include "ott/tests/shapes/simulated_training.h"
#include "re2/re2.h"

namespace ott::shapes {
namespace {

struct Options {
  std::string mpirun, start_ranks, program;
  std::string only, over, dir;
  int num_runs = 1, num_ranks = 0, at_once = 3;
  bool explain = false;
};

struct Run {
  const Shape* shape;
  int num_ranks = 0;
  bool is_planted = false;
  std::string transport;
  int seed = 0;
  std::string dir;
  bool ended_well = false;
  std::promise<void> has_ended;

  int planted() const {
    if (!is_planted) return -1;
    return shape->planted_rank >= 0 ? shape->planted_rank : seed % num_ranks;
  }
};

std::vector<Run> ListRuns(const Options& options) {
  std::vector<Run> runs;
  for (const Shape& shape : Shapes()) {
    if (!absl::StrContains(shape.name, options.only) || shape.num_present > 0) continue;
    for (const int num_ranks : shape.sizes) {
      if (options.num_ranks > 0 && num_ranks != options.num_ranks) continue;
      for (const bool is_planted : {false, true}) {
        if (is_planted && shape.cannot_be_told) continue;
        for (const char* const transport : {"mpi", "tcp"}) {
          if (!options.over.empty() && options.over != transport) continue;
          for (int seed = 0; seed < options.num_runs; ++seed) {
            const std::string dir = absl::StrCat(options.dir, "/", runs.size());
            runs.push_back({&shape, num_ranks, is_planted, transport, seed + num_ranks / 2, dir});
          }
        }
      }
    }
  }
  return runs;
}

void Start(const Options& options, Run& run) {
  const std::string& launcher = run.transport == "mpi" ? options.mpirun : options.start_ranks;
  const std::string command = absl::StrCat("exec '", launcher, "' ", run.num_ranks, " '", options.program,
                                           "' '", run.shape->name, "' ", run.seed, " ", run.planted(), " '",
                                           run.dir, "' ", run.transport, " > '", run.dir, ".log' 2>&1");
  run.ended_well = std::system(command.c_str()) == 0;
  run.has_ended.set_value();
}

// Whom lines name that a run printed, ascending.
std::vector<int> NamedIn(absl::string_view text) {
  static const RE2* const kNames = new RE2(
      "^(?:slowest rank|last [0-9]+ iterations|what if: without|[^ ]+): rank ([0-9]+) .*(?:works|takes)|"
      "all wait for rank ([0-9]+) |^rank ([0-9]+) .* caused |^what if: without ranks? ([0-9, ]*[0-9])");
  std::vector<int> named;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string found[4];
    if (!RE2::PartialMatch({line.data(), line.size()}, *kNames, &found[0], &found[1], &found[2], &found[3]))
      continue;
    for (const std::string& ranks : found) {
      for (const absl::string_view rank : absl::StrSplit(ranks, absl::ByAnyChar(", "), absl::SkipEmpty())) {
        int number = 0;
        if (absl::SimpleAtoi(rank, &number)) named.push_back(number);
      }
    }
  }
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  return named;
}

std::vector<double> ReadNumbers(const std::string& path) {
  const std::string bytes = ReadFile(path).value_or("");
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  return numbers;
}

// Returns the loss if all work takes as long as it took in the run.
Loss LossOf(const Run& run) {
  std::vector<RankProgram> programs = run.shape->Programs(run.num_ranks, run.seed, run.planted());
  for (int rank = 0; rank < run.num_ranks; ++rank) {
    programs[static_cast<size_t>(rank)].SetWork(ReadNumbers(WorkPath(run.dir, rank)));
  }
  return LossOf(*run.shape, programs);
}

void Judge(const Run& run, Rates& rates) {
  const std::string log = ReadFile(absl::StrCat(run.dir, ".log")).value_or("");
  // The job's clock is that of its slowest rank.
  std::vector<double> ends(static_cast<size_t>(run.shape->num_iterations));
  for (int rank = 0; rank < run.num_ranks; ++rank) {
    const std::vector<double> of_rank = ReadNumbers(EndsPath(run.dir, rank));
    OTT_CHECK(of_rank.size() == ends.size()) << run.dir << ": rank " << rank << "\n" << log;
    for (size_t i = 0; i < ends.size(); ++i) ends[i] = std::max(ends[i], of_rank[i]);
  }
  absl::StatusOr<ClusterStats> stats = slow::ReadClusterStats(run.dir);
  OTT_CHECK(run.ended_well && stats.ok()) << run.dir << ": " << stats.status() << log;
  const absl::StatusOr<saved::ReplayJob> job = saved::ReadRunJob(run.dir);
  Told told = Ask(*std::move(stats), job.ok() ? &*job : nullptr, std::move(ends));
  Shape shape = *run.shape;
  // Other work on the machine makes ranks uneven.
  shape.is_uneven = true;
  const Loss loss = LossOf(run);
  const std::string name = absl::StrCat(run.transport, ", seed ", run.seed);
  rates.Add(shape, run.num_ranks, run.planted(), loss, told, absl::StrCat(name, ", from its directory"));
  // Only the last table has seen all of the run.
  told.named = NamedIn(log);
  told.named_by_table = NamedIn(absl::string_view(log).substr(log.rfind("measured iterations;")));
  told.text = log;
  rates.Add(shape, run.num_ranks, run.planted(), loss, told, absl::StrCat(name, ", as it printed"));
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app;
  app.add_option("mpirun", options.mpirun)->required();
  app.add_option("start_ranks", options.start_ranks)->required();
  app.add_option("live_training", options.program)->required();
  app.add_option("--runs", options.num_runs, "of each row and transport")->capture_default_str();
  app.add_option("--only", options.only, "Part of the names of shapes");
  app.add_option("--ranks", options.num_ranks, "Only so many");
  app.add_option("--over", options.over, "mpi or tcp alone");
  app.add_option("--at-once", options.at_once, "Jobs that run beside each other")->capture_default_str();
  app.add_flag("--explain", options.explain, "Print the first verdict of each row that is not true");
  CLI11_PARSE(app, argc, argv);
  const char* const temporary = std::getenv("TEST_TMPDIR");
  std::string dir = absl::StrCat(temporary != nullptr ? temporary : "/tmp", "/live_rates.XXXXXX");
  OTT_CHECK(mkdtemp(dir.data()) != nullptr) << dir;
  options.dir = dir;
  std::vector<Run> runs = ListRuns(options);
  OTT_CHECK(!runs.empty()) << "no shape has such a name, or so many ranks";
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < options.at_once; ++i) {
    threads.emplace_back([&] {
      for (size_t run = next++; run < runs.size(); run = next++) Start(options, runs[run]);
    });
  }
  std::printf("%-44s %5s  %-7s %8s %6s %7s %6s %13s\n", "shape", "ranks", "", "verdicts", "false", "missed",
              "wrong", "contradicted");
  std::fflush(stdout);
  int num_bad = 0;
  for (size_t begin = 0; begin < runs.size();) {
    Rates rates;
    const Run& run = runs[begin];
    for (; begin < runs.size() && runs[begin].shape == run.shape && runs[begin].num_ranks == run.num_ranks &&
           runs[begin].is_planted == run.is_planted;
         ++begin) {
      runs[begin].has_ended.get_future().wait();
      Judge(runs[begin], rates);
    }
    std::printf("%-44s %5d  %-7s %8d %6d %7d %6d %13d\n", run.shape->name.c_str(), run.num_ranks,
                run.is_planted ? "planted" : "clean", rates.num_runs, rates.num_false, rates.num_missed,
                rates.num_wrong, rates.num_contradicted);
    std::fflush(stdout);
    num_bad += rates.num_false + rates.num_missed + rates.num_wrong + rates.num_contradicted;
    if (options.explain && !rates.first.empty()) std::printf("%s\n", rates.first.c_str());
  }
  for (std::thread& thread : threads) thread.join();
  std::filesystem::remove_all(dir);
  return num_bad > 0 ? 1 : 0;
}

}  // namespace
}  // namespace ott::shapes

int main(int argc, char** argv) { return ott::shapes::Main(argc, argv); }
