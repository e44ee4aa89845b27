#include "ott/dist/share/far_index.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"

namespace ott::internal {
namespace {

// RUN/attempt_2/rank_00003/dumps/12
constexpr int kMaxDepth = 4;

// "out/run" of "./out//run/".
std::string Normal(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

std::vector<std::string> NamesIn(const std::string& directory) {
  return ListDirectory(directory).value_or(std::vector<std::string>());
}

// FNV-1a of the names in the folders.
uint64_t HashNames(const google::protobuf::RepeatedPtrField<std::string>& paths) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  };
  for (const std::string& path : paths) {
    add(path);
    add(IsDirectory(path) ? "folder" : IsRegularFile(path) ? "file" : "");
    for (const std::string& name : NamesIn(path)) add(name);
  }
  return hash;
}

void AddBelow(const std::string& path, int depth, Listing* listing) {
  Listing::Entry& entry = *listing->add_entries();
  entry.set_path(path);
  entry.set_is_directory(IsDirectory(path));
  const std::string parent = std::filesystem::path(path).parent_path().filename().string();
  if (!entry.is_directory() || depth == kMaxDepth || parent == "dumps" || parent == "op_tensors") return;
  for (const std::string& name : NamesIn(path)) AddBelow(absl::StrCat(path, "/", name), depth + 1, listing);
}

}  // namespace

ListingRequest AskForListing(const std::vector<std::string>& paths) {
  ListingRequest request;
  for (const std::string& path : paths) request.add_paths(Normal(path));
  request.set_names(HashNames(request.paths()));
  return request;
}

Listing ListBelow(const ListingRequest& request) {
  Listing listing;
  listing.set_is_same(HashNames(request.paths()) == request.names());
  if (listing.is_same()) return listing;
  for (const std::string& path : request.paths()) {
    if (PathExists(path)) AddBelow(path, 0, &listing);
  }
  return listing;
}

FarIndex::FarIndex(std::function<std::string(int)> host, ReadAt read)
    : host_(std::move(host)), read_(std::move(read)) {}

void FarIndex::Add(int process, const Listing& listing) {
  for (const Listing::Entry& theirs : listing.entries()) {
    const size_t slash = theirs.path().rfind('/');
    if (slash != std::string::npos)
      names_[theirs.path().substr(0, slash)].insert(theirs.path().substr(slash + 1));
    Entry& entry = entries_[theirs.path()];
    if (entry.owners.empty()) entry.is_directory = theirs.is_directory();
    entry.owners.push_back(process);
  }
}

const FarIndex::Entry* FarIndex::Find(const std::string& path) const {
  const auto found = entries_.find(Normal(path));
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<int> FarIndex::Owners(const std::string& path) const {
  const Entry* const entry = Find(path);
  return entry == nullptr ? std::vector<int>() : entry->owners;
}

FarFiles::Kind FarIndex::KindOf(const std::string& path) const {
  const Entry* const entry = Find(path);
  if (entry == nullptr) return Kind::kNone;
  return entry->is_directory ? Kind::kDirectory : Kind::kFile;
}

std::string FarIndex::HostOf(const std::string& path) const {
  const Entry* const entry = Find(path);
  return entry == nullptr ? "" : host_(entry->owners[0]);
}

std::vector<std::string> FarIndex::List(const std::string& directory) const {
  const auto found = names_.find(Normal(directory));
  if (found == names_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

absl::StatusOr<std::string> FarIndex::Read(const std::string& path, int64_t max_bytes) {
  return read_(path, max_bytes);
}

}  // namespace ott::internal
