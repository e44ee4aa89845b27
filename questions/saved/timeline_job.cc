#include "ott/questions/saved/timeline_job.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/statistics/location.h"
#include "questions/saved/worker_step.h"

namespace ott::saved {
namespace {

using Type = OperationType;

// Beyond this, in seconds, a negative time is an error of the clocks or of the dependencies.
constexpr double kClockTolerance = 1e-2;

constexpr std::array<std::pair<Type, Type>, 2> kMessageTypes = {
    {{Type::kForwardSend, Type::kForwardReceive}, {Type::kBackwardSend, Type::kBackwardReceive}}};

bool Communicates(Type type) {
  switch (type) {
    case Type::kForwardCompute:
    case Type::kBackwardCompute:
    case Type::kOptimizer:
    case Type::kGc:
      return false;
    default:
      return true;
  }
}

// The ranks that wait for each other in an operation that is no message.
enum class Scope { kAlone, kReplicas, kEnds, kAll };

Scope ScopeOf(Type type) {
  switch (type) {
    case Type::kParamsAllGather:
    case Type::kGradsReduceScatter:
    case Type::kSeparateGradsAllReduce:
      return Scope::kReplicas;
    case Type::kEmbeddingGradsAllReduce:
      return Scope::kEnds;
    case Type::kClipMainGrad:
      return Scope::kAll;
    default:
      return Scope::kAlone;
  }
}

std::string OperationOf(Type type) {
  std::string name(OperationTypeName(type));
  if (absl::EndsWith(name, "-send") || absl::EndsWith(name, "-recv")) {
    return absl::StrCat(name.substr(0, name.find('-')), "-pp-comm");
  }
  return name;
}

class Maker {
 public:
  explicit Maker(Timeline timeline) : events_(std::move(timeline.events)), workers_(timeline.workers) {
    job_.notes = std::move(timeline.notes);
    job_.incomplete = timeline.incomplete;
  }

  absl::StatusOr<ReplayJob> Make() {
    DescribeJob();
    std::sort(events_.begin(), events_.end(), [](const Timeline::Event& a, const Timeline::Event& b) {
      return std::tie(a.step, a.worker, a.type, a.sequence, a.start) <
             std::tie(b.step, b.worker, b.type, b.sequence, b.start);
    });
    DropDuplicates();
    job_.operations.reserve(events_.size());
    for (size_t begin = 0; begin < events_.size();) {
      size_t end = begin;
      while (end < events_.size() && events_[end].step == events_[begin].step) ++end;
      AddStep(begin, end);
      begin = end;
    }
    NoteOddSteps();
    if (num_unpaired_ > 0) {
      job_.notes.push_back(
          absl::StrCat(num_unpaired_, " sends and receives without their partner: they wait for nobody"));
    }
    OTT_RETURN_IF_ERROR(job_.graph.Finish([this](int32_t operation) {
      const Timeline::Event& event = events_[operation];
      return absl::StrCat(job_.NameOf(operation), " (step ", event.step, ", seq_id ", event.sequence, ")");
    }));
    FindOwnTimes();
    FindDelays();
    FindIdealTimes();
    return std::move(job_);
  }

 private:
  void DescribeJob() {
    for (const Timeline::Worker& worker : workers_) {
      job_.ranks.push_back({worker.rank, worker.stage, worker.replica, ""});
      pipeline_.num_stages = std::max(pipeline_.num_stages, worker.stage + 1);
    }
    for (const Timeline::Event& event : events_) {
      pipeline_.num_chunks = std::max(pipeline_.num_chunks, event.chunk + 1);
      if (event.type == Type::kSeparateGradsAllReduce) pipeline_.overlaps_gradients = true;
    }
    for (int i = 0; i < kNumOperationTypes; ++i) {
      const auto type = static_cast<Type>(i);
      job_.kinds.push_back({std::string(OperationTypeName(type)), OperationOf(type), Communicates(type)});
    }
  }

  void DropDuplicates() {
    const auto is_same = [](const Timeline::Event& a, const Timeline::Event& b) {
      return std::tie(a.step, a.worker, a.type, a.sequence) == std::tie(b.step, b.worker, b.type, b.sequence);
    };
    const auto end = std::unique(events_.begin(), events_.end(), is_same);
    if (end == events_.end()) return;
    job_.notes.push_back(absl::StrCat(events_.end() - end,
                                      " operations not used: another has their rank, step, name and seq_id"));
    events_.erase(end, events_.end());
  }

  // Operations are numbered as the events are.
  void AddStep(size_t begin, size_t end) {
    job_.graph.AddStep();
    ReplayJob::Step& step = job_.steps.emplace_back();
    step.number = events_[begin].step;
    step.batch = step.number;
    double first = std::numeric_limits<double>::infinity();
    double last = -first;
    for (size_t i = begin; i < end; ++i) {
      job_.graph.AddOperation();
      first = std::min(first, events_[i].start);
      last = std::max(last, events_[i].start + events_[i].duration);
    }
    step.measured_seconds = last - first;
    for (size_t i = begin; i < end; ++i) {
      const Timeline::Event& event = events_[i];
      job_.operations.push_back({event.worker, static_cast<int32_t>(event.type), -1, event.start - first,
                                 event.start - first + event.duration});
    }
    messages_.clear();
    std::vector<bool> is_there(workers_.size());
    std::map<std::tuple<Scope, int32_t, int32_t, int32_t, int32_t>, std::vector<int32_t>> groups;
    for (size_t worker_begin = begin; worker_begin < end;) {
      size_t worker_end = worker_begin;
      while (worker_end < end && events_[worker_end].worker == events_[worker_begin].worker) ++worker_end;
      is_there[events_[worker_begin].worker] = true;
      AddWorker(worker_begin, worker_end);
      worker_begin = worker_end;
    }
    for (size_t worker = 0; worker < workers_.size(); ++worker) {
      if (is_there[worker]) continue;
      signatures_[workers_[worker].stage].push_back({nullptr, step.number, workers_[worker].rank, 0});
    }
    for (size_t i = begin; i < end; ++i) {
      const Timeline::Event& event = events_[i];
      const Timeline::Worker& worker = workers_[event.worker];
      const Scope scope = ScopeOf(event.type);
      if (scope == Scope::kAlone) continue;
      const int32_t of = scope == Scope::kReplicas ? worker.stage
                         : scope == Scope::kEnds   ? worker.replica
                                                   : 0;
      groups[{scope, static_cast<int32_t>(event.type), event.sequence, of,
              scope == Scope::kAll ? 0 : worker.tensor}]
          .push_back(static_cast<int32_t>(i));
    }
    for (const auto& [unused, members] : groups) {
      if (members.size() > 1) job_.graph.AddGroup(members);
    }
    PairMessages();
  }

  void AddWorker(size_t begin, size_t end) {
    const absl::Span<const Timeline::Event> events = absl::MakeConstSpan(events_).subspan(begin, end - begin);
    const Timeline::Worker& worker = workers_[events.front().worker];
    // Workers of a stage that do the same wait for the same.
    std::string signature = absl::StrCat(worker.stage, ":");
    for (const Timeline::Event& event : events) {
      absl::StrAppend(&signature, static_cast<int>(event.type), ".", event.sequence, ".", event.chunk, " ");
    }
    auto found = known_.find(signature);
    if (found == known_.end()) {
      found = known_.emplace(signature, Known{FindDependencies(events, worker.stage, pipeline_), 0}).first;
    }
    Known& known = found->second;
    ++known.count;
    signatures_[worker.stage].push_back({&known, job_.steps.back().number, worker.rank, end - begin});
    const auto first = static_cast<int32_t>(begin);
    for (const auto& [event, before] : known.dependencies.comes_after) {
      job_.graph.AddDependency(first + event, first + before);
    }
    for (int i = 0; i < 4; ++i) {
      std::vector<WorkerStep::Message>& messages =
          messages_[{i, worker.replica, worker.tensor, worker.stage}];
      messages = known.dependencies.messages[i];
      for (WorkerStep::Message& message : messages) message.event += first;
    }
  }

  // Each send and its receive are a group.
  void PairMessages() {
    for (const auto& [key, messages] : messages_) {
      const auto& [type, replica, tensor, stage] = key;
      const bool is_send = type % 2 == 0, is_forward = type < 2;
      const int other =
          (stage + (is_forward == is_send ? 1 : -1) + pipeline_.num_stages) % pipeline_.num_stages;
      const auto peer = messages_.find({is_send ? type + 1 : type - 1, replica, tensor, other});
      if (peer == messages_.end()) num_unpaired_ += static_cast<int64_t>(messages.size());
      if (!is_send || peer == messages_.end()) continue;
      const std::vector<WorkerStep::Message>&sends = messages, &receives = peer->second;
      if (sends.size() == receives.size()) {
        for (size_t i = 0; i < sends.size(); ++i) Pair(sends[i].event, receives[i].event);
        continue;
      }
      // Some are missing: by what they carry.
      std::map<std::pair<int32_t, int32_t>, int32_t> waiting;
      for (const WorkerStep::Message& send : sends) waiting[{send.chunk, send.ordinal}] = send.event;
      for (const WorkerStep::Message& receive : receives) {
        const auto send = waiting.find({receive.chunk, receive.ordinal});
        if (send == waiting.end()) {
          ++num_unpaired_;
          continue;
        }
        Pair(send->second, receive.event);
        waiting.erase(send);
      }
      num_unpaired_ += static_cast<int64_t>(waiting.size());
    }
  }

  void Pair(int32_t send, int32_t receive) { job_.graph.AddGroup({send, receive}); }

  // Operations that are in most steps of a stage and not in all, or of a rank that has none.
  void NoteOddSteps() {
    constexpr size_t kMaxNotes = 8;
    size_t num_odd = 0;
    for (const auto& [stage, all] : signatures_) {
      const auto count = [](const Seen& seen) { return seen.known != nullptr ? seen.known->count : 0; };
      const auto usual = std::max_element(all.begin(), all.end(),
                                          [&](const Seen& a, const Seen& b) { return count(a) < count(b); });
      for (const Seen& seen : all) {
        if (seen.known == usual->known || ++num_odd > kMaxNotes) continue;
        job_.notes.push_back(absl::StrCat("step ", seen.step, ": rank ", seen.rank, " has ",
                                          seen.num_operations, " operations, and other steps of stage ",
                                          stage, " have ", usual->num_operations));
      }
    }
    if (num_odd > kMaxNotes) {
      job_.notes.push_back(
          absl::StrCat(num_odd - kMaxNotes, " more steps of ranks have other operations than most"));
    }
  }

  void FindOwnTimes() {
    for (size_t i = 0; i < job_.operations.size(); ++i) {
      ReplayJob::Operation& operation = job_.operations[i];
      double start = operation.start;
      for (const int32_t member : job_.graph.GroupOf(static_cast<int32_t>(i))) {
        start = std::max(start, job_.operations[member].start);
      }
      operation.own = operation.end - start;
      if (operation.own <= -kClockTolerance) operation.own = 0;
    }
  }

  void FindDelays() {
    for (size_t i = 0; i < job_.operations.size(); ++i) {
      double ready = 0;
      const absl::Span<const int32_t> before = job_.graph.ComesAfter(static_cast<int32_t>(i));
      if (!before.empty()) {
        ready = job_.operations[before.front()].end;
        for (const int32_t one : before) ready = std::max(ready, job_.operations[one].end);
      }
      const double delay = job_.operations[i].start - ready;
      job_.operations[i].delay = delay <= -kClockTolerance ? 0 : delay;
    }
  }

  void FindIdealTimes() {
    std::vector<std::vector<double>> of_kind(job_.kinds.size());
    for (const ReplayJob::Operation& operation : job_.operations)
      of_kind[operation.kind].push_back(operation.own);
    std::vector<double> ideal(of_kind.size());
    for (size_t kind = 0; kind < of_kind.size(); ++kind) {
      std::vector<double>& values = of_kind[kind];
      if (values.empty()) continue;
      if (!job_.kinds[kind].communicates) {
        for (const double value : values) ideal[kind] += value / static_cast<double>(values.size());
        continue;
      }
      ideal[kind] = Median(std::move(values));
    }
    for (ReplayJob::Operation& operation : job_.operations) operation.ideal = ideal[operation.kind];
  }

  // The dependencies of workers of a stage, by what they do.
  struct Known {
    WorkerStep dependencies;
    int64_t count = 0;
  };
  struct Seen {
    // Null if the rank did nothing in the step.
    const Known* known;
    int64_t step;
    int rank;
    size_t num_operations;
  };

  std::vector<Timeline::Event> events_;
  const std::vector<Timeline::Worker> workers_;
  Pipeline pipeline_;
  std::map<std::string, Known> known_;
  std::map<int, std::vector<Seen>> signatures_;
  // The messages of the step, by type less kForwardSend, replica, tensor-parallel rank and stage.
  std::map<std::tuple<int, int, int, int>, std::vector<WorkerStep::Message>> messages_;
  int64_t num_unpaired_ = 0;
  ReplayJob job_;
};

}  // namespace

absl::StatusOr<ReplayJob> MakeJob(Timeline timeline) { return Maker(std::move(timeline)).Make(); }

}  // namespace ott::saved
