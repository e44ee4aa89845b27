#include "ott/questions/hang/recorded_communicator.h"

#include <utility>

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
        broadcast_(Add(recorder, "Broadcast", group)),
        gather_(Add(recorder, "Gather", group)),
        all_gather_(Add(recorder, "AllGather", group)),
        all_reduce_(Add(recorder, "AllReduce", group)),
        barrier_(Add(recorder, "Barrier", group)),
        split_(Add(recorder, "Split", group)) {}

  absl::Status Broadcast(int root, std::string* bytes, Deadline deadline) override {
    const Recorded recorded(*this, broadcast_);
    return ranks_.Broadcast(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<std::string>> Gather(int root, std::string_view bytes,
                                                  Deadline deadline) override {
    const Recorded recorded(*this, gather_);
    return ranks_.Gather(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GatherAvailable(int root, std::string_view bytes,
                                                                           Deadline deadline) override {
    const Recorded recorded(*this, gather_);
    return ranks_.GatherAvailable(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes, Deadline deadline) override {
    const Recorded recorded(*this, all_gather_);
    return ranks_.AllGather(bytes, deadline);
  }
  absl::Status AllReduce(const Merge& merge, std::string* bytes, Deadline deadline) override {
    const Recorded recorded(*this, all_reduce_);
    return ranks_.AllReduce(merge, bytes, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<double> values, Deadline deadline) override {
    const Recorded recorded(*this, all_reduce_);
    return ranks_.AllReduce(reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<float> values, Deadline deadline) override {
    const Recorded recorded(*this, all_reduce_);
    return ranks_.AllReduce(reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<int64_t> values, Deadline deadline) override {
    const Recorded recorded(*this, all_reduce_);
    return ranks_.AllReduce(reduction, values, deadline);
  }
  absl::Status Barrier(Deadline deadline) override {
    const Recorded recorded(*this, barrier_);
    return ranks_.Barrier(deadline);
  }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    const Recorded recorded(*this, split_);
    return ranks_.Split(color, key, deadline);
  }

 private:
  Communicator& To() const override { return ranks_; }

  class Recorded {
   public:
    Recorded(const RecordedCommunicator& communicator, FlightRecorder::Measurement* measurement)
        : communicator_(communicator), measurement_(measurement) {
      if (measurement_ != nullptr) FlightRecorder::Begin(measurement_, Now(), internal::ThisThreadId());
    }
    Recorded(const Recorded&) = delete;
    Recorded& operator=(const Recorded&) = delete;
    ~Recorded() {
      if (measurement_ != nullptr) FlightRecorder::End(measurement_, Now(), internal::ThisThreadId());
    }

   private:
    uint64_t Now() const { return communicator_.clock_.Ticks(); }

    const RecordedCommunicator& communicator_;
    FlightRecorder::Measurement* const measurement_;
  };

  static FlightRecorder::Measurement* Add(FlightRecorder* recorder, const char* name,
                                          const std::string& group) {
    FlightOperation operation;
    operation.role = FlightRole::kCollective;
    operation.group = group;
    // Ranks give up where others do not answer: who has completed one was not waited for.
    operation.synchronizes = false;
    return recorder->Add(name, operation);
  }

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

std::unique_ptr<Communicator> MakeRecordedCommunicator(Communicator& ranks, FlightRecorder* recorder,
                                                       const Clock& clock, const std::string& group) {
  return std::make_unique<RecordedCommunicator>(ranks, recorder, clock, group);
}

}  // namespace ott
