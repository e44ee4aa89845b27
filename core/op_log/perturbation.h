// Inputs of a training that differ by rounding: what such a difference grows to is what the training itself
// makes of rounding, and not an error.

#ifndef OTT_CORE_OP_LOG_PERTURBATION_H_
#define OTT_CORE_OP_LOG_PERTURBATION_H_

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ott/core/base/process_wide.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

class PerturbConfig;  // config.proto

// Off until Enable(). A program offers its parameters once, after they are made or loaded:
//
//   OTT_RETURN_IF_ERROR(ott::Perturbation::Offer("weights.w1", w1.data(), {64, 32}));
//
// Thread-safe.
class Perturbation {
 public:
  struct Options {
    uint64_t seed = 1;
    // Each element moves by so many units in its last place, up or down at random.
    int ulps = 1;
    // Globs over paths; none: all.
    std::vector<std::string> paths;
  };

  // Options of an ott.Config.
  static Options FromConfig(const PerturbConfig& config);

  // Returns the one instance of the process. Aborts if another version of this library has it.
  static Perturbation& Get() { return process_wide_.Get(); }

  // Starts it. INVALID_ARGUMENT for ulps outside of [1, 2^20]; FAILED_PRECONDITION when called twice.
  absl::Status Enable(const Options& options);
  void Disable();

  // Moves the elements where this is enabled and the path selected; otherwise one load and a branch. The same
  // path, seed and shape move alike on all ranks, so replicas stay replicas. Zeros, NaN, infinities and
  // integers stay; nothing changes its sign or becomes infinite. UNIMPLEMENTED for device memory.
  template <typename T>
  static absl::Status Offer(std::string_view path, T* data, absl::Span<const int64_t> shape) {
    if (process_wide_.IfEnabled() == nullptr) return absl::OkStatus();
    return OfferView(path, TensorView(data, shape), data);
  }
  // Offers what a view views. data: the same memory, which is contiguous.
  static absl::Status OfferView(std::string_view path, const TensorView& view, void* data);

  // Paths that were moved.
  std::set<std::string> moved() const;

 private:
  absl::Status Move(std::string_view path, const TensorView& view, void* data);

  static ProcessWide<Perturbation> process_wide_;
  static const ProcessWide<Perturbation>::JoinAtLoad join_at_load_;

  mutable std::mutex mutex_;
  bool enabled_ = false;
  Options options_;
  std::set<std::string> moved_;
};

}  // namespace ott

#endif  // OTT_CORE_OP_LOG_PERTURBATION_H_
