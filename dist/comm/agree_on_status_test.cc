#include "ott/dist/comm/agree_on_status.h"

#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ott/dist/comm/simulated_communicator.h"

namespace ott {
namespace {

TEST(AgreeOnStatus, AllRanksReturnTheFirstRanksErrorAndNoneWhereThereIsNone) {
  auto ranks = CreateSimulatedCommunicators({"a", "b", "c"});
  std::vector<absl::Status> agreed(3), failed(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const Deadline deadline = Deadline::After(std::chrono::seconds(60));
      agreed[rank] = AgreeOnStatus(*ranks[rank], absl::OkStatus(), deadline);
      failed[rank] = AgreeOnStatus(
          *ranks[rank],
          rank == 0 ? absl::OkStatus() : absl::DataLossError("cut at byte " + std::to_string(rank)),
          deadline);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(agreed[rank], absl::OkStatus());
    EXPECT_EQ(failed[rank], absl::DataLossError("rank 1 (b): cut at byte 1"));
  }
}

}  // namespace
}  // namespace ott
