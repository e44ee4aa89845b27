// One rank of a job in which a rank never makes its communicator: the others are to have their error at the
// deadline, and not when that rank ends.

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "ott/dist/comm/mpi_communicator.h"

namespace {

constexpr int kNumRanks = 4;
constexpr int kVictim = 1;

std::string FileOf(int rank) { return absl::StrCat(std::getenv("TEST_TMPDIR"), "/returned_", rank); }

// Waits until the others are done, and says whether they were.
bool AwaitOthers() {
  for (int tries = 0; tries < 600; ++tries) {
    bool all = true;
    for (int rank = 0; rank < kNumRanks; ++rank)
      all = all && (rank == kVictim || std::filesystem::exists(FileOf(rank)));
    if (all) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

}  // namespace

int main() {
  const int rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"));
  if (rank == kVictim) {
    MPI_Init(nullptr, nullptr);
    std::cout << (AwaitOthers() ? "failed_start: as it should be" : "the others still wait") << std::endl;
    _exit(0);
  }
  ott::MpiOptions options;
  options.timeout = std::chrono::milliseconds(500);
  const absl::Status status = ott::CreateMpiCommunicator(options).status();
  std::cout << status << std::endl;
  if (absl::IsDeadlineExceeded(status)) std::ofstream(FileOf(rank)) << status;
  _exit(0);
}
