#include "ott/questions/hang/hang_report.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

constexpr size_t kMaxRows = 40;

struct Row {
  std::vector<int> ranks;
  std::vector<std::string> hosts;
  double shortest = 0;
  double longest = 0;
};

// Ranks share a row if all that is said of them is the same; culprits sort first.
using Key = std::tuple<bool, HangRank::State, int, std::string, std::string>;

const char* NameOf(HangRank::State state) {
  switch (state) {
    case HangRank::WAITS:
      return "waits";
    case HangRank::WORKS:
      return "works";
    case HangRank::LEFT:
      return "left";
    case HangRank::DEAD:
      return "dead";
    case HangRank::STOPPED:
      return "stopped";
    case HangRank::SILENT:
      return "silent";
    case HangRank::FINISHED:
      return "finished";
    default:
      return "unknown";
  }
}

std::string FormatRange(const Row& row) {
  if (row.longest <= 0) return "";
  const std::string shortest = absl::StrFormat("%.3g", row.shortest);
  const std::string longest = absl::StrFormat("%.3g", row.longest);
  return absl::StrCat(shortest == longest ? "" : shortest + "-", longest, " s");
}

std::string FormatHosts(std::vector<std::string> hosts) {
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  if (hosts.size() == 1) return hosts[0];
  return absl::StrCat(hosts.size(), " hosts");
}

}  // namespace

std::string FormatHangVerdict(const HangVerdict& verdict) {
  return verdict.verdict() + "\n" + FormatHangRanks(verdict);
}

std::string FormatHangRanks(const HangVerdict& verdict) {
  std::string text;
  for (const std::string& note : verdict.notes()) {
    absl::StrAppend(&text, "note: ", EscapeControlCharacters(note), "\n");
  }
  std::map<Key, Row> rows;
  for (const HangRank& rank : verdict.ranks()) {
    const bool is_culprit =
        std::binary_search(verdict.culprits().begin(), verdict.culprits().end(), rank.rank());
    Row& row = rows[{!is_culprit, rank.state(), rank.iteration(), rank.last_completed(), rank.place()}];
    row.shortest = row.ranks.empty() ? rank.seconds() : std::min(row.shortest, rank.seconds());
    row.longest = std::max(row.longest, rank.seconds());
    row.ranks.push_back(rank.rank());
    row.hosts.push_back(rank.host());
  }
  TextTable table({"", "ranks", "host", "state", "iteration", "last completed", "in", "for"},
                  TextTable::LastColumn::kRight);
  size_t num_rows = 0;
  for (auto& [key, row] : rows) {
    if (++num_rows > kMaxRows) break;
    const auto& [is_innocent, state, iteration, last_completed, place] = key;
    table.AddRow({is_innocent ? "" : ">", FormatRanks(row.ranks), FormatHosts(row.hosts), NameOf(state),
                  iteration < 0 ? "" : absl::StrCat(iteration), last_completed, place, FormatRange(row)});
  }
  text += table.ToString();
  if (rows.size() > kMaxRows) absl::StrAppend(&text, "... and ", rows.size() - kMaxRows, " more rows\n");
  return text;
}

}  // namespace ott
