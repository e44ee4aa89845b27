// Tells by a value's name which part of a training's state it belongs to.

#ifndef OTT_CORE_CHECKPOINT_STATE_KIND_H_
#define OTT_CORE_CHECKPOINT_STATE_KIND_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace ott {

// In the order in which a report names them.
enum class StateKind : uint8_t {
  kWeights,  // parameters and buffers
  kMoments,  // what an optimizer keeps of each parameter
  kStep,     // how often the optimizer stepped
  kMasterWeights,
  kHyperparameters,
  kSchedule,  // of the learning rate
  kScaler,    // of the loss
  kRandom,    // generators of random numbers
  kData,      // the position in the data, epochs and iterations
  kConfiguration,
  kOther,
};
inline constexpr int kNumStateKinds = static_cast<int>(StateKind::kOther) + 1;

// Returns "weights", "optimizer moments", "optimizer step", ...
std::string_view Name(StateKind kind);

// By the names that PyTorch, Hugging Face, Lightning, DeepSpeed and Megatron use: "optimizer.state.0.exp_avg"
// are moments. is_tensor: of numbers with an extent. A tensor with none of these names is a weight; anything
// else is kOther.
StateKind StateKindOf(std::string_view path, bool is_tensor);

// The rank that a path names, as "random_states_3.torch" and "mp_rank_03.model" do; nullopt where it names
// none.
std::optional<int> RankOfPath(std::string_view path);

}  // namespace ott

#endif  // OTT_CORE_CHECKPOINT_STATE_KIND_H_
