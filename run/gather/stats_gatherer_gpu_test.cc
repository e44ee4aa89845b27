// Statistics that NCCL gathers. Needs a GPU; its ranks are processes that share it.

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/dist/comm/nccl_communicator.h"
#include "ott/dist/comm/ranks_gtest.h"
#include "ott/run/gather/stats_gatherer.h"

namespace ott {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

Deadline Late() { return Deadline::After(std::chrono::seconds(60)); }

// Only the ranks' names are to be used of it.
class NoMessages final : public Communicator {
 public:
  int rank() const override { return TestRanks().rank(); }
  int size() const override { return TestRanks().size(); }
  const std::string& host(int rank) const override { return TestRanks().host(rank); }
  absl::Status Post(int, int, std::string_view) override { return Refuse(); }
  absl::Status Flush(int, Deadline) override { return Refuse(); }
  absl::Status Send(int, int, std::string_view, Deadline) override { return Refuse(); }
  absl::StatusOr<std::string> Receive(int, int, Deadline) override { return Refuse(); }
  absl::Status Broadcast(int, std::string*, Deadline) override { return Refuse(); }
  absl::StatusOr<std::vector<std::string>> Gather(int, std::string_view, Deadline) override {
    return Refuse();
  }
  absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GatherAvailable(int, std::string_view,
                                                                           Deadline) override {
    return Refuse();
  }
  absl::StatusOr<std::vector<std::string>> AllGather(std::string_view, Deadline) override { return Refuse(); }
  absl::Status AllReduce(const Merge&, std::string*, Deadline) override { return Refuse(); }
  absl::Status AllReduce(Reduction, absl::Span<double>, Deadline) override { return Refuse(); }
  absl::Status AllReduce(Reduction, absl::Span<float>, Deadline) override { return Refuse(); }
  absl::Status AllReduce(Reduction, absl::Span<int64_t>, Deadline) override { return Refuse(); }
  absl::Status Barrier(Deadline) override { return Refuse(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int, int, Deadline) override { return Refuse(); }

 private:
  static absl::Status Refuse() {
    ADD_FAILURE() << "a message";
    return absl::UnavailableError("no messages here");
  }
};

// The last rank works twice as long as the others.
class Measured {
 public:
  void Iterate(int count) {
    const double work = TestRanks().rank() == TestRanks().size() - 1 ? 0.02 : 0.01;
    for (int i = 0; i < count; ++i) {
      iteration_.AddSeconds(0.025);
      forward_.AddSeconds(work);
    }
  }
  StopwatchStats Stats() const {
    StopwatchStats stats;
    stats.set_num_measured_iters(iteration_.count());
    *stats.mutable_iteration() = iteration_.ToProto();
    Measurement& measurement = *stats.add_measurements();
    measurement.set_name("forward");
    *measurement.mutable_per_interval() = forward_.ToProto();
    *measurement.mutable_per_iteration() = forward_.ToProto();
    return stats;
  }

 private:
  DurationStatistics iteration_;
  DurationStatistics forward_;
};

class StatsGathererByNccl : public ::testing::Test {
 protected:
  StatsGathererByNccl() {
    setenv("NCCL_HOSTID", ("rank" + std::to_string(TestRanks().rank())).c_str(), 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("NCCL_IB_DISABLE", "1", 1);
    nccl_ = CreateNcclCommunicator(Messages(), NcclOptions()).value();
    options_.nccl = nccl_.get();
  }

  static std::unique_ptr<Communicator> Messages() { return TestRanks().Split(0, 0, Late()).value(); }

  std::unique_ptr<NcclCommunicator> nccl_;
  StatsGathererOptions options_;
  Measured measured_;
};

TEST_F(StatsGathererByNccl, StatisticsAreThoseOfMessagesAndNoMessageTravels) {
  StatsGatherer by_nccl(std::make_unique<NoMessages>(), options_);
  StatsGatherer by_messages(Messages());
  for (int i = 0; i < 3; ++i) {
    measured_.Iterate(10);
    const ClusterStats stats = by_nccl.Gather(measured_.Stats(), Late()).value();
    const ClusterStats expected = by_messages.Gather(measured_.Stats(), Late()).value();
    EXPECT_EQ(stats.SerializeAsString(), expected.SerializeAsString()) << stats.DebugString();
    if (TestRanks().rank() == 0) {
      EXPECT_EQ(stats.max_measured_iters(), 10 * (i + 1));
      EXPECT_THAT(stats.missing_ranks(), testing::IsEmpty());
    }
  }
}

TEST_F(StatsGathererByNccl, StatisticsForWhichThereWasNoRoomComeInTheNextGather) {
  StatsGatherer gatherer(std::make_unique<NoMessages>(), options_);
  const int last = TestRanks().size() - 1;
  RankArrivals arrivals;
  if (TestRanks().rank() == last) arrivals.iterations.assign(200000, '\0');
  for (const bool has_room : {false, true}) {
    measured_.Iterate(10);
    ASSERT_TRUE(gatherer.Prepare(measured_.Stats(), arrivals).ok());
    while (!gatherer.Exchange(Deadline::Now(), Late()).value()) {
    }
    if (TestRanks().rank() != 0) continue;
    const ClusterStats stats = gatherer.Merge().value();
    EXPECT_THAT(stats.missing_ranks(), ElementsAreArray(std::vector<int>(has_room ? 0 : 1, last)));
  }
}

TEST_F(StatsGathererByNccl, WhereARankIsLateForNcclMessagesGoOn) {
  StatsGatherer gatherer(Messages(), options_);
  const int late = TestRanks().size() - 1;
  const auto gather = [&](Deadline deadline) {
    measured_.Iterate(10);
    return gatherer.Gather(measured_.Stats(), deadline).value();
  };
  gather(Late());
  if (TestRanks().rank() == late) {
    ASSERT_TRUE(TestRanks().Receive(0, 7, Late()).ok());
  }
  const ClusterStats second = gather(Deadline::After(std::chrono::seconds(4)));
  if (TestRanks().rank() == 0) {
    ASSERT_TRUE(TestRanks().Post(late, 7, "come").ok());
    EXPECT_THAT(second.notes(), testing::Contains(HasSubstr("nothing from rank " + std::to_string(late))));
    EXPECT_THAT(second.late_ranks(), testing::ElementsAre(late));
  }
  ASSERT_TRUE(TestRanks().Barrier(Late()).ok());
  const ClusterStats third = gather(Late());
  if (TestRanks().rank() == 0) {
    EXPECT_EQ(third.min_measured_iters(), 30);
    EXPECT_THAT(third.late_ranks(), testing::IsEmpty());
    EXPECT_THAT(third.notes(), testing::Not(testing::Contains(HasSubstr("NCCL"))));
  }
}

}  // namespace
}  // namespace ott
