#include "ott/core/checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/checkpoint/distributed_checkpoint.h"
#include "ott/core/checkpoint/torch_file.h"
#include "ott/core/checkpoint/zero.h"
#include "ott/core/checkpoint/zip_archive.h"
#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/npy.h"
#include "ott/core/dump/safetensors.h"
#include "ott/core/tensor/scattered_elements.h"

namespace ott {
namespace {

namespace fs = std::filesystem;

// Folders of folders, such as Accelerate's of a sharded model, are read so deep.
constexpr int kMaxFolderDepth = 3;

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool IsSafetensors(std::string_view bytes) { return bytes.size() > 8 && bytes[8] == '{' && bytes[7] == 0; }
bool IsZip(std::string_view bytes) { return bytes.substr(0, 4) == "PK\3\4"; }
bool IsPickle(std::string_view bytes) {
  return bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

// A link in a folder must not lead out of it, but to a file of its own name, as in mirrors that build systems
// make. Hugging Face's cache is a folder of `snapshots`, whose links lead to its `blobs`.
absl::Status CheckLink(const fs::path& dir, const std::string& name) {
  std::error_code error;
  if (!fs::is_symlink(dir / name, error)) return absl::OkStatus();
  const fs::path target = fs::weakly_canonical(dir / name, error);
  fs::path root = fs::canonical(dir.empty() ? "." : dir, error);
  if (root.parent_path().filename() == "snapshots") root = root.parent_path().parent_path();
  const bool is_within =
      std::mismatch(root.begin(), root.end(), target.begin(), target.end()).first == root.end();
  if (!error && (is_within || target.filename() == name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat((dir / name).string(), ": is a link to ", target.string(),
                   ", which leads out of the folder; copy the file there, or give the folder that it is in"));
}

absl::StatusOr<HeldBytes> Map(const std::string& path) {
  OTT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return HeldBytes{{file->data(), static_cast<size_t>(file->size())}, file, /*file_backed=*/true};
}

// A row-major tensor, of any alignment.
absl::StatusOr<Tensor> TensorOf(const HeldBytes& file, const TensorView& view) {
  return ScatteredElements::Join(
      view.dtype(), view.shape(), view.shape(),
      {TensorPart{{view, file.owner, file.file_backed}, Dims(view.shape().size())}});
}

absl::StatusOr<Value> ReadSafetensors(const HeldBytes& file) {
  OTT_ASSIGN_OR_RETURN(const SafetensorsFile all, ListSafetensors(file.bytes));
  Value::Map map;
  for (const SafetensorsFile::Entry& entry : all.tensors) {
    OTT_ASSIGN_OR_RETURN(Tensor tensor,
                         TensorOf(file, TensorView(entry.bytes.data(), entry.dtype, entry.shape)));
    map.Insert(entry.name, std::move(tensor));
  }
  return Value(std::move(map));
}

absl::StatusOr<Value> ReadNpz(const ZipArchive& archive) {
  constexpr std::string_view kNpy = ".npy";
  Value::Map map;
  for (const ZipArchive::Entry& entry : archive.entries()) {
    const std::string name(entry.name);
    if (!EndsWith(name, kNpy)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a ZIP archive with '", name, "': neither torch.save's nor NumPy's"));
    }
    OTT_ASSIGN_OR_RETURN(const HeldBytes bytes, archive.Read(entry));
    const absl::StatusOr<TensorView> view = ParseNpy(bytes.bytes);
    if (!view.ok()) return WithContext(name, view.status());
    OTT_ASSIGN_OR_RETURN(Tensor tensor, TensorOf(bytes, *view));
    map.Insert(name.substr(0, name.size() - kNpy.size()), std::move(tensor));
  }
  return Value(std::move(map));
}

absl::StatusOr<Checkpoint> ReadZip(const HeldBytes& file) {
  OTT_ASSIGN_OR_RETURN(const ZipArchive archive, ZipArchive::Open(file));
  Checkpoint checkpoint;
  if (IsTorchArchive(archive)) {
    checkpoint.format = IsTorchScript(archive) ? "TorchScript" : "torch.save";
    OTT_ASSIGN_OR_RETURN(checkpoint.state, ReadTorchArchive(archive));
  } else {
    checkpoint.format = "NumPy .npz";
    OTT_ASSIGN_OR_RETURN(checkpoint.state, ReadNpz(archive));
  }
  return checkpoint;
}

absl::StatusOr<Checkpoint> ReadIndex(const std::string& path, const Value& index);

absl::StatusOr<Checkpoint> ReadJson(const std::string& path, const HeldBytes& file) {
  Checkpoint checkpoint;
  checkpoint.format = "JSON";
  OTT_ASSIGN_OR_RETURN(checkpoint.state, ParseJson(file.bytes));
  if (checkpoint.state.is_map() && checkpoint.state.map().Find("weight_map") != nullptr) {
    return ReadIndex(path, checkpoint.state);
  }
  return checkpoint;
}

absl::StatusOr<Checkpoint> ReadCheckpointFile(const std::string& path) {
  OTT_ASSIGN_OR_RETURN(const HeldBytes file, Map(path));
  Checkpoint checkpoint;
  if (IsZip(file.bytes)) return ReadZip(file);
  if (IsLegacyTorchFile(file.bytes)) {
    checkpoint.format = "torch.save, as before PyTorch 1.6";
    OTT_ASSIGN_OR_RETURN(checkpoint.state, ReadLegacyTorchFile(file));
  } else if (IsPickle(file.bytes)) {
    checkpoint.format = "pickle";
    OTT_ASSIGN_OR_RETURN(checkpoint.state, ReadPickleFile(file));
  } else if (IsSafetensors(file.bytes) || EndsWith(path, ".safetensors")) {
    checkpoint.format = "safetensors";
    OTT_ASSIGN_OR_RETURN(checkpoint.state, ReadSafetensors(file));
  } else if (EndsWith(path, ".json")) {
    return ReadJson(path, file);
  } else {
    return absl::InvalidArgumentError(
        file.bytes.empty()
            ? "is empty"
            : "is no checkpoint: neither torch.save's, TorchScript's, safetensors, NumPy's .npz, "
              "a pickle nor JSON");
  }
  return checkpoint;
}

absl::StatusOr<Checkpoint> ReadNamed(const std::string& path) {
  absl::StatusOr<Checkpoint> checkpoint = ReadCheckpointFile(path);
  if (checkpoint.ok()) return checkpoint;
  // An error of a file names the file already.
  const std::string message(checkpoint.status().message());
  return message.find(path) != message.npos ? checkpoint.status() : WithContext(path, checkpoint.status());
}

// {"weight_map": {"name": "file"}}: the tensors of all files, each of which has to be where the map says.
absl::StatusOr<Checkpoint> ReadIndex(const std::string& path, const Value& index) {
  const Value& weight_map = *index.map().Find("weight_map");
  if (!weight_map.is_map()) return absl::InvalidArgumentError("\"weight_map\" is no map of names to files");
  Checkpoint checkpoint;
  std::map<std::string, Value> files;
  Value::Map merged;
  for (const auto& [name, file] : weight_map.map()) {
    if (file.kind() != Value::Kind::kString) {
      return absl::InvalidArgumentError(absl::StrCat("the file of '", name, "' is no text"));
    }
    const std::string& file_name = file.string_value();
    if (file_name.find('/') != file_name.npos || file_name.empty() || file_name[0] == '.') {
      return absl::InvalidArgumentError(
          absl::StrCat("the file of '", name, "', '", file_name, "', leads out of the folder"));
    }
    // An index may name itself.
    if (EndsWith(file_name, ".json")) {
      return absl::InvalidArgumentError(
          absl::StrCat("the file of '", name, "', '", file_name, "', is no file of tensors"));
    }
    auto found = files.find(file_name);
    if (found == files.end()) {
      OTT_RETURN_IF_ERROR(CheckLink(fs::path(path).parent_path(), file_name));
      OTT_ASSIGN_OR_RETURN(Checkpoint part, ReadNamed((fs::path(path).parent_path() / file_name).string()));
      if (!part.state.is_map()) return absl::InvalidArgumentError(file_name + " has no tensors by name");
      checkpoint.format = part.format;
      found = files.emplace(file_name, std::move(part.state)).first;
    }
    const Value* const value = found->second.map().Find(name);
    if (value == nullptr)
      return absl::DataLossError(absl::StrCat(file_name, " has no '", name, "', as the index says"));
    merged.Insert(name, *value);
  }
  for (const auto& [file_name, part] : files) {
    for (const auto& [name, value] : part.map()) {
      const Value* const listed = weight_map.map().Find(name);
      if (listed != nullptr && listed->string_value() == file_name) continue;
      return absl::DataLossError(absl::StrCat(
          file_name, " has '", name, "', which the index does not say: they are of different checkpoints"));
    }
  }
  absl::StrAppend(&checkpoint.format, " in ", files.size(), " files with an index");
  checkpoint.state = std::move(merged);
  return checkpoint;
}

bool IsRead(const std::string& name) {
  for (const char* const extension :
       {".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".npz", ".pkl", ".json", ".torch"}) {
    if (EndsWith(name, extension)) return true;
  }
  return false;
}

// Names of files, as a folder's state has them.
std::string StateName(const std::string& file_name) {
  if (!IsRead(file_name)) return file_name;
  std::string stem = file_name.substr(0, file_name.find('.', 1));
  // Weights have the same name in each format.
  if (stem == "pytorch_model" || stem == "adapter_model") return "model";
  return stem;
}

// The folder that a file at the top names as the latest one; `dir` itself where there is none.
std::string LatestOf(const std::string& dir) {
  for (const char* const file : {"latest", "latest_checkpointed_iteration.txt"}) {
    const absl::StatusOr<std::string> text = ReadFile(absl::StrCat(dir, "/", file), /*max_bytes=*/4096);
    if (!text.ok()) continue;
    const std::string name = text->substr(0, text->find_first_of("\r\n \t"));
    // Megatron writes the number alone.
    for (const std::string& folder :
         {name, absl::StrCat("iter_", std::string(7 - std::min<size_t>(7, name.size()), '0'), name)}) {
      const std::string path = absl::StrCat(dir, "/", folder);
      if (!name.empty() && name[0] != '.' && name.find('/') == name.npos && IsDirectory(path)) return path;
    }
  }
  return dir;
}

// The number of "checkpoint-200", "epoch=1-step=200.ckpt"; nullopt for other names.
std::optional<int64_t> NumberOfStep(const std::string& name) {
  const std::string stem = name.substr(0, name.find('.', 1));
  const size_t digits = stem.find_last_not_of("0123456789") + 1;
  if (stem.size() < name.size() && !IsRead(name)) return std::nullopt;
  std::string word = stem.substr(0, digits);
  while (!word.empty() && (word.back() == '-' || word.back() == '_' || word.back() == '=')) word.pop_back();
  // Parts of a checkpoint, mostly one a rank: without one of them, a run is not resumed but incomplete.
  for (const char* const part : {"rng_state", "model_state", "optim_state", "optimizer_state"}) {
    if (EndsWith(word, part)) return std::nullopt;
  }
  word = word.substr(word.find_last_of("-_=") + 1);
  for (const char* const known :
       {"checkpoint", "ckpt", "step", "steps", "iter", "iteration", "epoch", "save", "state"}) {
    int64_t number = 0;
    if (word == known && absl::SimpleAtoi(stem.substr(digits), &number)) return number;
  }
  return std::nullopt;
}

constexpr std::string_view kZeroOptimizer = "_mp_rank_00_optim_states.pt";
constexpr std::string_view kZeroModel = "mp_rank_00_model_states.pt";

// The rank of DeepSpeed's "bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt"; nullopt for other names.
std::optional<int> RankOfZeroFile(const std::string& name, std::string_view end) {
  constexpr std::string_view kRank = "zero_pp_rank_";
  const size_t at = name.find(kRank);
  int rank = 0;
  if (at == name.npos || !EndsWith(name, end)) return std::nullopt;
  const size_t begin = at + kRank.size();
  const bool parsed = absl::SimpleAtoi(name.substr(begin, name.find('_', begin) - begin), &rank);
  return parsed ? std::optional<int>(rank) : std::nullopt;
}

bool IsZeroOptimizer(const std::string& name) { return RankOfZeroFile(name, kZeroOptimizer).has_value(); }

// The states in files of ranks, by rank, of which none may be missing.
absl::StatusOr<std::vector<Value>> ReadRanks(const std::string& dir, const char* what,
                                             const std::map<int, std::string>& by_rank) {
  std::vector<Value> states;
  for (const auto& [rank, name] : by_rank) {
    if (rank != static_cast<int>(states.size())) {
      return absl::DataLossError(absl::StrCat(dir, ": has no ", what, " of rank ", states.size()));
    }
    OTT_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadNamed(absl::StrCat(dir, "/", name)));
    states.push_back(std::move(checkpoint.state));
  }
  return states;
}

absl::StatusOr<Checkpoint> ReadZero(const std::string& dir, const std::set<std::string>& names) {
  std::map<int, std::string> optimizers, models;
  for (const std::string& name : names) {
    if (const std::optional<int> rank = RankOfZeroFile(name, kZeroOptimizer)) optimizers[*rank] = name;
    // Stage 3 writes one a rank, the others one.
    if (EndsWith(name, kZeroModel)) models[RankOfZeroFile(name, kZeroModel).value_or(0)] = name;
    if (name.find("mp_rank_01") != name.npos || name.find("expert") != name.npos) {
      return absl::UnimplementedError(dir + ": ZeRO with model parallelism or experts is not put together");
    }
  }
  if (models.empty()) return absl::DataLossError(absl::StrCat(dir, ": has no ", std::string(kZeroModel)));
  OTT_ASSIGN_OR_RETURN(const std::vector<Value> of_models, ReadRanks(dir, "ZeRO model", models));
  OTT_ASSIGN_OR_RETURN(const std::vector<Value> partitions, ReadRanks(dir, "ZeRO partition", optimizers));
  if (of_models.size() > 1 && of_models.size() != partitions.size()) {
    return absl::DataLossError(absl::StrCat(dir, ": has ", of_models.size(), " ZeRO models, but ",
                                            partitions.size(), " partitions"));
  }
  absl::StatusOr<Value> state = JoinZeroPartitions(of_models, partitions);
  if (!state.ok()) return WithContext(dir, state.status());
  return Checkpoint{"DeepSpeed ZeRO", *std::move(state)};
}

absl::StatusOr<Checkpoint> ReadFolder(const std::string& dir, int depth);

void AppendValues(const std::string& path, const Value& value, std::vector<NamedTensor>* values) {
  if (const std::optional<Tensor> tensor = AsTensor(value)) {
    values->push_back({path, *tensor});
  } else if (value.is_list()) {
    for (size_t i = 0; i < value.list().size(); ++i)
      AppendValues(JoinPath(path, absl::StrCat(i)), value.list()[i], values);
  } else if (value.is_map()) {
    for (const auto& [name, child] : value.map()) AppendValues(JoinPath(path, name), child, values);
  } else {
    values->push_back(
        {path, {TensorView(nullptr, DType::kUInt8, {0}), nullptr}, NamedTensor::Content::kText});
  }
}

// Reads the files of a folder that make one checkpoint together, and removes them from `names`. nullopt if
// each file stands for itself.
absl::StatusOr<std::optional<Checkpoint>> ReadTogether(const std::string& dir, int depth,
                                                       std::set<std::string>* names) {
  const auto remove = [names](const auto& is_read) {
    for (auto name = names->begin(); name != names->end();)
      name = is_read(*name) ? names->erase(name) : ++name;
  };
  std::optional<Checkpoint> together;
  if (const std::string latest = LatestOf(dir); latest != dir) {
    OTT_ASSIGN_OR_RETURN(together, ReadFolder(latest, depth + 1));
    absl::StrAppend(&together->format, " of ", fs::path(latest).filename().string());
    // Other folders are earlier checkpoints; files are of the latest one.
    remove([&](const std::string& name) {
      return name.rfind("latest", 0) == 0 || name == "zero_to_fp32.py" || name == "zero_to_torch.py" ||
             IsDirectory(absl::StrCat(dir, "/", name));
    });
  } else if (names->count(kDistributedMetadata) != 0) {
    OTT_ASSIGN_OR_RETURN(Value state, ReadDistributedCheckpoint(dir));
    together = Checkpoint{"a distributed checkpoint", std::move(state)};
    remove([](const std::string& name) { return name == kDistributedMetadata || EndsWith(name, ".distcp"); });
  } else if (std::any_of(names->begin(), names->end(), IsZeroOptimizer)) {
    OTT_ASSIGN_OR_RETURN(together, ReadZero(dir, *names));
    remove([](const std::string& name) { return IsZeroOptimizer(name) || EndsWith(name, kZeroModel); });
  } else if (names->count(std::string(kZeroModel)) != 0 && names->count("mp_rank_01_model_states.pt") == 0) {
    // Without ZeRO, one file holds all.
    OTT_ASSIGN_OR_RETURN(together, ReadNamed(absl::StrCat(dir, "/", std::string(kZeroModel))));
    together->format = "DeepSpeed";
    names->erase(std::string(kZeroModel));
  }
  return together;
}

absl::StatusOr<Checkpoint> ReadFolder(const std::string& dir, int depth) {
  if (depth > kMaxFolderDepth) {
    return absl::InvalidArgumentError(absl::StrCat(dir, ": is more than ", kMaxFolderDepth, " folders deep"));
  }
  std::error_code error;
  std::set<std::string> names;
  for (fs::directory_iterator entry(dir, error), end; entry != end; entry.increment(error)) {
    names.insert(entry->path().filename().string());
    OTT_RETURN_IF_ERROR(CheckLink(dir, entry->path().filename().string()));
  }
  if (error) return absl::NotFoundError(absl::StrCat(dir, ": ", error.message()));
  OTT_ASSIGN_OR_RETURN(const std::optional<Checkpoint> together, ReadTogether(dir, depth, &names));
  // The files that an index names are read with the index.
  std::set<std::string> indexed;
  Checkpoint checkpoint;
  Value::Map map;
  if (together.has_value() && together->state.is_map()) map = together->state.map();
  int num_files = 0;
  const auto add = [&](const std::string& name, Checkpoint part) {
    std::string key = StateName(name);
    while (map.Find(key) != nullptr) key += "'";
    map.Insert(std::move(key), std::move(part.state));
    ++num_files;
  };
  for (const bool indices : {true, false}) {
    for (const std::string& name : names) {
      const std::string path = absl::StrCat(dir, "/", name);
      if (EndsWith(name, ".index.json") != indices || indexed.count(name) != 0) continue;
      if (IsDirectory(path)) {
        if (name[0] == '.') continue;
        OTT_ASSIGN_OR_RETURN(Checkpoint part, ReadFolder(path, depth + 1));
        if (part.state.is_map() && part.state.map().empty()) continue;
        add(name, std::move(part));
        continue;
      }
      OTT_ASSIGN_OR_RETURN(const HeldBytes file, Map(path));
      if (!IsRead(name)) {
        OTT_ASSIGN_OR_RETURN(Tensor bytes,
                             TensorOf(file, TensorView(file.bytes.data(), DType::kUInt8,
                                                       {static_cast<int64_t>(file.bytes.size())})));
        add(name, {"", std::move(bytes)});
        continue;
      }
      OTT_ASSIGN_OR_RETURN(Checkpoint part, ReadNamed(path));
      add(name, std::move(part));
      if (!indices) continue;
      OTT_ASSIGN_OR_RETURN(const Value index, ParseJson(file.bytes));
      const Value* const weight_map = index.is_map() ? index.map().Find("weight_map") : nullptr;
      if (weight_map == nullptr) continue;
      for (const auto& [tensor, file_name] : weight_map->map()) indexed.insert(file_name.string_value());
    }
  }
  checkpoint.format = absl::StrCat("a folder of ", num_files, " files");
  if (together.has_value()) {
    checkpoint.format =
        num_files == 0 ? together->format : absl::StrCat(together->format, " and ", num_files, " files");
  }
  checkpoint.state = std::move(map);
  return checkpoint;
}

}  // namespace

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path) {
  if (!IsDirectory(path)) return ReadNamed(path);
  OTT_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadFolder(path, 0));
  if (!checkpoint.state.map().empty()) return checkpoint;
  return absl::NotFoundError(path + ": no checkpoint is in this folder");
}

std::map<int64_t, std::string> ListCheckpoints(const std::string& dir) {
  std::map<int64_t, std::string> checkpoints;
  std::error_code error;
  for (fs::directory_iterator entry(dir, error), end; entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    const std::optional<int64_t> number = NumberOfStep(entry->path().filename().string());
    if (!number.has_value() || !IsCheckpoint(path)) continue;
    if (!checkpoints.emplace(*number, path).second) return {};
  }
  return checkpoints;
}

std::vector<std::string> ListOtherCheckpoints(const std::string& dir) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(dir, error), end; entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (NumberOfStep(name).has_value() || name[0] == '.') continue;
    const std::string path = entry->path().string();
    if (IsDirectory(path) ? IsCheckpoint(path) : IsRead(name) && !EndsWith(name, ".json")) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::vector<NamedTensor> ListValues(const Value& state) {
  std::vector<NamedTensor> values;
  AppendValues("", state, &values);
  return values;
}

bool IsCheckpoint(const std::string& path) {
  std::error_code error;
  fs::recursive_directory_iterator entry(path, error), end;
  for (; entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (EndsWith(name, ".index.json") || name == kDistributedMetadata) return true;
    if (!EndsWith(name, ".json") && IsRead(name) && IsRegularFile(entry->path().string())) return true;
    if (entry.depth() >= kMaxFolderDepth) entry.disable_recursion_pending();
  }
  return IsRegularFile(path);
}

}  // namespace ott
