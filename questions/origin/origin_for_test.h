// Writes logs of operations by hand, whose tensors hold any numbers.

#ifndef OTT_QUESTIONS_ORIGIN_ORIGIN_FOR_TEST_H_
#define OTT_QUESTIONS_ORIGIN_ORIGIN_FOR_TEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "ott/core/op_log/op_log.h"
#include "ott/core/op_log/op_log_reader.h"
#include "ott/questions/origin/origin.h"

namespace ott::origin {

struct WrittenTensor {
  std::vector<float> elements;
  std::string name = {};
  DType dtype = DType::kFloat32;
  // True if it lies where it cannot be read from.
  bool is_lost = false;
};

struct WrittenOp {
  std::string name;
  std::vector<WrittenTensor> inputs = {};
  std::vector<WrittenTensor> outputs = {};
  OpRole role = OpRole::kOperation;
  std::string module = {};
  std::string phase = {};
  bool is_backward = false;
  // An argument that is no tensor; empty: none.
  std::string argument = {};
};

// Returns a log of these iterations, from 0.
LoggedOps LogOps(const std::vector<std::vector<WrittenOp>>& iterations);

// The log of a rank. "kept.*" are kept.
class HandWritten {
 public:
  // Writes into a run directory.
  HandWritten(const std::string& run_dir, int rank, int world_size);

  void BeginIteration(int64_t iteration);
  void Op(const WrittenOp& op);
  void Finish();

 private:
  std::unique_ptr<OpLog> log_;
};

// Writes a run directory, of each rank a text: "fc1:linear 10 20 > 30; adam! 30 > 31; @10; all_reduce& 1 ? >
// 2". The module may come before an operation's name, which ends in ! for an update, & for a collective or ^
// for a load. A number stands for a tensor of four elements that begins with it, ~30 for one in which
// the elements of 30 are in another order, ? for one that cannot be read; =up is an argument that is none.
// @10 begins iteration 10; without one the first is iteration 0.
void WriteRun(const std::string& run_dir, const std::vector<std::string>& ranks);

// A folder of the test with runs a, b and perturbed.
class OriginOfHandWrittenLogs : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override { SetUp(); }
  // Writes runs a and b, and if it is not empty the perturbed one.
  absl::StatusOr<OriginVerdict> FindIn(const std::vector<std::string>& a, const std::vector<std::string>& b,
                                       const std::vector<std::string>& perturbed = {});

  const std::string dir_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
};

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_ORIGIN_FOR_TEST_H_
