#include "ott/dist/comm/agree_on_status.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {

absl::Status AgreeOnStatus(Communicator& ranks, const absl::Status& mine, Deadline deadline) {
  const std::string code_and_message =
      mine.ok() ? "" : absl::StrCat(std::string(1, static_cast<char>(mine.code())), mine.message());
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> all, ranks.AllGather(code_and_message, deadline));
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (all[rank].empty()) continue;
    return absl::Status(static_cast<absl::StatusCode>(all[rank][0]),
                        absl::StrCat(FormatRank(rank, ranks.host(rank)), ": ", all[rank].substr(1)));
  }
  return absl::OkStatus();
}

}  // namespace ott
