#include "ott/questions/kernels/pyprof_reader.h"

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/kernel_profile/label_table.h"
#include "ott/questions/kernels/kernel_join.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/profile_rows.h"

namespace ott::kernels {
namespace {

using ::testing::HasSubstr;

// The lines are as `pyprof.parse` prints them: a linear layer of two kernels, the same again, and the first
// one's backward.
constexpr char kKernel[] =
    "{'kShortName': 'volta_sgemm', 'kDuration': %d, 'layer': ['encoder'], 'trace': ['main.py:12'], "
    "'reprMarkers': [], 'marker': %s, 'seqMarker': ['%s'], 'seqId': [%d], 'subSeqId': %d, 'altSeqId': [], "
    "'dir': '%s', 'mod': ['torch.nn.functional'], 'op': ['linear'], 'tid': %d, 'device': 0, 'stream': 7, "
    "'grid': (1, 2, 3), 'block': (32, 1, 1), 'kLongName': '%s'}\n";
constexpr char kMarker[] = R"(["{'mod': 'torch.nn.functional', 'op': 'linear', 'args': [)"
                           R"({'name': '', 'type': 'tensor', 'shape': (32, 64), 'dtype': 'float32'}, )"
                           R"({'name': '', 'type': 'tensor', 'shape': (128, 64), 'dtype': 'float32'}]}"])";

std::string Line(int duration, const char* marker, const char* seq, int number, int sub,
                 const char* direction, int tid, const char* name) {
  return absl::StrFormat(kKernel, duration, marker, seq, number, sub, direction, tid, name);
}

TEST(PyProf, DictionariesAreKernelsWithTheirOpsAndFlops) {
  std::istringstream lines(Line(100, kMarker, "aten::linear, seq = 5", 5, 0, "fprop", 1, "volta_sgemm") +
                           Line(10, kMarker, "aten::linear, seq = 5", 5, 1, "fprop", 1, "add_bias") +
                           Line(90, kMarker, "aten::linear, seq = 6", 6, 0, "fprop", 1, "volta_sgemm") +
                           Line(80, "[]", "AddmmBackward, seq = 5", 5, 0, "bprop", 2, "volta_sgemm"));
  Profile profile = ReadPyProf(lines, "net.dict").value();
  const KernelJoin join = JoinKernels(&profile);
  ProfTableOptions options;
  options.columns =
      "idx,seq,tid,layer,trace,dir,sub,mod,op,sil,params,flops,grid,block,device,stream,latency";
  std::string table;
  ASSERT_TRUE(WriteProfTable(ProfileRows(profile, join, std::nullopt), options, [&](std::string_view part) {
                table += part;
              }).ok());
  // 2 * 32 * 64 * 128 FLOPs.
  EXPECT_EQ(table,
            "idx seq tid layer trace dir sub mod op sil params flops grid block device stream latency\n"
            "1 5 1 encoder main.py:12 fprop 0 torch.nn.functional linear 100 M=128,N=32,K=64,float32 524288 "
            "1,2,3 32,1,1 0 7 -\n"
            "2 5 1 encoder main.py:12 fprop 1 torch.nn.functional linear 10 M=128,N=32,K=64,float32 - "
            "1,2,3 32,1,1 0 7 -\n"
            "3 6 1 encoder main.py:12 fprop 0 torch.nn.functional linear 90 M=128,N=32,K=64,float32 524288 "
            "1,2,3 32,1,1 0 7 -\n"
            "4 5 2 encoder main.py:12 bprop 0 torch.nn.functional linear 80 M=128,N=32,K=64,float32 524288 "
            "1,2,3 32,1,1 0 7 -\n");
}

// A value as a dictionary has it ("": it lacks it), and what is read from it: texts of ranges, or a number.
struct PyProfValue {
  std::string written;
  std::vector<std::string> texts = {};
  int64_t number = 0;
};

struct PyProfKernel {
  std::vector<std::string> texts;  // of the ranges around it
  int64_t tid, sub, nanoseconds, stream, device;
  std::string name, grid, block;

  std::string Describe(int64_t start) const {
    return absl::StrCat(name, " of ", tid, ": ", start, " to ", start + nanoseconds, " ", grid, " ", block,
                        " on ", device, " ", stream, "\n");
  }
};

// Holds what the rules make of kernels: the words of kernels and of their ranges, by thread.
struct PyProfCapture {
  std::string kernels;
  std::map<int64_t, std::string> ranges;
  int64_t num_ranges = 0, end = 0;

  explicit PyProfCapture(const std::vector<PyProfKernel>& all) {
    LabelTable labels;
    for (size_t first = 0, last = 0; first < all.size(); first = last) {
      for (last = first + 1; last < all.size(); ++last) {
        const PyProfKernel &before = all[last - 1], &kernel = all[last];
        if (kernel.sub <= 0 || kernel.sub != before.sub + 1 || kernel.tid != before.tid ||
            kernel.texts != before.texts)
          break;
      }
      // Ranges begin one after the other before the first kernel of their call, and end so after its last.
      const std::vector<std::string>& texts = all[first].texts;
      const auto depth = static_cast<int64_t>(texts.size());
      const int64_t begin = end;
      end += depth;
      for (size_t i = first; i < last; ++i) {
        kernels += all[i].Describe(end);
        end += all[i].nanoseconds;
      }
      std::string& of_thread = ranges[all[first].tid];
      for (int64_t i = 0; i < depth; ++i) {
        const auto [label, number] = labels.Find(texts[static_cast<size_t>(i)]);
        absl::StrAppend(&of_thread, label, "#", number < kNone ? number : kNone, ": ", begin + i, " to ",
                        end + depth - i, "\n");
      }
      num_ranges += depth;
      end += depth + 1;
    }
  }
};

TEST(PyProf, KernelsOfAnyDictionariesRunOneAfterTheOther) {
  using Values = std::vector<PyProfValue>;
  const std::vector<std::pair<std::string, Values>> lists = {
      {"layer", {{""}, {"[]"}, {"'a'", {"layer:a"}}, {"['a', 'b']", {"layer:a", "layer:b"}}}},
      {"trace",
       {{""},
        {R"(['a.py:"1"', '{"traceMarker": []}'])",
         {R"({'traceMarker': ["a.py:\"1\""]})", R"({"traceMarker": []})"}}}},
      {"reprMarkers", {{""}, {R"(['{"mod": "m", "strRepr": "M"}'])", {R"({"mod": "m", "strRepr": "M"})"}}}},
      {"marker", {{"None"}, {R"(['{"mod": "m", "op": "mm"}'])", {R"({"mod": "m", "op": "mm"})"}}}},
      {"seqMarker",
       {{""},
        {"['mm, seq = 0']", {"mm, seq = 0"}},
        {"['mm, seq = 4294967294', 'mm, seq = 4294967295', 'mm, seq = 4294967297']",
         {"mm, seq = 4294967294", "mm, seq = 4294967295", "mm, seq = 4294967297"}}}},
  };
  const Values numbers = {{"0", {}, 0}, {"1", {}, 1}, {"2.5", {}, 2}, {"7", {}, 7}};
  const auto with = [&](PyProfValue value) {
    Values values = numbers;
    values.push_back(std::move(value));
    return values;
  };
  const Values sizes = {
      {"(1, 2, 3)", {"1,2,3"}}, {"[4, 5, 6]", {"4,5,6"}}, {"", {"0,0,0"}}, {"(7, 8)", {"0,0,0"}}};
  std::mt19937 random(1);
  for (int trial = 0; trial < 1000; ++trial) {
    std::string text;
    std::vector<PyProfKernel> all;
    std::set<std::string> names, geometries;
    int64_t num_bad = 0;
    std::vector<std::string> written_lists(lists.size());
    for (size_t i = random() % 10; i > 0; --i) {
      if (random() % 6 == 0) {
        const char* const other[] = {"",
                                     " \t\r",
                                     "none",
                                     "[1]",
                                     "{'kDuration': 1}",
                                     "{'kDuration': 1, 'kLongName': ''}",
                                     "{'kDuration': '1', 'kLongName': 'k'}"};
        const size_t line = random() % 7;
        num_bad += line > 1;
        absl::StrAppend(&text, other[line], "\n");
      }
      std::string line = "{";
      const auto write = [&](const std::string& name, const std::string& value) {
        if (!value.empty()) absl::StrAppend(&line, line == "{" ? "'" : ", '", name, "': ", value);
      };
      const auto any = [&](const std::string& name, const Values& values) -> PyProfValue {
        const PyProfValue& value = values[random() % values.size()];
        write(name, value.written);
        return value;
      };
      const bool repeats = !all.empty() && random() % 4 > 0;
      PyProfKernel kernel;
      if (repeats) kernel.texts = all.back().texts;
      for (size_t list = 0; list < lists.size(); ++list) {
        if (repeats) {
          write(lists[list].first, written_lists[list]);
          continue;
        }
        const PyProfValue value = any(lists[list].first, lists[list].second);
        written_lists[list] = value.written;
        kernel.texts.insert(kernel.texts.end(), value.texts.begin(), value.texts.end());
      }
      kernel.tid = any("tid", {{"", {}, 0}, {"3", {}, 3}, {"3", {}, 3}, {"3", {}, 3}}).number;
      const int64_t next = all.empty() ? 0 : all.back().sub + 1;
      kernel.sub = any("subSeqId", {{absl::StrCat(next), {}, next},
                                    {absl::StrCat(next), {}, next},
                                    {"", {}, 0},
                                    {"-1", {}, -1},
                                    {"1", {}, 1}})
                       .number;
      kernel.nanoseconds = any("kDuration", {{"0", {}, 0},
                                             {"5.5", {}, 5},
                                             {"70", {}, 70},
                                             {"-1", {}, 0},
                                             {"9e15", {}, 0},
                                             {"8e15", {}, 8'000'000'000'000'000}})
                               .number;
      kernel.stream = any("stream", with({"", {}, -1})).number;
      kernel.device = any("device", with({"None", {}, -1})).number;
      kernel.name = any("kLongName", {{"'k'", {"k"}}, {"'k<1>'", {"k<1>"}}}).texts[0];
      kernel.grid = any("grid", sizes).texts[0];
      kernel.block = any("block", sizes).texts[0];
      names.insert(kernel.name);
      geometries.insert(absl::StrCat(kernel.grid, " ", kernel.block));
      all.push_back(kernel);
      absl::StrAppend(&text, line, "}\n");
    }

    std::istringstream in(text);
    std::string first;
    if (random() % 2 == 0) std::getline(in, first);
    const absl::StatusOr<Profile> read = ReadPyProf(in, "net.dict", first);
    ASSERT_EQ(read.ok(), !all.empty()) << read.status();
    if (all.empty()) continue;
    const Profile& profile = *read;
    const PyProfCapture expected(all);
    std::string kernels;
    for (size_t i = 0; i < profile.kernels.size(); ++i) {
      const Profile::Kernel& kernel = profile.kernels[i];
      ASSERT_EQ(kernel.launch, i);
      const Profile::Launch& launch = profile.launches.at(i);
      EXPECT_EQ(launch.start, kernel.start);
      EXPECT_EQ(launch.nanoseconds, kNone);
      const auto joined = [](const auto& of) { return absl::StrJoin(of, ","); };
      const Profile::Geometry& geometry = profile.geometries.at(kernel.geometry);
      const PyProfKernel told = {{},
                                 profile.threads.at(launch.thread).tid,
                                 0,
                                 kernel.end - kernel.start,
                                 kernel.stream,
                                 kernel.device,
                                 profile.kernel_names.at(kernel.name),
                                 joined(geometry.grid),
                                 joined(geometry.block)};
      kernels += told.Describe(kernel.start);
    }
    EXPECT_EQ(kernels, expected.kernels);
    std::map<int64_t, std::string> ranges;
    for (const Profile::Thread& thread : profile.threads) {
      std::string& of_thread = ranges[thread.tid];
      for (const Profile::Range& range : thread.ranges) {
        absl::StrAppend(&of_thread, range.label, "#", range.sequence_number, ": ", range.start, " to ",
                        range.end, "\n");
      }
    }
    EXPECT_EQ(ranges, expected.ranges);
    EXPECT_EQ(profile.threads.size(), ranges.size());
    EXPECT_EQ(profile.launches.size(), all.size());
    EXPECT_EQ(profile.kernel_names.size(), names.size());
    EXPECT_EQ(profile.geometries.size(), geometries.size());
    EXPECT_EQ(profile.num_ranges, expected.num_ranges);
    EXPECT_EQ(profile.last_time, expected.end);
    EXPECT_EQ(profile.processes.size(), 1u);
    std::vector<testing::Matcher<std::string>> notes = {HasSubstr("tell no times")};
    if (num_bad > 0)
      notes.push_back(absl::StrCat(num_bad, " lines are no dictionaries of PyProf and were left out"));
    EXPECT_THAT(profile.notes, testing::ElementsAreArray(notes));
    if (HasFailure()) FAIL() << text;
  }
}

TEST(PyProf, ADictionaryIsKnownByWhatPyProfWrites) {
  EXPECT_TRUE(IsPyProfDictionary(Line(1, "[]", "a", 0, 0, "fprop", 1, "k")));
  EXPECT_FALSE(IsPyProfDictionary("{'op': 'linear', 'sil': 7}"));
  EXPECT_FALSE(IsPyProfDictionary("[1]"));
  std::istringstream none("none\n{'a': 1}\n");
  EXPECT_EQ(ReadPyProf(none, "net.dict").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ott::kernels
