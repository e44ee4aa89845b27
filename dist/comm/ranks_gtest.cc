#include "ott/dist/comm/ranks_gtest.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/check.h"

namespace ott {
namespace {

Communicator* g_test_ranks = nullptr;

// After each test, failures of the other ranks become failures of rank 0.
class FailuresToRankZero final : public testing::EmptyTestEventListener {
 public:
  explicit FailuresToRankZero(Communicator& reports) : reports_(reports) {}

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    absl::StrAppend(&failures_, result.file_name() ? result.file_name() : "", ":", result.line_number(), ": ",
                    result.message(), "\n");
  }

  void OnTestEnd(const testing::TestInfo&) override {
    const auto all = reports_.GatherAvailable(0, failures_, Deadline::After(std::chrono::seconds(60)));
    failures_.clear();
    if (reports_.rank() != 0) return;
    for (int rank = 1; rank < reports_.size(); ++rank) {
      const auto& theirs = (*all)[rank];
      if (!theirs.ok()) ADD_FAILURE() << theirs.status();
      if (theirs.ok() && !theirs->empty()) ADD_FAILURE() << "on rank " << rank << ":\n" << *theirs;
    }
  }

 private:
  Communicator& reports_;
  std::string failures_;
};

}  // namespace

Communicator& TestRanks() { return *g_test_ranks; }

int RunTestsOn(absl::StatusOr<std::unique_ptr<Communicator>> ranks) {
  OTT_CHECK(ranks.ok()) << ranks.status();
  g_test_ranks = ranks->get();
  // Apart from the tests' own calls, whatever they do.
  auto reports = g_test_ranks->Split(0, 0, Deadline::After(std::chrono::seconds(60)));
  OTT_CHECK(reports.ok()) << reports.status();

  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (g_test_ranks->rank() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailuresToRankZero(**reports));
  const int result = RUN_ALL_TESTS();
  (void)g_test_ranks->Barrier(Deadline::After(std::chrono::seconds(60)));
  return result;
}

}  // namespace ott
