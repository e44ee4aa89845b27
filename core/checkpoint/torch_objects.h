// Turns a pickle of PyTorch's into a tree of values.

#ifndef OTT_CORE_CHECKPOINT_TORCH_OBJECTS_H_
#define OTT_CORE_CHECKPOINT_TORCH_OBJECTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ott/core/checkpoint/zip_archive.h"
#include "ott/core/pickle/pickle.h"
#include "ott/core/tensor/value.h"

namespace ott {

// The bytes of a storage, by its key in the pickle. num_bytes: what the pickle says that it has; nullopt if
// StorageElementBytes() does not know its type.
using OpenStorage =
    std::function<absl::StatusOr<HeldBytes>(std::string_view key, std::optional<int64_t> num_bytes)>;

// The entry of a map that stands for an object: the name of its class, or of the function that makes it.
inline constexpr char kClassEntry[] = "__class__";

// Ends the name of the entry beside a tensor that has what its elements do not say.
inline constexpr std::string_view kAttributesEnd = " (attributes)";

// Tensors, parameters and NumPy's arrays are tensors that refer to the storages, bytes are tensors of uint8.
// Beside a tensor "NAME", "NAME (attributes)" has what its elements do not say, where that is not as usual: a
// tensor that requires gradients, a parameter that does not, a class and attributes of its own, a conjugate.
// Dictionaries of any class are maps, with numbers among the keys as texts; tuples, and sets in an order of
// their own, are lists; dtypes and functions are texts. Any other object is a map of kClassEntry, its
// attributes, and "args" or "items" where it has some, with the tensors in it. INVALID_ARGUMENT, naming the
// place, for a tensor that reaches out of its storage, a value that contains itself, nesting deeper than 200,
// and trees far larger than the pickle.
absl::StatusOr<Value> ToValue(const Pickle& pickle, const OpenStorage& open_storage);

// Returns the bytes of an element of a storage such as "torch.FloatStorage", or "torch.QInt8Storage" of
// quantized tensors. nullopt for any other.
std::optional<int64_t> StorageElementBytes(std::string_view name);

// Returns the dtype of a name such as "torch.float32" or "torch.FloatStorage"; uint8 for untyped storages.
// nullopt for any other.
std::optional<DType> TorchDType(std::string_view name);

}  // namespace ott

#endif  // OTT_CORE_CHECKPOINT_TORCH_OBJECTS_H_
