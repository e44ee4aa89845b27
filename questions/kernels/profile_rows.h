// The kernels, memory copies and memsets of a profile as rows.

#ifndef OTT_QUESTIONS_KERNELS_PROFILE_ROWS_H_
#define OTT_QUESTIONS_KERNELS_PROFILE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ott/core/kernel_profile/profile.h"
#include "ott/core/op_cost/device_peaks.h"
#include "ott/core/op_cost/kernel_name.h"
#include "ott/core/op_cost/op_cost.h"
#include "ott/questions/kernels/kernel_join.h"
#include "ott/questions/kernels/kernel_rows.h"

namespace ott::kernels {

// Not thread-safe: costs are computed at their first use.
//
// The cost of a call of an op is its longest kernel's, one that multiplies matrices before any other; in the
// backward of a matrix op the two longest such kernels carry a gradient each. All other kernels of the call
// are counted elsewhere.
class ProfileRows : public KernelRows {
 public:
  // profile, join: must outlive the rows. gpu: peaks to compare with where the profile does not tell the
  // device. at: globs of ops, by commas. Of the ops that called each other, the outermost one like one of
  // them gives its name and arguments to the row. Else the innermost does, and the forward op of what is in
  // backward.
  ProfileRows(const Profile& profile, const KernelJoin& join, std::optional<DevicePeaks> gpu,
              const std::string& at = "");

  // Returns the devices whose peaks are not known, each once: their rows' `peak` and `roof` are unknown.
  std::set<std::string> DevicesWithoutPeaks() const;

  size_t size() const override { return profile_.kernels.size() + profile_.transfers.size(); }
  void Get(size_t index, KernelRow* row) const override;

 private:
  struct Name {
    std::string full;
    std::string brief;
    TensorCoreUse tensor_cores;
    KernelKind kind;
    std::optional<DType> dtype;
  };
  struct Context {
    std::string_view layer, source, direction, module, op, phase;
    std::string calls;
    uint32_t arguments_label = kNone;  // the label that has arguments as PyTorch's traces do
    uint32_t cost_label = kNone;       // the label that gives shapes
    OpPass pass = OpPass::kForward;
  };
  struct Cost {
    OpCost cost;
    std::string_view dtype;
  };
  // The kernels that carry a call's cost.
  struct Carriers {
    uint32_t first = kNone;
    uint32_t second = kNone;
    uint32_t num_kernels = 0;
    uint32_t nanoseconds = 0;  // of all kernels; at most 4.29 s
  };

  // A row's kernel, or its copy or memset; kNone for what it is not.
  struct Activity {
    uint32_t kernel = kNone;
    uint32_t transfer = kNone;
  };
  Activity ActivityOf(size_t row) const;

  void ReadNames();
  void ReadContexts(const std::string& at);
  // Finds the outermost of the ops that called a context's, itself included; kNone if none is.
  uint32_t OutermostLike(const std::vector<std::string>& globs, const LaunchContext& context) const;
  void Count();
  // Orders the kernels that multiply first, then the long ones.
  bool Before(uint32_t a, uint32_t b) const;
  const Cost& CostOfKernel(uint32_t context, uint32_t name) const;
  // Fills what kernels and transfers have in common; false if no op is known for it.
  template <typename Of>
  bool SetContext(const Of& of, KernelRow* row) const;
  void SetOp(const Context& context, KernelRow* row) const;
  void SetCosts(uint32_t index, KernelRow* row) const;
  void SetCollective(uint32_t index, KernelRow* row) const;
  void SetTransfer(const Profile::Transfer& transfer, KernelRow* row) const;
  void SetRoof(const Profile::Kernel& kernel, const Name& name, std::string_view dtype, KernelRow* row) const;

  const Profile& profile_;
  const KernelJoin& join_;
  const std::optional<DevicePeaks> gpu_;
  std::map<int, DevicePeaks> peaks_;  // of the devices
  std::vector<Name> names_;
  std::vector<Context> contexts_;
  std::vector<std::pair<std::string, std::string>> geometries_;
  std::vector<uint32_t> rows_of_transfers_;  // ascending, as the transfers
  std::vector<uint32_t> collective_of_;      // by kernel, if there are any: the index; kNone
  std::vector<std::string> transfer_names_;
  std::vector<uint32_t> subs_;  // of each row
  std::vector<int64_t> gaps_;
  std::vector<Carriers> carriers_;  // of each call of an op
  mutable absl::flat_hash_map<std::pair<uint32_t, uint32_t>, std::unique_ptr<Cost>> costs_;
};

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_PROFILE_ROWS_H_
