#include "ott/questions/hang/found_hang.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/questions/hang/watchdog.h"

namespace ott::hang {

absl::StatusOr<std::optional<HangVerdict>> ReadFoundHang(const std::string& run_dir) {
  const std::string path = HangVerdictPath(run_dir);
  if (!PathExists(path)) return std::nullopt;
  const absl::StatusOr<std::string> json = ReadFile(path);
  HangVerdict found;
  const absl::Status status = json.ok() ? JsonToProto(*json, &found) : json.status();
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  // It is printed as it is.
  for (char& c : *found.mutable_verdict()) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return found;
}

bool StillHolds(const HangVerdict& found, const HangVerdict& now) {
  if (found.answer() != HangVerdict::HANGING || now.answer() == HangVerdict::HANGING) return false;
  std::map<int, const HangRank*> then;
  for (const HangRank& rank : found.ranks()) then[rank.rank()] = &rank;
  for (const HangRank& rank : now.ranks()) {
    const auto before = then.find(rank.rank());
    if (before == then.end() || rank.state() == "finished" ||
        rank.iteration() > before->second->iteration() ||
        rank.last_completed() != before->second->last_completed()) {
      return false;
    }
  }
  return true;
}

}  // namespace ott::hang
