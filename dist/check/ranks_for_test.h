// Runs the ranks of a test, each on a thread of its own.

#ifndef OTT_DIST_CHECK_RANKS_FOR_TEST_H_
#define OTT_DIST_CHECK_RANKS_FOR_TEST_H_

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/dist/check/replica_check.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/comm/simulated_communicator.h"

namespace ott {

inline std::string HostOf(int rank) { return absl::StrCat("node", rank); }

// Counts ranks along two axes, of which the second runs fastest.
inline RankMeshes MeshOf(const std::string& outer, int outer_size, const std::string& inner, int inner_size) {
  Config config;
  DeviceMesh& mesh = *config.add_mesh();
  for (const auto& [name, size] : {std::pair(outer, outer_size), {inner, inner_size}}) {
    MeshAxis& axis = *mesh.add_axes();
    axis.set_name(name);
    axis.set_size(size);
  }
  return *RankMeshes::Create(config.mesh(), outer_size * inner_size);
}

inline CrossCheckConfig ConfigOf(const std::string& text) {
  CrossCheckConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

// Returns a communicator of the same ranks, apart from it.
inline std::unique_ptr<Communicator> GroupOf(Communicator& ranks) {
  return ranks.Split(0, 0, Deadline::After(std::chrono::seconds(60))).value();
}

// Runs the part of each of `size` ranks, and returns when all have ended.
inline void OnRanks(int size, const std::function<void(int rank, Communicator& ranks)>& part) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < size; ++rank) hosts.push_back(HostOf(rank));
  const auto ranks = CreateSimulatedCommunicators(hosts);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { part(rank, *ranks[rank]); });
  for (std::thread& thread : threads) thread.join();
}

// Stands for a library that tells whether all ranks bring the same words.
inline ReplicaCheckOptions::AreEqual AreEqualOn(const std::shared_ptr<Communicator>& library) {
  return [library](absl::Span<const uint64_t> words, Deadline deadline) -> absl::StatusOr<bool> {
    const std::string mine(reinterpret_cast<const char*>(words.data()), 8 * words.size());
    const std::vector<std::string> all = *library->AllGather(mine, deadline);
    return std::count(all.begin(), all.end(), mine) == library->size();
  };
}

}  // namespace ott

#endif  // OTT_DIST_CHECK_RANKS_FOR_TEST_H_
