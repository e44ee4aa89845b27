#include "ott/questions/hang/recorded_communicator.h"

#include <numeric>
#include <utility>
#include <vector>

#include "ott/core/base/misuse.h"
#include "ott/dist/comm/forwarding_communicator.h"

namespace ott {
namespace {

class RecordedCommunicator final : public ForwardingCommunicator<Communicator> {
 public:
  RecordedCommunicator(Communicator& ranks, FlightRecorder* recorder, const Clock& clock,
                       const std::string& group)
      : ranks_(ranks),
        clock_(clock),
        broadcast_(AddObserverOperation(recorder, "Broadcast", ranks.size(), group)),
        gather_(AddObserverOperation(recorder, "Gather", ranks.size(), group)),
        all_gather_(AddObserverOperation(recorder, "AllGather", ranks.size(), group)),
        all_reduce_(AddObserverOperation(recorder, "AllReduce", ranks.size(), group)),
        barrier_(AddObserverOperation(recorder, "Barrier", ranks.size(), group)),
        split_(AddObserverOperation(recorder, "Split", ranks.size(), group)) {}

  absl::Status Broadcast(int root, std::string* bytes, Deadline deadline) override {
    const RecordedOperation recorded(broadcast_, clock_);
    return ranks_.Broadcast(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<std::string>> Gather(int root, std::string_view bytes,
                                                  Deadline deadline) override {
    const RecordedOperation recorded(gather_, clock_);
    return ranks_.Gather(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GatherAvailable(int root, std::string_view bytes,
                                                                           Deadline deadline) override {
    const RecordedOperation recorded(gather_, clock_);
    return ranks_.GatherAvailable(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes, Deadline deadline) override {
    const RecordedOperation recorded(all_gather_, clock_);
    return ranks_.AllGather(bytes, deadline);
  }
  absl::Status AllReduce(const Merge& merge, std::string* bytes, Deadline deadline) override {
    const RecordedOperation recorded(all_reduce_, clock_);
    return ranks_.AllReduce(merge, bytes, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<double> values, Deadline deadline) override {
    const RecordedOperation recorded(all_reduce_, clock_);
    return ranks_.AllReduce(reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<float> values, Deadline deadline) override {
    const RecordedOperation recorded(all_reduce_, clock_);
    return ranks_.AllReduce(reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<int64_t> values, Deadline deadline) override {
    const RecordedOperation recorded(all_reduce_, clock_);
    return ranks_.AllReduce(reduction, values, deadline);
  }
  absl::Status Barrier(Deadline deadline) override {
    const RecordedOperation recorded(barrier_, clock_);
    return ranks_.Barrier(deadline);
  }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    const RecordedOperation recorded(split_, clock_);
    return ranks_.Split(color, key, deadline);
  }

 private:
  Communicator& To() const override { return ranks_; }

  Communicator& ranks_;
  const Clock clock_;
  FlightRecorder::Measurement* const broadcast_;
  FlightRecorder::Measurement* const gather_;
  FlightRecorder::Measurement* const all_gather_;
  FlightRecorder::Measurement* const all_reduce_;
  FlightRecorder::Measurement* const barrier_;
  FlightRecorder::Measurement* const split_;
};

}  // namespace

RecordedOperation::RecordedOperation(FlightRecorder::Measurement* measurement, const Clock& clock)
    : measurement_(measurement), clock_(clock) {
  if (measurement_ != nullptr) FlightRecorder::Begin(measurement_, clock_.Ticks(), internal::ThisThreadId());
}

RecordedOperation::~RecordedOperation() {
  if (measurement_ != nullptr) FlightRecorder::End(measurement_, clock_.Ticks(), internal::ThisThreadId());
}

FlightRecorder::Measurement* AddObserverOperation(FlightRecorder* recorder, const char* name, int world_size,
                                                  const std::string& group) {
  std::vector<int> ranks(world_size);
  std::iota(ranks.begin(), ranks.end(), 0);
  FlightOperation operation = FlightOperation::Collective(group, std::move(ranks));
  // Ranks give up where others do not answer: who has completed one was not waited for.
  operation.synchronizes = false;
  return recorder->Add(name, operation);
}

std::unique_ptr<Communicator> MakeRecordedCommunicator(Communicator& ranks, FlightRecorder* recorder,
                                                       const Clock& clock, const std::string& group) {
  return std::make_unique<RecordedCommunicator>(ranks, recorder, clock, group);
}

}  // namespace ott
