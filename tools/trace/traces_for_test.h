// Run directories with traces, for tests.

#ifndef OTT_TOOLS_TRACE_TRACES_FOR_TEST_H_
#define OTT_TOOLS_TRACE_TRACES_FOR_TEST_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/trace/trace_file.h"
#include "ott/core/trace/write_trace.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/run/training/rank_trace.h"

namespace ott::trace {

// Returns a window of a millisecond, whose clock is `offset` behind rank 0's.
inline TraceInfo InfoForTest(int rank, int64_t begin, int64_t offset, int64_t error_bound) {
  TraceInfo info;
  info.set_rank(rank);
  info.set_host("node" + std::to_string(rank));
  info.set_begin_nanoseconds(begin);
  info.set_end_nanoseconds(begin + 1'000'000);
  info.mutable_clock()->set_begin_nanoseconds(begin + offset);
  info.mutable_clock()->set_end_nanoseconds(begin + offset + 1'000'000);
  info.mutable_clock()->set_error_bound_nanoseconds(error_bound);
  return info;
}

inline TraceEvent SliceForTest(std::string_view name, int64_t start, int64_t duration, int64_t track = 1) {
  TraceEvent event;
  event.name = name;
  event.category = track == 1 ? "stopwatch" : "device";
  event.start = start;
  event.duration = duration;
  event.track = track;
  return event;
}

class RunWithTraces : public ::testing::Test {
 protected:
  RunWithTraces() {
    RunInfo info;
    info.set_world_size(2);
    EXPECT_TRUE(MakeDirectories(run_dir_).ok());
    EXPECT_TRUE(WriteRunInfo(run_dir_, info).ok());
  }

  std::string TracePath(int rank, int64_t window = 1) const {
    return RankDirectory(run_dir_, rank) + "/" + TraceFileName(window, false);
  }

  void Write(const TraceInfo& info, const std::vector<TraceEvent>& events, int64_t window = 1) const {
    ASSERT_TRUE(MakeDirectories(RankDirectory(run_dir_, info.rank())).ok());
    std::string json = ProtoToJson(info, JsonLayout::kOneLine);
    json.pop_back();
    const auto file = TraceFile::Create(TracePath(info.rank(), window), json).value();
    file->Add(ProcessOf(info));
    file->Add(TraceTrack{info.rank(), 1, "main", 0});
    for (TraceEvent event : events) {
      event.process = info.rank();
      file->Add(event);
    }
    ASSERT_TRUE(file->Commit().ok());
  }

  const std::string run_dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

}  // namespace ott::trace

#endif  // OTT_TOOLS_TRACE_TRACES_FOR_TEST_H_
