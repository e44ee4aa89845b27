// A log of what the operations of a training read and wrote: who first computed something else than another
// run did is found in two of these (`ott origin`).

#ifndef OTT_CORE_OP_LOG_OP_LOG_H_
#define OTT_CORE_OP_LOG_OP_LOG_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/core/nvtx/op_observer.h"
#include "ott/core/op_log/append_file.h"

namespace ott {

class TensorDumper;

// OpRanges (core/nvtx/op_range.h) tell it of operations. As an operation ends, it writes its name, module,
// phase, direction, sequence number and source line; of each input and output the dtype, shape, digest, norm,
// largest magnitude, number of NaN and infinities, and a sketch, by which tensors that are not kept can be
// compared; and the arguments that are no tensors. Inputs are read as the operation begins, outputs as it
// says what they are, each in one pass. Tensors in device memory are read there, in the order of their
// stream, so that it may overwrite them at once; the end of an operation waits for that. What was logged
// survives kill -9.
//
// A TrainingRun keeps one where ott.Config has `op_log`. By itself:
//
//   OTT_ASSIGN_OR_RETURN(const auto log, OpLog::Create({"op_log.bin"}));
//   log->BeginIteration(0);
//   OpRanges::Get().TellObserver(log.get());
//   ...
//   OpRanges::Get().TellObserver(nullptr);
//   OTT_RETURN_IF_ERROR(log->Finish());
//
// Thread-safe, but for BeginIteration() and Finish(), which no operation may cross.
class OpLog : public OpObserver {
 public:
  struct Options {
    // A file that is not there yet.
    std::string path;
    int rank = 0;
    int world_size = 1;
    // Globs over MODULE.OPERATION.TENSOR, as "encoder.0.attention.output0": tensors that are kept, in
    // KEPT_DIR/ITERATION, by OpTensorPath(). Named tensors go by their name, others are input0, input1...,
    // output0...
    std::vector<std::string> keep;
    // Empty: none are kept.
    std::string kept_dir;
  };

  static absl::StatusOr<std::unique_ptr<OpLog>> Create(const Options& options);
  OpLog(const OpLog&) = delete;
  OpLog& operator=(const OpLog&) = delete;
  // REQUIRES: nobody tells it of operations any more
  ~OpLog() override;

  // Says that what follows belongs to this iteration. Returns the first error since the last call; where the
  // disk is full, further operations are not logged.
  absl::Status BeginIteration(int64_t iteration);
  // Says in the file that it is complete.
  absl::Status Finish();

  int64_t num_ops() const;

  void* Begin(const ObservedOp& op) override;
  void AddOutputs(void* op, absl::Span<const OpArg> outputs) override;
  void End(void* op) override;

 private:
  struct OpenOp;

  explicit OpLog(Options options);

  OpenOp& Take();
  void AddTensor(OpenOp& op, const OpArg& tensor, bool is_output);
  void SetStatistics(OpenOp& op, size_t tensor, const absl::StatusOr<DigestAndStatistics>& read);
  void Keep(const OpenOp& op, const std::string& name, int index, bool is_output, const TensorView& tensor);
  // Returns the id; a definition that is new is written. REQUIRES: mutex_ is held
  uint32_t DefinitionOf(const std::string& definition);
  // REQUIRES: mutex_ is held
  void Write(uint16_t kind, uint16_t flags, uint32_t id, const std::string& payload);
  absl::Status FinishKept();

  const Options options_;
  mutable std::mutex mutex_;
  std::unique_ptr<internal::AppendFile> file_;
  absl::Status status_;
  // No more is written once this is false.
  bool has_room_ = true;
  std::unordered_map<std::string, uint32_t> definitions_;
  std::string record_;
  uint32_t next_number_ = 0;
  int64_t num_ops_ = 0;
  // Operations that began and did not end yet, and those that ended.
  std::vector<std::unique_ptr<OpenOp>> open_;
  std::vector<OpenOp*> unused_;
  std::unique_ptr<TensorDumper> kept_;
};

// Returns the path, in the dump of its iteration, of a tensor that was kept: of operation `number` of the
// iteration, its input or output `index`.
std::string OpTensorPath(uint32_t number, bool is_output, int index);

}  // namespace ott

#endif  // OTT_CORE_OP_LOG_OP_LOG_H_
