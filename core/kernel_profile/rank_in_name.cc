#include "ott/core/kernel_profile/rank_in_name.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace ott::kernels {

int RankInName(std::string_view path) {
  path.remove_prefix(std::min(path.size(), path.rfind('/') + 1));
  int rank = -1;
  for (size_t at = path.rfind("rank"); at != std::string_view::npos && rank < 0;
       at = at == 0 ? std::string_view::npos : path.rfind("rank", at - 1)) {
    std::string_view digits = path.substr(at + 4);
    if (!digits.empty() && (digits[0] == '_' || digits[0] == '-' || digits[0] == '.'))
      digits.remove_prefix(1);
    (void)std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  }
  const auto has = [&](std::string_view part) { return path.find(part) != std::string_view::npos; };
  if (const size_t tensor = path.find("-TP-");
      rank < 0 && tensor != std::string_view::npos && !has("-PP-") && !has("-DP-")) {
    (void)std::from_chars(path.data() + tensor + 4, path.data() + path.size(), rank);
  }
  return std::max(rank, -1);
}

}  // namespace ott::kernels
