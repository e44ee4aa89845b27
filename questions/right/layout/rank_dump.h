// The tensors that one rank dumped in an iteration, read one by one.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_RANK_DUMP_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_RANK_DUMP_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/dump/adding_order.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/tensor/tensor.h"

namespace ott::crosscheck {

struct DumpedTensor {
  std::string path;  // a TensorName()
  DType dtype = DType::kFloat32;
  Dims shape;
  bool dtype_known = true;
  bool is_text = false;  // as bytes, uint8
  std::string problem;   // why there are no elements, such as for one dumped as statistics; else empty
};

// A dump without what lies in files of its own, which is mapped anew by each Open(): what this keeps in
// memory is names, and the tensors dumped as JSON or by Python.
class RankDump {
 public:
  // Errors as ReadDump's.
  static absl::StatusOr<RankDump> Read(const std::string& dir);

  // Returns that of a state in memory, or mapped.
  static RankDump Of(const Value& state);

  // Also numbers and texts, in the order of the dump.
  const std::vector<DumpedTensor>& tensors() const { return tensors_; }

  // Gathers a tensor that is scattered. REQUIRES: it has no problem
  absl::StatusOr<Tensor> Open(size_t tensor) const;

 private:
  void Add(const std::string& path, const Value& value);
  void Sort(const AddingOrder& order);
  void AddTensor(const std::string& path, const Tensor& tensor, bool is_text);

  std::string dir_;
  std::vector<DumpedTensor> tensors_;
  // Holds one of the two for each tensor.
  std::vector<std::optional<Tensor>> held_;
  std::vector<std::optional<ManifestTensor>> listed_;
};

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_RANK_DUMP_H_
