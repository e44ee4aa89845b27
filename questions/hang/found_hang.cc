#include "ott/questions/hang/found_hang.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/questions/hang/watchdog.h"

namespace ott::hang {
namespace {

// A rank's place is "" if it is not known any more what runs there.
bool HasGoneOn(const HangRank& then, const HangRank& now) {
  return now.state() == HangRank::FINISHED || now.iteration() > then.iteration() ||
         now.last_completed() != then.last_completed() ||
         (now.state() == then.state() && now.place() != then.place());
}

}  // namespace

absl::StatusOr<std::optional<HangVerdict>> ReadFoundHang(const std::string& run_dir) {
  const std::string path = HangVerdictPath(run_dir);
  if (!PathExists(path)) return std::nullopt;
  const absl::StatusOr<std::string> json = ReadFile(path);
  HangVerdict found;
  std::string unknown;
  const absl::Status status = json.ok() ? JsonToProto(*json, &found, &unknown) : json.status();
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  // It is printed as it is.
  for (char& c : *found.mutable_verdict()) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (!unknown.empty()) found.add_notes(absl::StrCat("of another version: ", path, ": ", unknown));
  return found;
}

bool StillHolds(const HangVerdict& found, const HangVerdict& now) {
  if (found.answer() != HangVerdict::HANGING) return false;
  const std::set<int> culprits(found.culprits().begin(), found.culprits().end());
  // The newer verdict says for how long by now.
  const bool same =
      std::equal(culprits.begin(), culprits.end(), now.culprits().begin(), now.culprits().end());
  if (now.answer() == HangVerdict::HANGING && (culprits.empty() || same)) return false;
  std::map<int, const HangRank*> then;
  for (const HangRank& rank : found.ranks()) then[rank.rank()] = &rank;
  for (const HangRank& rank : now.ranks()) {
    if (!culprits.empty() && culprits.count(rank.rank()) == 0) continue;
    const auto before = then.find(rank.rank());
    if (before == then.end() || HasGoneOn(*before->second, rank)) return false;
  }
  return true;
}

}  // namespace ott::hang
