// Processes that are threads of a test.

#ifndef OTT_DIST_SHARE_PROCESSES_FOR_TEST_H_
#define OTT_DIST_SHARE_PROCESSES_FOR_TEST_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ott/dist/comm/simulated_communicator.h"
#include "ott/dist/share/processes.h"

namespace ott {

// While it lives, work is shared by three processes, which see the same files.
class ProcessesForTest {
 public:
  // The first process does `task` by itself, the others do `theirs`, which has the same name.
  ProcessesForTest(const ShareTask& task, const ShareTask& theirs, const std::vector<std::string>& paths)
      : all_(CreateSimulatedCommunicators({"node0", "node1", "node2"})) {
    for (const size_t rank : {1, 2}) {
      others_.emplace_back([this, rank, theirs] {
        const std::unique_ptr<Processes> other = Start(rank, theirs);
        EXPECT_EQ(other->Serve(), absl::OkStatus());
        EXPECT_TRUE(other->Finish());
      });
    }
    first_ = Start(0, task);
    first_->FindFiles(paths);
    SetProcesses(first_.get());
  }
  ~ProcessesForTest() {
    SetProcesses(nullptr);
    first_->Finish();
    for (std::thread& other : others_) other.join();
  }

 private:
  std::unique_ptr<Processes> Start(size_t rank, const ShareTask& task) {
    return *Processes::Start([this, rank] { return std::move(all_[rank]); }, {task}, {});
  }

  std::vector<std::unique_ptr<Communicator>> all_;
  std::vector<std::thread> others_;
  std::unique_ptr<Processes> first_;
};

}  // namespace ott

#endif  // OTT_DIST_SHARE_PROCESSES_FOR_TEST_H_
