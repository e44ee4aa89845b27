// Checkpoints that others wrote, told apart by what is in them.

#ifndef OTT_CORE_CHECKPOINT_CHECKPOINT_H_
#define OTT_CORE_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/value.h"

namespace ott {

// Tensors stay in their files, mapped, and may be scattered (scattered_elements.h).
struct Checkpoint {
  std::string format;  // "torch.save", "safetensors", "a folder of 5 files", ...
  Value state;         // a map by name; or what else the file holds
};

// A file of torch.save (an archive, or as before PyTorch 1.6), TorchScript, LibTorch, safetensors, NumPy
// (.npz) or pickle.dump; an index of Hugging Face's with the files that it names, of safetensors or
// torch.save; a folder of several of these and JSON files, as Accelerate and Hugging Face's Trainer write:
// each is a value of the file's name without its extension, except that a model's weights are "model". Of
// other files in a folder the bytes are the value.
//
// Reads a checkpoint, and runs nothing that a file asks for. Errors name the file and the place in it:
// NOT_FOUND; DATA_LOSS for what is cut; INVALID_ARGUMENT for what is no checkpoint, and for names that lead
// out of the folder.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path);

// Returns true if the path is a file, or a folder with a checkpoint's files in it. Looks at names and at the
// first bytes of files alone.
bool IsCheckpoint(const std::string& path);

// The checkpoints in a folder whose names are a step's or an epoch's, such as checkpoint-200, global_step200,
// iter_0000200, step_200.pt and epoch=1-step=200.ckpt, by that number, the last one in the name. Empty where
// there is none, and where two have one number.
std::map<int64_t, std::string> ListCheckpoints(const std::string& dir);
// The names of other checkpoints in such a folder, such as last.ckpt: files but for JSON, and folders with
// some.
std::vector<std::string> ListOtherCheckpoints(const std::string& dir);

// Returns all values of a state in its order, by path: tensors; numbers and bools, as tensors without
// dimensions; texts and None (NamedTensor::Content::kText), as tensors without elements.
std::vector<NamedTensor> ListValues(const Value& state);

}  // namespace ott

#endif  // OTT_CORE_CHECKPOINT_CHECKPOINT_H_
