// Files that torch.save, torch.jit.save and LibTorch wrote.

#ifndef OTT_CORE_CHECKPOINT_TORCH_FILE_H_
#define OTT_CORE_CHECKPOINT_TORCH_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ott/core/checkpoint/zip_archive.h"
#include "ott/core/tensor/value.h"

namespace ott {

// Since PyTorch 1.6: an archive of one folder, with data.pkl and the storages in data/. Also TorchScript's,
// which LibTorch's torch::save and OutputArchive write too: attributes by the names that state_dict() has,
// without `training` and None, and code that is not looked at. Tensors stay in the file. Errors of
// ZipArchive, ParsePickle() and ToValue().
absl::StatusOr<Value> ReadTorchArchive(const ZipArchive& archive);

// Returns true if the archive is such a file.
bool IsTorchArchive(const ZipArchive& archive);
// Returns true if it is TorchScript, which holds code too. REQUIRES: IsTorchArchive(archive)
bool IsTorchScript(const ZipArchive& archive);

// Reads what torch.save wrote before, and writes with _use_new_zipfile_serialization=False: pickles and
// storages, one after the other.
absl::StatusOr<Value> ReadLegacyTorchFile(const HeldBytes& file);
bool IsLegacyTorchFile(std::string_view bytes);

// Reads what pickle.dump wrote, without storages.
absl::StatusOr<Value> ReadPickleFile(const HeldBytes& file);

}  // namespace ott

#endif  // OTT_CORE_CHECKPOINT_TORCH_FILE_H_
