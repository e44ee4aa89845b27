// Compares the columns of a profile with the events that it was read from.

#include "ott/core/kineto/kineto_profile.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"

namespace ott::kineto {
namespace {

using kernels::kNone;
using kernels::Profile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Profile Read(const std::string& events, const std::string& header = "\"a\":1") {
  const std::string path = absl::StrCat(::testing::TempDir(), "/rank7_trace.json");
  EXPECT_TRUE(WriteFileAtomically(path, absl::StrCat("{", header, ",\"traceEvents\":[", events, "]}")).ok());
  return ReadKinetoProfile(path).value();
}

// Times are microseconds; numbers below 0 are left out.
struct Written {
  std::string category, name;
  int64_t start = 1, duration = 1, thread = 1;
  int64_t correlation = -1, id = -1, device = -1, stream = -1, bytes = -1, sequence_number = -1;
  std::vector<int64_t> sizes = {};  // of the grid and of a block
  std::string more = {};            // other arguments

  std::string Text() const {
    std::string args = R"("a":1)" + (more.empty() ? "" : "," + more);
    const auto add = [&](const char* key, int64_t number) {
      if (number >= 0) absl::StrAppend(&args, ",\"", key, "\":", number);
    };
    add("correlation", correlation);
    add("External id", id);
    add("device", device);
    add("stream", stream);
    add("bytes", bytes);
    add("Sequence number", sequence_number);
    if (!sizes.empty()) {
      absl::StrAppend(&args, R"(,"grid":[)", sizes[0], ",", sizes[1], ",", sizes[2], R"(],"block":[)",
                      sizes[3], ",", sizes[4], ",", sizes[5], "]");
    }
    return absl::StrCat(R"({"ph":"X","cat":")", category, R"(","name":")", name, R"(","pid":9,"tid":)",
                        thread, R"(,"ts":)", start, R"(,"dur":)", duration, R"(,"args":{)", args, "}}");
  }
};

std::string TextOf(const std::vector<Written>& events) {
  std::string text;
  for (const Written& event : events) absl::StrAppend(&text, text.empty() ? "" : ",", event.Text());
  return text;
}

// Says what a kernel or copy is, in nanoseconds, with the call that launched it: its thread, start and
// length; and where its op begins.
using Activity =
    std::tuple<int64_t, int64_t, std::string, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;

TEST(KinetoProfile, ColumnsHoldWhatTheEventsSay) {
  std::mt19937_64 random(1);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<Written> events;
    // The first call of a correlation, or without one of an External id; the ops of an External id, and the
    // last one that is told of a correlation.
    std::map<int64_t, Written> calls, calls_by_id;
    std::map<int64_t, std::vector<Written>> ops;
    std::map<int64_t, int64_t> ids;
    int64_t num_duplicates = 0, num_duplicate_ops = 0, num_negative = 0, num_early = 0, num_large = 0;
    for (int64_t i = 0; i < 30; ++i) {
      Written& event = events.emplace_back();
      event.start = 1000 + below(1000);
      event.duration = below(20) - (below(10) == 0 ? 30 : 0);
      if (below(30) == 0) event.duration = 5'000'000;  // longer than a call's may be
      event.thread = 1 + below(12);
      num_negative += event.duration < 0;
      switch (below(5)) {
        case 0:
          event.category = "cpu_op";
          event.name = absl::StrCat("aten::op", below(4));
          if (below(2) == 0) event.sequence_number = below(5) == 0 ? int64_t{kNone} : below(9);
          event.id = below(9);
          num_large += event.sequence_number > 100;
          break;
        case 1:
          event.category = "user_annotation";
          event.name = below(2) == 0 ? absl::StrCat("ProfilerStep#", i) : "phase";
          break;
        case 2:
          event.category = "cuda_runtime";
          event.name = below(3) == 0 ? "cudaGraphLaunch" : "cudaLaunchKernel";
          event.correlation = below(6);
          event.id = below(9);
          if (event.correlation > 0) num_duplicates += !calls.emplace(event.correlation, event).second;
          if (event.correlation == 0) calls_by_id.emplace(event.id, event);
          break;
        default:
          event.category = below(2) == 0 ? "kernel" : "gpu_memcpy";
          event.name = absl::StrCat("x", below(3));
          event.correlation = below(9);
          if (below(2) == 0) event.id = below(9);
          if (below(2) == 0) event.device = below(3) == 0 ? 32'768 : below(4);
          if (below(2) == 0) event.stream = below(3) == 0 ? int64_t{1} << 31 : below(4);
          if (event.category == "gpu_memcpy" && below(2) == 0) event.bytes = below(100);
          if (event.category == "kernel" && below(2) == 0) event.sizes = {below(3), 2, 3, 4, 5, below(3)};
          if (below(8) == 0) {
            event.device = event.stream = -1;
            event.more = R"("device":-7,"stream":-7)";
          }
      }
      if (event.category == "cpu_op" && event.id > 0) ops[event.id].push_back(event);
      if (event.correlation > 0 && event.id > 0) ids[event.correlation] = event.id;
    }
    for (const auto& [id, of_id] : ops) num_duplicate_ops += static_cast<int64_t>(of_id.size()) - 1;
    std::multiset<Activity> expected[2], found[2];
    std::map<int64_t, std::vector<std::tuple<int64_t, int64_t, std::string, int64_t>>> ranges, read_ranges;
    std::set<int64_t> threads, read_threads;  // of ranges, and of calls that can be told apart
    std::set<std::string> names;
    std::set<std::pair<int64_t, const Written*>> launches, without_call;  // by correlation, else by itself
    std::set<int64_t> graphs, graphs_that_ran;                            // by correlation
    for (const auto& [correlation, call] : calls) {
      if (call.name == "cudaGraphLaunch") graphs.insert(correlation);
    }
    int64_t num_steps = 0, first = INT64_MAX, last = 0, num_in_graphs = 0;
    for (const Written& event : events) {
      const int64_t end = event.start + std::max<int64_t>(0, event.duration);
      const bool is_host = event.category != "kernel" && event.category != "gpu_memcpy";
      if (is_host && (event.category != "cuda_runtime" || event.correlation > 0 || event.id > 0))
        threads.insert(event.thread);
      if ((!is_host || event.category == "cuda_runtime") && event.correlation > 0)
        launches.emplace(event.correlation, nullptr);
      if (!is_host && event.correlation <= 0 && event.id > 0) launches.emplace(0, &event);
      first = std::min(first, 1000 * event.start);
      last = std::max(last, 1000 * end);
      if (!is_host) {
        const bool has_correlation = event.correlation > 0,
                   is_in_graph = graphs.count(event.correlation) != 0;
        if (is_in_graph) graphs_that_ran.insert(event.correlation);
        num_in_graphs += is_in_graph && event.category == "kernel";
        const int64_t id = has_correlation ? ids[event.correlation] : event.id;
        const auto with_id = calls_by_id.find(id);
        const Written* call = id > 0 && with_id != calls_by_id.end() ? &with_id->second : nullptr;
        if (has_correlation && calls.count(event.correlation) != 0) call = &calls.at(event.correlation);
        const Written* const op = id > 0 && ops[id].size() == 1 ? &ops[id][0] : nullptr;
        num_early += call != nullptr && event.start < call->start;
        if (call == nullptr && op != nullptr)
          without_call.emplace(event.correlation, has_correlation ? nullptr : &event);
        const Written* const launch = call != nullptr ? call : op;
        const int64_t nanoseconds =
            call == nullptr ? kNone : std::clamp<int64_t>(1000 * call->duration, 0, kNone - 1);
        int64_t sizes = 0;
        for (const int64_t size : event.sizes) sizes = 10 * sizes + size;
        expected[event.category == "kernel"].emplace(
            1000 * event.start, 1000 * end, event.name,
            event.device > 32767 || !event.more.empty() ? -1
            : event.device < 0                          ? 9
                                                        : event.device,
            event.stream > INT32_MAX || !event.more.empty() ? -1
            : event.stream < 0                              ? event.thread
                                                            : event.stream,
            event.category == "kernel" ? sizes : event.bytes, launch != nullptr ? 1000 * launch->start : -1,
            launch != nullptr ? 1'000'000 * launch->thread + nanoseconds : -1,
            op != nullptr ? 10'000'000 * op->thread + 1000 * op->start : -1);
      } else if (event.category != "cuda_runtime") {
        const bool is_large = event.sequence_number > 100;
        ranges[event.thread].emplace_back(
            1000 * event.start, 1000 * end, event.name,
            is_large || event.sequence_number < 0 ? kNone : event.sequence_number);
        names.insert(event.name);
        num_steps += event.name.find("Step#") != std::string::npos;
      }
    }

    const Profile profile = Read(TextOf(events));
    const auto add = [&](const auto& activity, const std::string& name, int64_t number, bool is_kernel) {
      int64_t called = -1, call = -1, op = -1;
      if (activity.launch != kNone && profile.launches[activity.launch].thread != kNone) {
        const Profile::Launch& launch = profile.launches[activity.launch];
        called = launch.start;
        call = 1'000'000 * profile.threads[launch.thread].tid + launch.nanoseconds;
        const Profile::RangeOfLaunch& of = profile.range_of_launch[activity.launch];
        if (of.thread != kNone)
          op =
              10'000'000 * profile.threads[of.thread].tid + profile.threads[of.thread].ranges[of.range].start;
      }
      found[is_kernel].emplace(activity.start, activity.end, name, activity.device, activity.stream, number,
                               called, call, op);
    };
    for (const Profile::Kernel& kernel : profile.kernels) {
      int64_t sizes = 0;
      for (const auto& of :
           {profile.geometries[kernel.geometry].grid, profile.geometries[kernel.geometry].block})
        for (const int64_t size : of) sizes = 10 * sizes + size;
      add(kernel, profile.kernel_names[kernel.name], sizes, true);
      num_in_graphs -= kernel.in_graph;
    }
    EXPECT_EQ(num_in_graphs, 0) << trial;
    for (const Profile::Transfer& transfer : profile.transfers)
      add(transfer, profile.transfer_names[transfer.name], transfer.bytes, false);
    EXPECT_EQ(found[0], expected[0]) << trial;
    EXPECT_EQ(found[1], expected[1]) << trial;
    const auto is_earlier = [](const auto& a, const auto& b) { return a.start < b.start; };
    EXPECT_TRUE(std::is_sorted(profile.kernels.begin(), profile.kernels.end(), is_earlier));
    EXPECT_TRUE(std::is_sorted(profile.transfers.begin(), profile.transfers.end(), is_earlier));
    int64_t num_ranges = 0;
    for (const Profile::Thread& thread : profile.threads) {
      num_ranges += static_cast<int64_t>(thread.ranges.size());
      read_threads.insert(thread.tid);
      for (size_t i = 0; i < thread.ranges.size(); ++i) {
        const Profile::Range& range = thread.ranges[i];
        const std::string& name = profile.labels[range.label].text;
        read_ranges[thread.tid].emplace_back(range.start, range.end, name, range.sequence_number);
      }
    }
    EXPECT_EQ(read_ranges, ranges) << trial;
    EXPECT_EQ(read_threads, threads) << trial;
    EXPECT_EQ(profile.threads.size(), threads.size()) << trial;
    EXPECT_EQ(profile.launches.size(), launches.size()) << trial;
    EXPECT_EQ(profile.num_ranges, num_ranges);
    EXPECT_EQ(profile.labels.size(), names.size());
    EXPECT_EQ(profile.num_steps, num_steps);
    EXPECT_EQ(profile.first_time, first);
    EXPECT_EQ(profile.last_time, last);
    EXPECT_EQ(profile.rank, 7);
    for (const Profile::Kernel& kernel : profile.kernels) EXPECT_EQ(kernel.process, 0);
    ASSERT_EQ(profile.processes.size(), 1u);
    EXPECT_EQ(profile.processes[0].rank, 7);
    std::vector<std::string> notes;
    const auto note = [&](int64_t count, const char* what) {
      if (count > 0) notes.push_back(absl::StrCat(count, what));
    };
    note(num_negative, " events end before they begin");
    note(num_early, " kernels and copies begin before the call");
    note(num_duplicates, " calls have a correlation id that another one has");
    note(num_duplicate_ops, " ops have an External id that another one has");
    note(static_cast<int64_t>(without_call.size()), " launches are not in the trace");
    note(static_cast<int64_t>(graphs.size() - graphs_that_ran.size()),
         " launches of graphs have no kernels in the trace");
    note(num_large, " ops have a sequence number beyond 32 bits");
    ASSERT_EQ(profile.notes.size(), notes.size()) << ::testing::PrintToString(profile.notes);
    for (size_t i = 0; i < notes.size(); ++i) EXPECT_THAT(profile.notes[i], ::testing::StartsWith(notes[i]));
  }
}

TEST(KinetoProfile, NamesRanksAndDevicesAreTheHeaders) {
  std::vector<Written> events(2);
  for (Written& event : events) event.category = "cpu_op";
  events[1].thread = 2;
  const Profile profile = Read(
      R"({"ph":"M","name":"process_name","pid":9,"args":{"name":"python"}},)"
      R"({"ph":"i","cat":"cpu_op","name":"no range","pid":9,"tid":3,"ts":1},)"
      R"({"ph":"X","cat":"ac2g","name":"an arrow","pid":9,"tid":4,"ts":1},)"
      R"({"ph":"X","cat":"Trace","name":"the whole","pid":9,"tid":5,"ts":1},)"
      R"({"ph":"M","name":"thread_name","pid":9,"tid":2,"args":{"name":"backward"}},)"
      R"({"ph":"M","name":"process_labels","pid":9,"tid":2,"args":{"name":"CPU"}},)"
      R"({"ph":"M","name":"thread_name","pid":8,"tid":1,"args":{"name":"of another"}},)" +
          TextOf(events) + R"(,{"ph":"X","cat":"cpu_op","name":"x","ts":1})" +
          R"(,{"ph":"X","cat":"cpu_op","name":"x","ts":1,"pid":8,"tid":1})",
      R"("baseTimeNanoseconds":1000,"distributedInfo":{"rank":3},"deviceProperties":[{"id":2,"name":"GPU","numSms":7,)"
      R"("computeMajor":9,"computeMinor":1},{"name":"first"}])");
  EXPECT_EQ(profile.schema, "torch.profiler");
  EXPECT_EQ(profile.rank, 3);
  EXPECT_EQ(profile.begin_unix_nanoseconds, 1000);
  ASSERT_EQ(profile.processes.size(), 1u);
  EXPECT_EQ(profile.processes[0].name, "python");
  EXPECT_EQ(profile.processes[0].rank, 3);
  std::vector<std::string> threads;
  for (const Profile::Thread& thread : profile.threads)
    threads.push_back(absl::StrCat(thread.tid, thread.name));
  EXPECT_THAT(threads, ElementsAre("1", "2backward", "0", "1of another"));
  const Profile::Device& device = profile.devices.at(2);
  EXPECT_EQ(device.name, "GPU");
  EXPECT_THAT((std::vector<int>{device.sm_count, device.compute_major, device.compute_minor}),
              ElementsAre(7, 9, 1));
  EXPECT_EQ(profile.devices.at(0).name, "first");
  EXPECT_EQ(Read("{}", R"("distributedInfo":{"rank":0})").rank, 0);
}

TEST(KinetoProfile, TracesOfCallsOrKernelsAloneHaveAProcess) {
  EXPECT_EQ(Read(TextOf({{"cuda_runtime", "cudaLaunchKernel", 1, 1, 1, 4}})).processes.at(0).pid, 9);
  const Profile kernels = Read(R"({"ph":"X","cat":"kernel","name":"k","ts":1,"args":{"grid":[1,2,3]}})");
  EXPECT_EQ(kernels.processes.size(), 1u);
  EXPECT_THAT(kernels.geometries.at(0).grid, ElementsAre(0, 0, 0)) << "blocks are not told";
}

std::string ToText(const Profile::CollectiveKind& kind) {
  return absl::StrCat(kind.name, " ", kind.dtype, " ", kind.in_elements, " ", kind.out_elements, " of ",
                      kind.group_size, ": ", kind.group, " ", kind.group_ranks, " ", kind.group_name());
}

// A collective is what its kernel says, else what its op says; the header tells the ranks of its group.
TEST(KinetoProfile, CollectivesAreOfTheirKernelAndElseOfTheirOp) {
  const auto told = [](int64_t elements, int64_t sequence_number) {
    return absl::StrCat(R"("Collective name":"allreduce","dtype":"Float","In msg nelems":)", elements,
                        R"(,"Out msg nelems":)", elements + 1,
                        R"(,"Group size":2,"Process Group Name":"g","Process Group Ranks":"[3,...]")",
                        sequence_number < 0 ? "" : absl::StrCat(R"(,"Seq":)", sequence_number));
  };
  // The ops tell their number in one of two ways, or in both.
  const std::string inputs = R"(,"Concrete Inputs":["","6"])";
  const std::pair<std::string, int64_t> ops[] = {
      {"", -1}, {told(100, 6), 6}, {told(100, -1) + inputs, 6}, {told(100, 0) + inputs, 0}};
  for (int choice = 0; choice < 2 * 3 * 2 * 4; ++choice) {
    const bool is_nccl = choice % 2 == 0, has_ids = choice / 24 == 0;
    const int kernel_tells = choice / 2 % 3;  // nothing, no number, 0
    const auto& [op, of_op] = ops[choice / 6 % 4];
    const auto event = [&](const std::string& category, const std::string& name, int64_t start,
                           const std::string& more) {
      Written event{category, name, start, 5};
      event.correlation = event.id = has_ids ? 4 : -1;
      event.more = more;
      return event;
    };
    const Profile profile =
        Read(TextOf({event("cpu_op", "record_param_comms", 1, op), event("kernel", "first", 40, ""),
                     event("kernel", is_nccl ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL" : "gemm", 20,
                           kernel_tells > 0 ? told(200, kernel_tells - 2) : "")}),
             R"("distributedInfo":{"rank":3,"pg_config":[
               {"pg_name":"g","pg_desc":"tp","pg_size":2,"ranks":)" +
                 std::string(is_nccl ? "[3,5]" : R"("[3,5]")") +
                 R"(},{"pg_name":"other","ranks":[9]},{"pg_name":"g"}]})");
    const bool has_op = !op.empty() && is_nccl && has_ids;
    const bool is_known = kernel_tells > 0 || has_op;
    ASSERT_EQ(profile.collectives.size(), is_known ? 1u : 0u) << choice;
    if (!is_known) continue;
    const Profile::Collective& collective = profile.collectives[0];
    EXPECT_EQ(collective.kernel, 0u);  // by start
    EXPECT_EQ(collective.sequence_number, kernel_tells == 2 ? 0 : has_op ? of_op : -1) << choice;
    EXPECT_EQ(
        ToText(profile.collective_kinds[collective.kind]),
        absl::StrCat("allreduce float32 ", kernel_tells > 0 ? "200 201" : "100 101", " of 2: g [3,5] tp"));
  }
}

// Returns the event with these arguments twice, and with each of them changed.
std::vector<Written> WithEachChanged(const Written& event,
                                     const std::vector<std::pair<std::string, std::string>>& same,
                                     const std::vector<std::string>& changed) {
  std::vector<Written> events(same.size() + 2, event);
  for (size_t i = 0; i < events.size(); ++i) {
    for (size_t k = 0; k < same.size(); ++k)
      absl::StrAppend(&events[i].more, k == 0 ? "" : ",", "\"", same[k].first,
                      "\":", i == k + 2 ? changed[k] : same[k].second);
  }
  return events;
}

TEST(KinetoProfile, CollectivesOfOneKindAreAlikeInAllThatIsTold) {
  // Two neighbours that are changed are the same as each other.
  const std::vector<Written> events =
      WithEachChanged({"kernel", "nccl"},
                      {{"Collective name", R"("a")"},
                       {"dtype", R"("Float")"},
                       {"Process Group Name", R"("1")"},
                       {"Process Group Ranks", R"("2")"},
                       {"In msg nelems", "1"},
                       {"Out msg nelems", "2"},
                       {"Group size", "11"}},
                      {R"("b")", R"("Half")", R"("12")", R"("22")", "12", "22", "211"});
  const Profile profile = Read(TextOf(events));
  std::vector<uint32_t> kinds;
  for (const Profile::Collective& collective : profile.collectives) kinds.push_back(collective.kind);
  EXPECT_THAT(kinds, ElementsAre(0, 0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(profile.collective_kinds.size(), 8u);
  // A fact that no event tells stays unknown; an event's own description goes before the header's.
  Written barrier{"kernel", "nccl"};
  barrier.more = R"("Collective name":"barrier","Process Group Name":"g","Process Group Description":"own")";
  EXPECT_EQ(ToText(Read(TextOf({barrier}),
                        R"("distributedInfo":{"pg_config":[{"pg_name":"g","pg_desc":"tp","ranks":[3]}]})")
                       .collective_kinds.at(0)),
            "barrier  -1 -1 of -1: g [3] own");
}

TEST(KinetoProfile, FramesThatTellNothingAreNoRanges) {
  std::vector<Written> events;
  for (int64_t twice = 0; twice < 2; ++twice) {
    for (const char* const frame :
         {"torch/x.py(3): f", "<built-in method run>", "", "train.py(7): main", "nn.Module: Linear_0"}) {
      Written& event = events.emplace_back();
      event.category = "python_function";
      event.name = frame;
      event.start = static_cast<int64_t>(events.size());
    }
  }
  const Profile profile = Read(TextOf(events));
  ASSERT_EQ(profile.threads.size(), 1u);
  std::vector<std::string> told;
  for (size_t i = 0; i < profile.threads[0].ranges.size(); ++i) {
    const kernels::OpLabel& label = profile.labels[profile.threads[0].ranges[i].label];
    told.push_back(absl::StrCat(label.text, label.source, " ", static_cast<int>(label.kind)));
  }
  EXPECT_THAT(told, ElementsAre("train.py:7 4", "Linear_0 3", "train.py:7 4", "Linear_0 3"));
  EXPECT_EQ(profile.labels.size(), 2u);
}

TEST(KinetoProfile, CollectivesOfTheHostAreOfTheOneGroupThatIsTold) {
  std::vector<Written> events;
  for (const int start : {200, 100, 300}) {
    // The later one begins, the earlier it ends.
    events.push_back(
        {"user_annotation", start == 300 ? "mpi:all_reduce" : "gloo:all_reduce", start, 1000 - 3 * start});
    events.back().more = absl::StrCat(R"("Input Dims":[[],[10,)", start, R"(]],"Input type":["","float"])");
  }
  events.push_back({"user_annotation", "gloo:barrier", 400});
  events.push_back({"user_annotation", "gloo:barrier", 500});
  const std::string world = R"({"pg_name":"0","pg_desc":"default_pg","pg_size":4})";
  for (const bool has_one : {true, false}) {
    const Profile profile =
        Read(TextOf(events), R"("distributedInfo":{"rank":1,"pg_config":[)" + world +
                                 (has_one ? "" : R"(,{"pg_name":"1","pg_size":2})") + "]}");
    ASSERT_EQ(profile.host_collectives.size(), 5u);
    EXPECT_EQ(profile.collective_kinds.size(), 4u);
    EXPECT_EQ(profile.collective_kinds[profile.host_collectives[4].kind].in_elements, -1);
    for (int64_t i = 0; i < 3; ++i) {
      const Profile::HostCollective& collective = profile.host_collectives[static_cast<size_t>(i)];
      const Profile::CollectiveKind& kind = profile.collective_kinds[collective.kind];
      EXPECT_EQ(collective.start, 100'000 * (i + 1));
      EXPECT_EQ(collective.end, 1'000'000 - 200'000 * (i + 1));
      EXPECT_EQ(ToText(kind), absl::StrCat("all_reduce float32 ", 1000 * (i + 1), " ", 1000 * (i + 1), " of ",
                                           has_one ? "4: 0  default_pg" : "-1:   "));
    }
  }
}

// Old traces have arrows from forward to backward instead of sequence numbers.
TEST(KinetoProfile, ArrowsAreSequenceNumbersWhereThereAreNone) {
  for (const int64_t id : {int64_t{-2}, int64_t{0}, int64_t{5}, int64_t{1} << 32}) {
    for (const int64_t told : {-1, 3}) {
      for (const int64_t thread : {1, 2}) {
        std::vector<Written> events = {{"cpu_op", "x", 20},
                                       {"cpu_op", "x", 1, 1, 2},
                                       {"cpu_op", "x", 20, 1, 2},
                                       {"user_annotation", "y", 20, 1, 2}};
        events[0].sequence_number = told;
        const Profile profile =
            Read(absl::StrCat(TextOf(events), R"(,{"ph":"f","cat":"fwdbwd","name":"fwdbwd","pid":9,"tid":)",
                              thread, R"(,"ts":20,"id":)", id, "}"));
        std::vector<uint32_t> numbers;
        for (const Profile::Thread& of : profile.threads)
          for (const Profile::Range& range : of.ranges) numbers.push_back(range.sequence_number);
        const uint32_t arrow = told >= 0 || id < 0 || id >= kNone ? kNone : static_cast<uint32_t>(id);
        EXPECT_THAT(numbers, ElementsAre(told >= 0     ? 3u
                                         : thread == 1 ? arrow
                                                       : kNone,
                                         kNone, thread == 2 ? arrow : kNone, kNone));
      }
    }
  }
}

TEST(KinetoProfile, AnOpsLabelHoldsAllThatIsSaidOfIt) {
  const std::vector<std::pair<std::string, std::string>> same = {
      {"Input Dims", "[[2,3],[]]"},
      {"Input type", R"(["float","Scalar"])"},
      {"Input Strides", "[[3,1],[]]"},
      {"Concrete Inputs", R"(["","7"])"},
      {"Call stack", R"("torch/x.py(1): g;model.py(7): f")"},
      {"Module Hierarchy", "\"SELF(Net)\""},
      {"kernel_flop", "5"},
      {"kernel_num_gb", "0.5"}};
  std::vector<Written> events = WithEachChanged(
      {"cpu_op", "aten::add"}, same,
      {"[[2,4],[]]", R"(["double","Scalar"])", "[[4,1],[]]", R"(["","8"])", R"("a")", R"("b")", "6", "6"});
  events.push_back(WithEachChanged({"cpu_op", "aten::add"}, {same[0], same[1], same[2]}, {"", "", ""})[0]);
  const Profile profile = Read(TextOf(events));
  std::vector<uint32_t> labels;
  for (const Profile::Range& range : profile.threads.at(0).ranges) labels.push_back(range.label);
  EXPECT_THAT(labels, ElementsAre(0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  const kernels::OpLabel& label = profile.labels[0];
  const std::string told[] = {label.shapes, label.types, label.strides, label.inputs};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(told[i], same[i].second) << same[i].first;
  EXPECT_EQ(label.kind, kernels::OpLabel::Kind::kOp);
  EXPECT_EQ(absl::StrCat(label.text, " ", label.source, " ", label.module_hierarchy),
            "aten::add model.py:7 SELF(Net)");
  EXPECT_EQ(label.description.op, "add");
  std::string arguments;
  for (const OpArgument& argument : label.description.arguments)
    absl::StrAppend(&arguments, argument.position, argument.name, "[", absl::StrJoin(argument.shape, ", "),
                    "]", "=", argument.numbers.empty() ? 0 : argument.numbers[0], " ");
  EXPECT_EQ(arguments, "0[2, 3]=0 1[]=7 -1kernel_flop[]=5 -1kernel_num_gb[]=0.5 ");
  EXPECT_FALSE(label.description.tensors_only);
  EXPECT_TRUE(profile.labels[9].description.tensors_only);
}

TEST(KinetoProfile, EventsWithoutATimeAreCounted) {
  EXPECT_THAT(
      Read(R"({"ph":"X","cat":"kernel","name":"when"},{"ph":"X","cat":"kernel","name":"k","ts":1})").notes,
      ElementsAre(HasSubstr("1 events have no time")));
}

}  // namespace
}  // namespace ott::kineto
