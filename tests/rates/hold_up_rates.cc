// Measures how often the traces of a job name a rank that is like the others, and find one that is slow:
//   bazel run //tests/rates:hold_up_rates [-- SEEDS]
// Each row is so many simulated jobs (traces_for_test.h), 500 if not told. Ends with 1 where a rate is
// missed: at most 1 of 100 names a rank that is like the others, and what must be found is, in 95 of 100.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"
#include "ott/questions/waiting/traces_for_test.h"

namespace ott::waiting {
namespace {

struct Row {
  std::string what;
  SimulatedJob job;
  bool must_find = false;
};

std::vector<Row> Rows() {
  std::vector<Row> rows;
  for (const int num_ranks : {2, 4, 8}) {
    const auto add = [&](const std::string& what, bool must_find = false) -> SimulatedJob& {
      Row& row = rows.emplace_back();
      row.what = what;
      row.must_find = must_find;
      row.job.num_ranks = num_ranks;
      return row.job;
    };
    const auto slow = [](SimulatedJob& job, double slowdown) {
      job.slow_rank = 1;
      job.slowdown = slowdown;
    };
    (void)add("alike");
    add("alike, 12 steps").num_steps = 12;
    add("alike, 5 steps").num_steps = 5;
    add("alike, without steps").has_steps = false;
    add("alike, two hosts' clocks").num_hosts = 2;
    add("data uneven by 20 %").uneven_data = 0.2;
    SimulatedJob& few = add("data uneven by 20 %, 12 steps");
    few.uneven_data = 0.2;
    few.num_steps = 12;
    add("disturbed by 5 % for 0.3 s").disturbance = 0.05;
    SimulatedJob& disturbed = add("disturbed by 5 %, 12 steps");
    disturbed.disturbance = 0.05;
    disturbed.num_steps = 12;
    add("stalls of half a step").stall_probability = 0.005;
    slow(add("one 20 % slower", true), 0.2);
    slow(add("one 10 % slower"), 0.1);
    SimulatedJob& hosts = add("one 20 % slower, two hosts' clocks", true);
    hosts.num_hosts = 2;
    slow(hosts, 0.2);
    SimulatedJob& parts = add("one 20 % slower, without steps", true);
    parts.has_steps = false;
    slow(parts, 0.2);
    SimulatedJob& short_trace = add("one 50 % slower, 12 steps", true);
    short_trace.num_steps = 12;
    slow(short_trace, 0.5);
    SimulatedJob& shortest = add("one 50 % slower, 5 steps");
    shortest.num_steps = 5;
    slow(shortest, 0.5);
  }
  return rows;
}

int Main(int argc, char** argv) {
  const int num_seeds = argc > 1 ? std::atoi(argv[1]) : 500;
  if (num_seeds < 1) {
    std::fprintf(stderr, "hold_up_rates: '%s' is no number of seeds\n", argv[1]);
    return 2;
  }
  TextTable table(
      {"ranks", "traces", "named the slow one", "named another", "named nobody", "cannot tell", ""},
      TextTable::LastColumn::kLeft);
  bool good = true;
  for (const Row& row : Rows()) {
    int right = 0, wrong = 0, nobody = 0, unknown = 0;
    for (int seed = 0; seed < num_seeds; ++seed) {
      const TracedHoldUps hold_ups =
          DescribeForTest(SimulateTraces(row.job, static_cast<uint64_t>(seed) + 1)).hold_ups;
      if (!hold_ups.CanTell()) {
        ++unknown;
      } else if (hold_ups.found.empty()) {
        ++nobody;
      } else {
        ++(hold_ups.found[0].rank == row.job.slow_rank ? right : wrong);
      }
    }
    const auto percent = [&](int count) { return absl::StrFormat("%.1f %%", 100.0 * count / num_seeds); };
    const bool met = 100 * wrong <= num_seeds && (!row.must_find || 100 * right >= 95 * num_seeds);
    good = good && met;
    table.AddRow({absl::StrCat(row.job.num_ranks), row.what, row.job.slow_rank < 0 ? "-" : percent(right),
                  percent(wrong), percent(nobody), percent(unknown), met ? "ok" : "MISSED"});
  }
  std::printf("%s", table.ToString().c_str());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace ott::waiting

int main(int argc, char** argv) { return ott::waiting::Main(argc, argv); }
