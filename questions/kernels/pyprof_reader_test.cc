#include "ott/questions/kernels/pyprof_reader.h"

#include <cstdio>
#include <optional>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
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
  std::string line(4000, '\0');
  line.resize(static_cast<size_t>(std::snprintf(line.data(), line.size(), kKernel, duration, marker, seq,
                                                number, sub, direction, tid, name)));
  return line;
}

std::string Dictionaries() {
  return Line(100, kMarker, "aten::linear, seq = 5", 5, 0, "fprop", 1, "volta_sgemm_128x64_tn") +
         Line(10, kMarker, "aten::linear, seq = 5", 5, 1, "fprop", 1, "add_bias") +
         Line(90, kMarker, "aten::linear, seq = 6", 6, 0, "fprop", 1, "volta_sgemm_128x64_tn") +
         Line(80, "[]", "AddmmBackward, seq = 5", 5, 0, "bprop", 2, "volta_sgemm_128x64_nt");
}

std::string TableOf(const std::string& text, const std::string& columns) {
  std::istringstream lines(text);
  absl::StatusOr<Profile> profile = ReadPyProf(lines, "net.dict");
  EXPECT_TRUE(profile.ok()) << profile.status();
  const KernelJoin join = JoinKernels(&*profile);
  const ProfileRows rows(*profile, join, std::nullopt);
  ProfTableOptions options;
  options.columns = columns;
  std::string table;
  const absl::Status written = WriteProfTable(rows, options, [&](std::string_view part) { table += part; });
  return written.ok() ? table : std::string(written.message());
}

TEST(PyProf, DictionariesAreKernelsWithTheirOpsAndFlops) {
  // 2 * 32 * 64 * 128 FLOPs.
  EXPECT_EQ(TableOf(Dictionaries(),
                    "idx,seq,tid,layer,trace,dir,sub,mod,op,sil,flops,grid,block,device,stream,latency"),
            "idx seq tid layer trace dir sub mod op sil flops grid block device stream latency\n"
            "1 5 1 encoder main.py:12 fprop 0 torch.nn.functional linear 100 524288 1,2,3 32,1,1 0 7 -\n"
            "2 5 1 encoder main.py:12 fprop 1 torch.nn.functional linear 10 - 1,2,3 32,1,1 0 7 -\n"
            "3 6 1 encoder main.py:12 fprop 0 torch.nn.functional linear 90 524288 1,2,3 32,1,1 0 7 -\n"
            "4 5 2 encoder main.py:12 bprop 0 torch.nn.functional linear 80 524288 1,2,3 32,1,1 0 7 -\n");
  // The first kernel of a call has number 0, whatever was before.
  const auto kernel = [](int sub) { return Line(1, kMarker, "a, seq = 5", 5, sub, "fprop", 1, "k"); };
  EXPECT_EQ(TableOf(kernel(-1) + kernel(0) + kernel(1), "sub"), "sub\n0\n0\n1\n");
}

TEST(PyProf, OtherLinesAreCountedOrRefused) {
  EXPECT_TRUE(IsPyProfDictionary(Line(1, "[]", "a", 0, 0, "fprop", 1, "k")));
  EXPECT_FALSE(IsPyProfDictionary("{'op': 'linear', 'sil': 7}"));
  EXPECT_FALSE(IsPyProfDictionary("[1]"));
  std::istringstream some(Dictionaries() + "none\n\n");
  const absl::StatusOr<Profile> profile = ReadPyProf(some, "net.dict");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->kernels.size(), 4u);
  EXPECT_THAT(profile->notes, testing::Contains(HasSubstr("1 lines are no dictionaries")));
  std::istringstream none("none\n{'a': 1}\n");
  EXPECT_EQ(ReadPyProf(none, "net.dict").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ott::kernels
