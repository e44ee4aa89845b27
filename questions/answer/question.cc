#include "ott/questions/answer/question.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ott {

CLI::Validator NumberFrom(double low, double high) {
  const std::string range = high == std::numeric_limits<double>::max()
                                ? absl::StrCat("from ", low, " on")
                                : absl::StrCat("from ", low, " to ", high);
  const auto problem = [low, high, range](const std::string& text) {
    double number = 0;
    const bool is_in_range = absl::SimpleAtod(text, &number) && number >= low && number <= high;
    return is_in_range ? std::string() : absl::StrCat(text, " is not a finite number ", range);
  };
  return CLI::Validator(problem, range);
}

int64_t AskedRun::start_iteration() const {
  if (!info) return 0;
  return info->resumptions().empty() ? info->config().start_iteration()
                                     : info->resumptions().rbegin()->start_iteration();
}

}  // namespace ott
