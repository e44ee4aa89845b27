#include "ott/questions/saved/ideal_timeline.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/trace/trace_file.h"
#include "ott/questions/saved/scenario.h"

namespace ott::saved {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;
// The first track of a rank; communication has one more track for each kind, as it may overlap.
constexpr int64_t kComputeTrack = 0;

int64_t ToNanoseconds(double seconds) { return std::llround(seconds * kNanosecondsPerSecond); }

class Writer {
 public:
  Writer(const ReplayJob& job, TraceFile& file) : job_(job), file_(file) {}

  void Write() {
    AddNames();
    std::vector<double> own = Own(Scenario::kMeasured);
    std::vector<double> delays;
    for (const ReplayJob::Operation& operation : job_.operations) delays.push_back(operation.delay);
    const DependencyGraph::Times measured = job_.graph.ReplayInFull(own, delays);
    own = Own(Scenario::kIdeal);
    const DependencyGraph::Times ideal = job_.graph.ReplayInFull(own, {});
    double begin = 0;
    for (int step = 0; step < job_.graph.num_steps(); ++step) {
      begin_ = begin;
      const auto [first, last] = job_.graph.OperationsOf(step);
      for (int32_t i = first; i < last; ++i) {
        AddOperation(step, i, 2 * job_.operations[i].rank, measured);
        AddOperation(step, i, 2 * job_.operations[i].rank + 1, ideal);
        begin = std::max({begin, begin_ + measured.end[i], begin_ + ideal.end[i]});
      }
      for (const int32_t i : job_.graph.CriticalPath(step, measured)) AddCritical(step, i, measured);
    }
  }

 private:
  std::vector<double> Own(Scenario::Times times) const {
    std::vector<double> own;
    for (const ReplayJob::Operation& operation : job_.operations) {
      own.push_back(times == Scenario::kIdeal ? operation.ideal : operation.own);
    }
    return own;
  }

  void AddNames() {
    std::vector<bool> is_used(job_.kinds.size());
    for (const ReplayJob::Operation& operation : job_.operations) is_used[operation.kind] = true;
    for (size_t i = 0; i < 2 * job_.ranks.size(); ++i) {
      const ReplayJob::Rank& rank = job_.ranks[i / 2];
      const std::string stage = rank.stage < 0 ? "" : absl::StrCat(", stage ", rank.stage);
      const auto process = static_cast<int64_t>(i);
      file_.Add(TraceProcess{process, absl::StrCat("rank ", rank.rank, i % 2 == 0 ? " measured" : " ideal"),
                             absl::StrCat(rank.host, stage), process + 1});
      file_.Add(TraceTrack{process, kComputeTrack, "work", 0});
      for (size_t kind = 0; kind < job_.kinds.size(); ++kind) {
        if (!is_used[kind] || !job_.kinds[kind].communicates) continue;
        const auto track = static_cast<int64_t>(kind) + 1;
        file_.Add(TraceTrack{process, track, job_.kinds[kind].name, track});
      }
    }
    file_.Add(TraceProcess{CriticalProcess(), "critical path", "", 0});
    file_.Add(TraceTrack{CriticalProcess(), 0, "what the end of the measured run waited for", 0});
  }

  int64_t CriticalProcess() const { return static_cast<int64_t>(2 * job_.ranks.size()); }

  TraceEvent Event(int step, int32_t i, const DependencyGraph::Times& times) {
    TraceEvent event;
    event.name = job_.kinds[job_.operations[i].kind].name;
    event.category = job_.kinds[job_.operations[i].kind].operation;
    event.start = ToNanoseconds(begin_ + times.start[i]);
    event.duration = std::max<int64_t>(ToNanoseconds(begin_ + times.end[i]) - event.start, 0);
    args_ = absl::StrCat("{\"step\": ", job_.steps[step].number, "}");
    event.args = args_;
    return event;
  }

  void AddOperation(int step, int32_t i, int64_t process, const DependencyGraph::Times& times) {
    TraceEvent event = Event(step, i, times);
    const int32_t kind = job_.operations[i].kind;
    event.process = process;
    event.track = job_.kinds[kind].communicates ? kind + 1 : kComputeTrack;
    file_.Add(event);
  }

  void AddCritical(int step, int32_t i, const DependencyGraph::Times& times) {
    TraceEvent event = Event(step, i, times);
    event.type = TraceEvent::Type::kOverlappingSlice;
    const std::string name = job_.NameOf(i);
    event.name = name;
    event.process = CriticalProcess();
    file_.Add(event);
  }

  const ReplayJob& job_;
  TraceFile& file_;
  // The begin of the step, in seconds.
  double begin_ = 0;
  std::string args_;
};

}  // namespace

absl::Status WriteIdealTimeline(const ReplayJob& job, const std::string& path) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<TraceFile> file, TraceFile::Create(path, "{}"));
  Writer(job, *file).Write();
  return file->Commit();
}

}  // namespace ott::saved
