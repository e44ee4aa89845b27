// Reads logs of operations, also of runs that were cut short.

#ifndef OTT_CORE_OP_LOG_OP_LOG_READER_H_
#define OTT_CORE_OP_LOG_OP_LOG_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/file.h"
#include "ott/core/digest/digest.h"
#include "ott/core/nvtx/op_observer.h"
#include "ott/core/op_log/op_log_format.h"
#include "ott/core/tensor/dtype.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// A tensor as an operation reads or writes it, without what is in it.
struct OpTensorDefinition {
  std::string name;
  bool is_output = false;
  DType dtype = DType::kFloat32;
  Dims shape;
  int64_t num_elements = 0;
};

struct OpDefinition {
  // The index in LoggedOps::definitions.
  size_t index = 0;
  std::string name;
  std::string module;
  std::string phase;
  // "model.cc:210"; empty: not known.
  std::string source;
  OpRole role = OpRole::kOperation;
  bool is_backward = false;
  // In the order of the program; inputs come before the outputs that were told after them.
  std::vector<OpTensorDefinition> tensors;
};

// An operation that ran; what it refers to lives as long as its LoggedOps.
class LoggedOp {
 public:
  // data: of a record that was checked.
  LoggedOp(const OpDefinition* definition, const char* data) : definition_(definition), data_(data) {}

  const OpDefinition& definition() const { return *definition_; }
  int num_tensors() const { return static_cast<int>(definition_->tensors.size()); }
  // Returns true if the tensor could be read.
  bool is_known(int tensor) const { return digest(tensor) != Digest(); }
  Digest digest(int tensor) const {
    const internal::OpLogTensor& logged = tensors()[tensor];
    return {logged.digest_low, logged.digest_high};
  }
  double norm(int tensor) const { return tensors()[tensor].norm; }
  double max_abs(int tensor) const { return tensors()[tensor].max_abs; }
  const float* sketch(int tensor) const { return tensors()[tensor].sketch; }
  internal::OpLogNonFinite non_finite(int tensor) const;
  // Returns "lr=0.1, eps=1e-08"
  std::string_view arguments() const;
  int64_t seq() const { return op().seq; }
  uint32_t thread() const { return op().thread; }
  // Returns its number in the order in which the operations of its iteration began.
  uint32_t number() const { return op().number; }

 private:
  const internal::OpLogRecordHeader& header() const {
    return *reinterpret_cast<const internal::OpLogRecordHeader*>(data_);
  }
  const internal::OpLogOp& op() const {
    return *reinterpret_cast<const internal::OpLogOp*>(data_ + sizeof(internal::OpLogRecordHeader));
  }
  const internal::OpLogTensor* tensors() const {
    return reinterpret_cast<const internal::OpLogTensor*>(data_ + sizeof(internal::OpLogRecordHeader) +
                                                          sizeof(internal::OpLogOp));
  }

  const OpDefinition* definition_;
  const char* data_;
};

// One rank's.
struct LoggedOps {
  struct Iteration {
    int64_t number = 0;
    // An index in ops.
    size_t begin = 0;
    size_t end = 0;
    // True if the log was cut within it, or at its end: operations may be missing there.
    bool is_cut = false;
  };

  int rank = 0;
  int world_size = 1;
  std::vector<LoggedOp> ops;
  // In the order of the log; one that was logged twice counts as logged last.
  std::vector<Iteration> iterations;
  // Empty for a log that was finished; else where it ends, and why.
  std::string cut;

  std::vector<std::unique_ptr<OpDefinition>> definitions;
  std::vector<std::shared_ptr<const MappedFile>> files;
};

// Returns the log at `path`, and its continuations, by runs that went on in the same directory. What a log
// that was cut holds is returned with `cut` saying where it ends. NOT_FOUND if there is none;
// INVALID_ARGUMENT for a file that is no log of operations, or one of another version or width of digests.
absl::StatusOr<LoggedOps> ReadOpLog(const std::string& path);

// Returns the log of the n-th run into one directory, from 1: op_log.bin, op_log_2.bin.
std::string OpLogPart(const std::string& path, int part);

}  // namespace ott

#endif  // OTT_CORE_OP_LOG_OP_LOG_READER_H_
