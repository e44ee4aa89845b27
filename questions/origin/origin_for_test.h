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
  // In a run directory; an iteration 0 begins.
  HandWritten(const std::string& run_dir, int rank, int world_size);

  void BeginIteration(int64_t iteration);
  void Op(const WrittenOp& op);
  // Each value is a tensor of four elements.
  void Op(const std::string& name, const std::vector<float>& inputs, float output,
          OpRole role = OpRole::kOperation);
  void Finish();

 private:
  std::unique_ptr<OpLog> log_;
};

// A folder of the test with runs a, b and perturbed.
class OriginOfHandWrittenLogs : public ::testing::Test {
 protected:
  void SetUp() override;
  absl::StatusOr<OriginVerdict> Find() const;
  absl::StatusOr<OriginVerdict> FindAmongPerturbed() const;
  HandWritten A() const { return {dir_ + "/a", 0, 1}; }
  HandWritten B() const { return {dir_ + "/b", 0, 1}; }

  const std::string dir_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
};

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_ORIGIN_FOR_TEST_H_
