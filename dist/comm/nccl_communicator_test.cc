// Needs a GPU; its ranks are processes that share it.

#include "ott/dist/comm/nccl_communicator.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/communicator_conformance.h"
#include "ott/dist/comm/counted_communicator.h"
#include "ott/dist/comm/ranks_gtest.h"
#include "ott/third_party/cuda/testing/stand_in.h"

namespace ott {
namespace {

// Counts what control carries, over all communicators.
const CountedCommunicator::Count& Messages() {
  static const auto& count = *new CountedCommunicator::Count(std::make_shared<std::atomic<int64_t>>(0));
  return count;
}

// NCCL takes ranks with one device and one host for a mistake. With names of their own they look like ranks
// of different hosts, and talk over sockets.
std::unique_ptr<NcclCommunicator> CreateOnSharedDevice() {
  setenv("NCCL_HOSTID", ("rank" + std::to_string(TestRanks().rank())).c_str(), 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("NCCL_IB_DISABLE", "1", 1);
  auto control = std::make_shared<CountedCommunicator>(*TestRanks().Split(0, 0, ForTests()), Messages());
  return *CreateNcclCommunicator(std::move(control), NcclOptions());
}

// One for all tests but those of conformance, some of which end it.
NcclCommunicator& Nccl() {
  static auto& communicator = *new auto(CreateOnSharedDevice());
  return *communicator;
}

struct NcclRanks {
  static void OnAllRanks(const std::function<void(Communicator&)>& body) { body(*CreateOnSharedDevice()); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Nccl, CommunicatorConformance, NcclRanks);

// In a job whose only fabric is NCCL, the unique id was handed out, and control rests.
TEST(NcclCommunicator, CollectivesOfHostBytesSendNoMessage) {
  const auto nccl = CreateOnSharedDevice();
  const auto rank = nccl->rank();
  const auto size = static_cast<size_t>(nccl->size());
  const int64_t before = *Messages();
  const auto group = nccl->Split(0, 0, ForTests());
  ASSERT_TRUE(group.ok()) << group.status();
  for (Communicator* const ranks : {static_cast<Communicator*>(nccl.get()), group->get()}) {
    // Around the sizes of the blocks, each rank another one.
    for (const size_t of_all : {0, 1, 37, 38, 16384 + 37, 16384 + 38, 100000}) {
      const auto bytes = [&](size_t of) { return std::string(of_all + of, static_cast<char>('a' + of)); };
      const auto all = ranks->AllGather(bytes(rank), ForTests());
      ASSERT_TRUE(all.ok()) << all.status();
      for (size_t of = 0; of < size; ++of) EXPECT_EQ((*all)[of], bytes(of)) << of_all;
      std::string broadcast = bytes(rank);
      ASSERT_TRUE(ranks->Broadcast(static_cast<int>(size) - 1, &broadcast, ForTests()).ok());
      EXPECT_EQ(broadcast, bytes(size - 1));
    }
    EXPECT_TRUE(ranks->Gather(0, "mine", ForTests()).ok());
    EXPECT_TRUE(ranks->GatherAvailable(0, "mine", ForTests()).ok());
    EXPECT_TRUE(ranks->Barrier(ForTests()).ok());
    double value = rank;
    EXPECT_TRUE(ranks->AllReduce(Reduction::kSum, absl::MakeSpan(&value, 1), ForTests()).ok());
    EXPECT_EQ(value, static_cast<double>(size * (size - 1)) / 2);
  }
  // Ranks that differ in what they call are told by it, too.
  EXPECT_EQ(rank == 0 ? absl::IsInternal(nccl->Barrier(ForTests()))
                      : absl::IsInternal(nccl->AllGather("", ForTests()).status()),
            size > 1);
  EXPECT_TRUE(nccl->Barrier(ForTests()).ok());
  EXPECT_EQ(*Messages(), before);
  EXPECT_EQ((*group)->size(), static_cast<int>(size));
}

TEST(NcclCommunicator, WhereARankIsLateMessagesNameItAndGoOn) {
  const auto nccl = CreateOnSharedDevice();
  const int late = nccl->size() - 1;
  if (late == 0) return;
  const int64_t before = *Messages();
  if (nccl->rank() == late) {
    ASSERT_TRUE(TestRanks().Receive(0, 17, ForTests()).ok());
    // It hears at once that the others have given NCCL up.
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(nccl->GatherAvailable(0, "late", ForTests()).ok());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  } else {
    const auto parts = nccl->GatherAvailable(0, "in time", Deadline::After(std::chrono::milliseconds(1500)));
    ASSERT_TRUE(parts.ok()) << parts.status();
    if (nccl->rank() == 0) {
      EXPECT_THAT(std::string((*parts)[late].status().message()),
                  testing::HasSubstr(absl::StrCat("nothing from rank ", late)));
      for (int rank = 0; rank < late; ++rank) EXPECT_EQ((*parts)[rank].value(), "in time");
      ASSERT_TRUE(TestRanks().Post(late, 17, "come").ok());
    }
  }
  const auto all = nccl->AllGather("again", ForTests());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(*all, testing::Each(testing::StrEq("again")));
  EXPECT_GT(*Messages(), before);
  const absl::Status ended = nccl->AreEqual({1}, ForTests()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), testing::HasSubstr("ncclAllGather"));
}

// If a rank has found all to be well that another one gave up, each goes on at its own deadline.
TEST(NcclCommunicator, ARankThatEndedNcclAloneIsMetByTheOthersInTheNextCollective) {
  const auto nccl = CreateOnSharedDevice();
  if (nccl->size() == 1) return;
  const bool ends_it = nccl->rank() == nccl->size() - 1;
  if (ends_it) {
    EXPECT_FALSE(nccl->AreEqual({1}, Soon()).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(nccl->AreEqual({1}, Soon()).status()));
  }
  for (int i = 0; i < 3; ++i) {
    const auto all = nccl->AllGather(absl::StrCat(i), ForTests());
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_THAT(*all, testing::Each(absl::StrCat(i)));
  }
}

// Floats in device memory.
class DeviceFloats {
 public:
  explicit DeviceFloats(const std::vector<float>& values) : size_(values.size()) {
    EXPECT_EQ(cudaMalloc(&data_, size_ * sizeof(float)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), size_ * sizeof(float), cudaMemcpyHostToDevice), cudaSuccess);
  }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  ~DeviceFloats() { cudaFree(data_); }

  void* data() { return data_; }
  std::vector<float> Read() const {
    std::vector<float> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, size_ * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  const size_t size_;
  void* data_ = nullptr;
};

TEST(NcclCommunicator, ReducesInDeviceMemory) {
  NcclCommunicator& nccl = Nccl();
  const auto rank = static_cast<float>(nccl.rank());
  const auto size = static_cast<float>(nccl.size());
  DeviceFloats values({rank, 1.5f, -rank});
  ASSERT_TRUE(
      nccl.AllReduceOnDevice(Reduction::kSum, DType::kFloat32, values.data(), 3, nullptr, ForTests()).ok());
  const float sum = size * (size - 1) / 2;
  EXPECT_THAT(values.Read(), testing::ElementsAre(sum, 1.5f * size, -sum));
  EXPECT_TRUE(absl::IsInvalidArgument(
      nccl.AllReduceOnDevice(Reduction::kSum, DType::kBool, values.data(), 1, nullptr, ForTests())));
}

TEST(NcclCommunicator, BroadcastsInDeviceMemory) {
  NcclCommunicator& nccl = Nccl();
  DeviceFloats values({static_cast<float>(nccl.rank()), 0.25f * static_cast<float>(nccl.rank())});
  const int root = nccl.size() - 1;
  ASSERT_TRUE(nccl.BroadcastOnDevice(root, values.data(), 2 * sizeof(float), nullptr, ForTests()).ok());
  EXPECT_THAT(values.Read(),
              testing::ElementsAre(static_cast<float>(root), 0.25f * static_cast<float>(root)));
}

TEST(NcclCommunicator, AreEqualTellsWhetherAllRanksBroughtTheSame) {
  NcclCommunicator& nccl = Nccl();
  const auto rank = static_cast<uint64_t>(nccl.rank());
  const std::vector<uint64_t> same = {0, 1, ~uint64_t{0}, uint64_t{1} << 63};
  EXPECT_TRUE(nccl.AreEqual(same, ForTests()).value());
  EXPECT_EQ(nccl.AreEqual({5, rank}, ForTests()).value(), nccl.size() == 1);
  EXPECT_EQ(nccl.AreEqual({rank == 0 ? ~uint64_t{0} : 0}, ForTests()).value(), nccl.size() == 1);
  EXPECT_TRUE(nccl.AreEqual({}, ForTests()).value());
}

// Returns what rank 0 gets if each rank brings its bytes.
std::vector<std::string> Gather(NcclCommunicator& nccl, const std::string& bytes) {
  EXPECT_TRUE(nccl.BeginGather(bytes, /*all_wait=*/true, ForTests()).ok());
  const auto gathered = nccl.TakeGathered(ForTests(), ForTests());
  EXPECT_TRUE(gathered.ok() && gathered->has_value()) << gathered.status();
  return gathered.ok() && gathered->has_value() ? **gathered : std::vector<std::string>();
}

TEST(NcclCommunicator, GathersBytesOfWhateverSizeAtRankZero) {
  NcclCommunicator& nccl = Nccl();
  for (const size_t size : {0, 1, 16376, 16384, 131064, 131065, 400000, 5}) {
    const auto bytes = [&](int rank) {
      return std::string(size * static_cast<size_t>(rank + 1) / static_cast<size_t>(nccl.size()),
                         static_cast<char>('a' + rank));
    };
    std::vector<std::string> expected;
    for (int rank = 0; nccl.rank() == 0 && rank < nccl.size(); ++rank) expected.push_back(bytes(rank));
    EXPECT_EQ(Gather(nccl, bytes(nccl.rank())), expected) << size;
    // On the same stream, and in the same order everywhere.
    EXPECT_TRUE(nccl.AreEqual({size}, ForTests()).value());
  }
}

TEST(NcclCommunicator, AGatherHoldsNobodyWhoComesFirst) {
  NcclCommunicator& nccl = Nccl();
  Gather(nccl, "");  // which connects the ranks
  const int late = nccl.size() - 1;
  if (nccl.rank() == late && late > 0) {
    ASSERT_TRUE(nccl.Receive(0, 7, ForTests()).ok());
  }
  ASSERT_TRUE(nccl.BeginGather(std::string(1000, 'x'), /*all_wait=*/false, ForTests()).ok());
  if (nccl.rank() == 0 && late > 0) {
    EXPECT_EQ(nccl.TakeGathered(Deadline::Now(), ForTests()).value(), std::nullopt);
    ASSERT_TRUE(nccl.Post(late, 7, "come").ok());
  }
  const auto gathered = nccl.TakeGathered(ForTests(), ForTests());
  ASSERT_TRUE(gathered.ok()) << gathered.status();
  EXPECT_EQ((*gathered)->size(), nccl.rank() == 0 ? static_cast<size_t>(nccl.size()) : 0);
}

// Ranks look at different moments, and could not begin again at the same.
TEST(NcclCommunicator, WithoutWaitingBytesThatAreMoreThanAnyBeforeComeTheNextTime) {
  const auto nccl = CreateOnSharedDevice();
  const bool is_last = nccl->rank() + 1 == nccl->size();
  for (const size_t expected : {0, 200000}) {
    ASSERT_TRUE(
        nccl->BeginGather(std::string(is_last ? 200000 : 10, 'x'), /*all_wait=*/false, ForTests()).ok());
    const auto gathered = nccl->TakeGathered(ForTests(), ForTests());
    ASSERT_TRUE(gathered.ok()) << gathered.status();
    if (nccl->rank() != 0) continue;
    EXPECT_EQ((*gathered)->back().size(), expected);
    if (nccl->size() > 1) {
      EXPECT_EQ((*gathered)->front().size(), 10u);
    }
  }
}

TEST(NcclCommunicator, AGatherThatNobodyTookIsDropped) {
  NcclCommunicator& nccl = Nccl();
  ASSERT_TRUE(nccl.BeginGather("dropped", /*all_wait=*/false, ForTests()).ok());
  const std::vector<std::string> gathered = Gather(nccl, "taken");
  if (nccl.rank() == 0) {
    EXPECT_THAT(gathered, testing::Each(testing::StrEq("taken")));
  }
}

TEST(NcclCommunicator, ThreadsMayCallItAtOnceAndKeepTheirDevices) {
  NcclCommunicator& nccl = Nccl();
  int num_devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&num_devices), cudaSuccess);
  const auto compare = [&] {
    ASSERT_EQ(cudaSetDevice(num_devices - 1), cudaSuccess);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(nccl.AreEqual({1, 2, 3}, ForTests()).value());
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, num_devices - 1);
  };
  std::thread other(compare);
  compare();
  other.join();
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(NcclCommunicator, WhateverOfCudaFailsIsToldAndNothingStaysBehind) {
  if (FindCudaStandIn() == nullptr || TestRanks().size() > 1) GTEST_SKIP() << "only one rank on the stand-in";
  for (const char* const function :
       {"cudaGetDevice", "cudaStreamCreateWithFlags", "cudaMalloc", "cudaHostAlloc", "cudaMemcpyAsync",
        "cudaStreamQuery", "cudaStreamSynchronize"}) {
    bool fails = true;
    for (int nth = 1; fails; nth += (nth + 3) / 4) {
      CudaStandIn().Reset(nth);
      const OttCudaCounts before = CudaStandIn().Counts();
      DeviceFloats values({0.5f});
      CudaStandIn().Fail(function, nth, cudaErrorECCUncorrectable, /*is_sticky=*/false);
      bool is_told = false;
      const auto note = [&](const absl::Status& status) { is_told |= !status.ok(); };
      auto control = TestRanks().Split(0, 0, ForTests());
      auto nccl = CreateNcclCommunicator(*std::move(control), NcclOptions());
      note(nccl.status());
      if (nccl.ok()) {
        EXPECT_THAT((*nccl)->AllGather("mine", ForTests()).value(), testing::ElementsAre("mine"))
            << "by messages, if need be";
        const absl::StatusOr<bool> equal = (*nccl)->AreEqual({1}, ForTests());
        note(equal.status());
        EXPECT_TRUE(equal.value_or(true));
        note((*nccl)->BeginGather("mine", /*all_wait=*/true, ForTests()));
        if (!is_told) {
          const auto gathered = (*nccl)->TakeGathered(ForTests(), ForTests());
          note(gathered.status());
          EXPECT_THAT(gathered.ok() ? **gathered : std::vector<std::string>{"mine"},
                      testing::ElementsAre("mine"));
        }
        note((*nccl)->AllReduceOnDevice(Reduction::kSum, DType::kFloat32, values.data(), 1, nullptr,
                                        ForTests()));
      }
      fails = CudaStandIn().Counts().failures > 0;
      EXPECT_EQ(is_told, fails) << function << " " << nth;
      nccl = absl::CancelledError();
      CudaStandIn().Reset(1);
      EXPECT_THAT(values.Read(), testing::ElementsAre(0.5f));
      const OttCudaCounts after = CudaStandIn().Counts();
      EXPECT_EQ(after.device_blocks, before.device_blocks + 1);
      EXPECT_EQ(after.pinned_blocks, before.pinned_blocks);
      EXPECT_EQ(after.streams, before.streams);
    }
  }
}

// The stand-in makes this error if OTT_NCCL_FAIL asks for it.
TEST(NcclCommunicator, AnAsynchronousErrorIsToldAndAborts) {
  if (std::getenv("OTT_NCCL_FAIL") == nullptr) GTEST_SKIP() << "only with OTT_NCCL_FAIL";
  const auto nccl = CreateOnSharedDevice();
  const absl::Status status = nccl->AreEqual({1}, Soon()).status();
  if (nccl->rank() == 0) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("remote process exited"));
  } else {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
  EXPECT_EQ(nccl->AreEqual({1}, Soon()).status().code(), absl::StatusCode::kFailedPrecondition);
}

// The last: an aborted communicator is of no use any more.
TEST(NcclCommunicator, AMissingRankCostsTheDeadlineAndAborts) {
  NcclCommunicator& nccl = Nccl();
  if (nccl.size() == 1) return;
  DeviceFloats values({1.0f});
  if (nccl.rank() != 0) {
    const absl::Status status =
        nccl.AllReduceOnDevice(Reduction::kSum, DType::kFloat32, values.data(), 1, nullptr, Soon());
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_EQ(
        nccl.AllReduceOnDevice(Reduction::kSum, DType::kFloat32, values.data(), 1, nullptr, Soon()).code(),
        absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(nccl.Barrier(ForTests()).ok()) << "what does not go through NCCL goes on";
}

}  // namespace
}  // namespace ott
