// A run's part of a layout (layout.proto), checked and with its names looked up.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_RUN_RULES_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_RUN_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/dist/mesh/rank_mesh.h"
#include "ott/questions/right/layout/layout.pb.h"
#include "ott/questions/right/layout/path_pattern.h"

namespace ott::crosscheck {

// TensorRule with axes as numbers. Dimensions are as in the file, since tensors have different numbers of
// them.
struct Rule {
  struct Section {
    std::optional<PathPattern> whole;  // absent: not compared
    int64_t begin = 0;                 // in shares
    int64_t share = 1;
  };
  struct SplitDim {
    int dim = 0;
    std::vector<int> axes;  // outermost first
  };
  struct Numbers {
    std::string name;
    int axis = 0;
    std::vector<std::vector<int64_t>> by_position;  // what the n-th one there is in whole tensors
  };

  PathPattern path;
  std::vector<Section> sections;  // one of one share where nothing is fused
  int64_t num_shares = 1;
  int fused_dim = 0;
  int64_t group = 0;
  std::vector<int> transpose;
  std::vector<SplitDim> splits;
  std::vector<int> sum_axes;  // with those of means
  int64_t divisor = 1;        // of the sum
  std::vector<Padding> padding;
  std::vector<Numbers> numbers;
  std::vector<int> one_of_axes;
  // The axes that the rule does not name: ranks along them hold replicas.
  std::vector<int> replica_axes;
  bool optional = false;
  std::vector<int> own_axes;  // of these, those whose ranks hold tensors of their own

  // Says in words how the layout was understood.
  std::string Describe(const RankMesh& mesh) const;
};

struct RunRules {
  RankMesh mesh;
  std::vector<Rule> rules;
  std::vector<PathPattern> ignore;

  // mesh: the ranks, where the layout does not say. INVALID_ARGUMENT naming the rule and what is wrong with
  // it.
  static absl::StatusOr<RunRules> Create(const RunLayout& layout, const DeviceMesh& mesh, int num_ranks);
};

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_RUN_RULES_H_
