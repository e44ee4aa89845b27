#include "ott/core/checkpoint/torch_file.h"

#include <cstring>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/checkpoint/torch_objects.h"
#include "ott/core/pickle/pickle.h"

namespace ott {
namespace {

using Type = PlainData::Type;

constexpr std::string_view kPickle = "data.pkl";

// Returns the folder that holds all entries of PyTorch's archives, with the slash; empty if there is no
// pickle.
std::string FolderOf(const ZipArchive& archive) {
  for (const ZipArchive::Entry& entry : archive.entries()) {
    const size_t slash = entry.name.find('/');
    if (slash != entry.name.npos && entry.name.substr(slash + 1) == kPickle) {
      return std::string(entry.name.substr(0, slash + 1));
    }
  }
  return "";
}

absl::Status WrongSize(std::string_view key, int64_t num_stored, int64_t num_bytes) {
  return absl::DataLossError(absl::StrCat("storage '", std::string(key), "' has ", num_stored,
                                          " bytes, but the pickle says ", num_bytes));
}

// The magic number, as the pickle of an integer of ten bytes that each such file begins with.
constexpr std::string_view kLegacyMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);

struct PickleAt {
  Pickle pickle;
  size_t end = 0;
};

absl::StatusOr<PickleAt> ParseAt(std::string_view bytes, size_t at) {
  absl::StatusOr<Pickle> pickle = ParsePickle(bytes.substr(at));
  if (!pickle.ok()) return WithContext(absl::StrCat("the pickle at byte ", at), pickle.status());
  PickleAt result{*std::move(pickle)};
  result.end = at + result.pickle.num_bytes;
  return result;
}

// The attributes of modules within modules by the names that state_dict() has: "1.weight". Without what every
// module has and no state_dict() does, such as that parameters require gradients.
void AddAttributes(const std::string& path, const Value::Map& module, Value::Map* attributes) {
  for (const auto& [name, value] : module) {
    const bool says_requires_grad =
        name.size() > kAttributesEnd.size() &&
        std::string_view(name).substr(name.size() - kAttributesEnd.size()) == kAttributesEnd;
    if (name == kClassEntry || name == "training" || value.is_null() || says_requires_grad) continue;
    const std::string child = JoinPath(path, name);
    if (value.is_map()) {
      AddAttributes(child, value.map(), attributes);
    } else {
      attributes->Insert(child, value);
    }
  }
}

}  // namespace

bool IsTorchArchive(const ZipArchive& archive) { return !FolderOf(archive).empty(); }

bool IsTorchScript(const ZipArchive& archive) {
  return archive.Find(FolderOf(archive) + "constants.pkl") != nullptr;
}

absl::StatusOr<Value> ReadTorchArchive(const ZipArchive& archive) {
  const std::string folder = FolderOf(archive);
  for (const ZipArchive::Entry& entry : archive.entries()) {
    if (entry.name.substr(0, folder.size()) == folder) continue;
    return absl::InvalidArgumentError(absl::StrCat("the archive has '", std::string(entry.name),
                                                   "' beside its folder '", folder,
                                                   "', which PyTorch writes nothing beside"));
  }
  if (const ZipArchive::Entry* const order = archive.Find(folder + "byteorder")) {
    OTT_ASSIGN_OR_RETURN(const HeldBytes bytes, archive.Read(*order));
    if (bytes.bytes != "little") {
      return absl::UnimplementedError("the file was written by a machine of another order of bytes");
    }
  }
  OTT_ASSIGN_OR_RETURN(const HeldBytes bytes, archive.Read(*archive.Find(folder + std::string(kPickle))));
  absl::StatusOr<Pickle> pickle = ParsePickle(bytes.bytes);
  if (!pickle.ok()) return WithContext(std::string(kPickle), pickle.status());
  // Storages of which the archive holds a deflated copy are unpacked once.
  std::unordered_map<std::string, HeldBytes> opened;
  const auto open = [&](std::string_view key, std::optional<int64_t> num_bytes) -> absl::StatusOr<HeldBytes> {
    const std::string name = absl::StrCat(folder, "data/", std::string(key));
    if (const auto found = opened.find(name); found != opened.end()) return found->second;
    const ZipArchive::Entry* const entry = archive.Find(name);
    if (entry == nullptr) {
      return absl::DataLossError(absl::StrCat("storage '", std::string(key), "' is not in the file"));
    }
    if (num_bytes.has_value() && entry->num_bytes != *num_bytes)
      return WrongSize(key, entry->num_bytes, *num_bytes);
    OTT_ASSIGN_OR_RETURN(const HeldBytes storage, archive.Read(*entry));
    opened.emplace(name, storage);
    return storage;
  };
  OTT_ASSIGN_OR_RETURN(Value state, ToValue(*pickle, open));
  if (!IsTorchScript(archive) || !state.is_map()) return state;
  Value::Map attributes;
  AddAttributes("", state.map(), &attributes);
  return Value(std::move(attributes));
}

bool IsLegacyTorchFile(std::string_view bytes) {
  return bytes.substr(0, kLegacyMagic.size()) == kLegacyMagic;
}

absl::StatusOr<Value> ReadLegacyTorchFile(const HeldBytes& file) {
  const std::string_view bytes = file.bytes;
  OTT_ASSIGN_OR_RETURN(const PickleAt version, ParseAt(bytes, kLegacyMagic.size()));
  OTT_ASSIGN_OR_RETURN(const PickleAt system, ParseAt(bytes, version.end));
  OTT_ASSIGN_OR_RETURN(const PickleAt main, ParseAt(bytes, system.end));
  OTT_ASSIGN_OR_RETURN(const PickleAt keys, ParseAt(bytes, main.end));
  const PlainData& about = system.pickle.data;
  const PlainData::Value* const little = about.Find(about[system.pickle.root], "little_endian");
  if (little != nullptr && little->integer == 0) {
    return absl::UnimplementedError("the file was written by a machine of another order of bytes");
  }
  // The sizes of elements are in the main pickle alone, with each storage.
  const PlainData& data = main.pickle.data;
  std::unordered_map<std::string_view, int64_t> element_bytes;
  for (size_t i = 0; i < data.size(); ++i) {
    const PlainData::Value& value = data[static_cast<PlainData::Index>(i)];
    if (value.type != Type::kPersistent) continue;
    const PlainData::Value& id = data[value.items[0]];
    if (id.items.size() < 5) continue;
    if (const std::optional<int64_t> size = StorageElementBytes(data[id.items[1]].text))
      element_bytes[data[id.items[2]].text] = *size;
  }
  std::unordered_map<std::string_view, std::string_view> storages;
  const PlainData::Value& list = keys.pickle.data[keys.pickle.root];
  size_t at = keys.end;
  for (const PlainData::Index item : list.items) {
    const std::string_view key = TextOf(&keys.pickle.data[item]);
    const auto size = element_bytes.find(key);
    if (size == element_bytes.end()) {
      return absl::InvalidArgumentError(absl::StrCat("storage '", std::string(key), "' is of no known type"));
    }
    int64_t num_elements = 0;
    if (bytes.size() - at >= sizeof(num_elements))
      std::memcpy(&num_elements, &bytes[at], sizeof(num_elements));
    const auto left = static_cast<int64_t>(bytes.size() - at) - static_cast<int64_t>(sizeof(num_elements));
    if (left < 0 || num_elements < 0 || num_elements > left / size->second) {
      return absl::DataLossError(absl::StrCat("cut at byte ", bytes.size(), ", in storage '",
                                              std::string(key),
                                              "'; the program was probably killed while writing"));
    }
    at += sizeof(num_elements);
    storages[key] = bytes.substr(at, static_cast<size_t>(num_elements * size->second));
    at += static_cast<size_t>(num_elements * size->second);
  }
  const auto open = [&](std::string_view key, std::optional<int64_t> num_bytes) -> absl::StatusOr<HeldBytes> {
    const auto found = storages.find(key);
    if (found == storages.end()) {
      return absl::DataLossError(absl::StrCat("storage '", std::string(key), "' is not in the file"));
    }
    const auto num_stored = static_cast<int64_t>(found->second.size());
    if (num_bytes.has_value() && num_stored != *num_bytes) return WrongSize(key, num_stored, *num_bytes);
    return HeldBytes{found->second, file.owner, file.file_backed};
  };
  return ToValue(main.pickle, open);
}

absl::StatusOr<Value> ReadPickleFile(const HeldBytes& file) {
  OTT_ASSIGN_OR_RETURN(const Pickle pickle, ParsePickle(file.bytes));
  if (pickle.num_bytes != file.bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pickle that ends at byte ", pickle.num_bytes, " of ", file.bytes.size()));
  }
  return ToValue(pickle, [](std::string_view, std::optional<int64_t>) -> absl::StatusOr<HeldBytes> {
    return absl::InvalidArgumentError("a pickle by itself has no storages");
  });
}

}  // namespace ott
