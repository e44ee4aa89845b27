#include "tools/report/run_files.h"

#include <algorithm>
#include <ctime>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"

namespace ott::report {
namespace {

// Times of files are in ticks of some milliseconds, of some file systems in seconds.
constexpr std::time_t kSecondsToSettle = 3;
constexpr int kDepthOfDumps = 3;  // RUN/rank_00003/dumps/12

bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// Returns what follows /rank_00003/ in the path; empty if it is not in a rank's folder.
std::string_view InRank(std::string_view path) {
  constexpr std::string_view kRank = "/rank_";
  const size_t slash = path.find('/', 1);
  if (slash == std::string_view::npos || path.substr(0, kRank.size()) != kRank) return {};
  return path.substr(slash + 1);
}

bool BeginsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace

RunFiles::RunFiles(const std::string& run_dir, const RunFiles* before) : run_dir_(run_dir) {
  struct stat is = {};
  if (stat(run_dir.c_str(), &is) == 0) List("", is, 1, before);
}

void RunFiles::List(const std::string& folder, const struct stat& is, int depth, const RunFiles* before) {
  Folder& listed = folders_[folder];
  listed.is = is;
  const Folder* known = nullptr;
  if (before != nullptr) {
    const auto found = before->folders_.find(folder);
    if (found != before->folders_.end()) known = &found->second;
  }
  if (known != nullptr && !known->is_fresh && IsSame(known->is, is)) {
    listed.names = known->names;
  } else {
    listed.is_fresh = is.st_mtim.tv_sec + kSecondsToSettle >= std::time(nullptr);
    listed.names = ListDirectory(run_dir_ + folder).value_or(std::vector<std::string>());
  }
  for (const std::string& name : listed.names) {
    std::string path = absl::StrCat(folder, "/", name);
    struct stat file = {};
    if (stat((run_dir_ + path).c_str(), &file) != 0) continue;
    if (S_ISDIR(file.st_mode) && depth < kDepthOfDumps) {
      List(path, file, depth + 1, before);
      const ino_t inode = file.st_ino;
      file = {};
      file.st_ino = inode;
    }
    files_[std::move(path)] = file;
  }
}

bool RunFiles::Stay(const RunFiles& before, const std::vector<const char*>& names) const {
  const auto counts = [&](const auto& file) {
    const std::string_view name = InRank(file.first);
    return names.empty() || name.empty() ||
           std::any_of(names.begin(), names.end(), [&](const char* of) { return BeginsWith(name, of); });
  };
  auto a = files_.begin();
  auto b = before.files_.begin();
  while (true) {
    a = std::find_if(a, files_.end(), counts);
    b = std::find_if(b, before.files_.end(), counts);
    if (a == files_.end() || b == before.files_.end()) return a == files_.end() && b == before.files_.end();
    if (a->first != b->first || !IsSame(a->second, b->second)) return false;
    ++a;
    ++b;
  }
}

bool RunFiles::HasOfRank(const char* name) const {
  return std::any_of(files_.begin(), files_.end(),
                     [&](const auto& file) { return BeginsWith(InRank(file.first), name); });
}

}  // namespace ott::report
