#include "ott/questions/faster/runs_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"

namespace ott::faster {

namespace fs = std::filesystem;

absl::StatusOr<std::unique_ptr<RunsDirectory>> RunsDirectory::Create(const std::string& path) {
  std::error_code error;
  if (path.empty()) {
    std::string name = (fs::temp_directory_path(error) / "ott_ab.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      return absl::UnavailableError(absl::StrCat(name, ": ", std::strerror(errno)));
    }
    return std::make_unique<RunsDirectory>(name, /*temporary=*/true);
  }
  OTT_RETURN_IF_ERROR(MakeDirectories(path));
  if (!fs::is_empty(path, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": is not empty, and runs would mix with what is there"));
  }
  return std::make_unique<RunsDirectory>(fs::absolute(path, error).string(), /*temporary=*/false);
}

RunsDirectory::RunsDirectory(std::string path, bool temporary)
    : path_(std::move(path)), temporary_(temporary) {}

RunsDirectory::~RunsDirectory() {
  std::error_code ignored;
  if (temporary_) fs::remove_all(path_, ignored);
}

absl::StatusOr<std::optional<double>> ParseMaxTime(const std::string& text) {
  double seconds = 0;
  absl::Duration duration;
  if (text.empty()) return std::optional<double>();
  // A text that is no number may leave its beginning in `seconds`.
  if (!absl::SimpleAtod(text, &seconds)) {
    seconds = absl::ParseDuration(text, &duration) ? absl::ToDoubleSeconds(duration) : 0;
  }
  constexpr double kLongest = 1e8;  // three years
  if (!(seconds > 0 && seconds < kLongest)) {
    return absl::InvalidArgumentError(absl::StrCat("--max-time ", text, ": needs seconds, or as in 1h30m"));
  }
  return std::optional<double>(seconds);
}

}  // namespace ott::faster
