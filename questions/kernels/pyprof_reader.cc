#include "ott/questions/kernels/pyprof_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ott/core/json/json_string.h"
#include "ott/core/kernel_profile/label_table.h"
#include "ott/core/kernel_profile/literal.h"

namespace ott::kernels {
namespace {

bool IsKernel(const Literal& line) {
  const Literal* const duration = line.Find("kDuration");
  return line.is_map() && duration != nullptr && duration->is_number() && !line.FindText("kLongName").empty();
}

int64_t IntegerOf(const Literal& line, std::string_view name, int64_t otherwise) {
  const Literal* const value = line.Find(name);
  const bool good = value != nullptr && value->is_number() && std::abs(value->number) < 9e15;
  return good ? static_cast<int64_t>(value->number) : otherwise;
}

// The texts of a list; a text alone is one.
std::vector<std::string> TextsOf(const Literal& line, std::string_view name) {
  std::vector<std::string> texts;
  const Literal* const list = line.Find(name);
  if (list == nullptr) return texts;
  if (!list->text.empty()) texts.push_back(list->text);
  for (const Literal& item : list->items) texts.push_back(item.text);
  return texts;
}

std::string JsonTextOf(const std::string& text) {
  std::string quoted;
  AppendJsonString(text, quoted);
  return quoted;
}

// The texts of the ranges around a kernel, from the outside in, as they were before PyProf took them apart.
std::vector<std::string> RangesOf(const Literal& line) {
  std::vector<std::string> ranges;
  for (const std::string& layer : TextsOf(line, "layer")) ranges.push_back(absl::StrCat("layer:", layer));
  for (const std::string& trace : TextsOf(line, "trace")) {
    ranges.push_back(
        absl::StartsWith(trace, "{") ? trace : absl::StrCat("{'traceMarker': [", JsonTextOf(trace), "]}"));
  }
  for (const char* const markers : {"reprMarkers", "marker", "seqMarker"}) {
    for (std::string& marker : TextsOf(line, markers)) ranges.push_back(std::move(marker));
  }
  return ranges;
}

class ProfileOfKernels {
 public:
  void Add(const Literal& line) {
    const std::vector<std::string> texts = RangesOf(line);
    const int64_t sub = IntegerOf(line, "subSeqId", 0);
    const int64_t tid = IntegerOf(line, "tid", 0);
    const bool goes_on = !profile_.kernels.empty() && sub > 0 && sub == last_sub_ + 1 && tid == last_tid_ &&
                         texts == last_texts_;
    if (!goes_on) {
      CloseCall();
      OpenCall(texts, tid);
    }
    last_sub_ = sub;
    AddKernel(line);
  }

  Profile Finish(const std::string& path) {
    CloseCall();
    profile_.path = path;
    profile_.schema = "PyProf";
    profile_.labels = labels_.TakeLabels();
    profile_.processes.emplace_back().pid = 0;
    profile_.last_time = now_;
    profile_.notes.push_back(
        "PyProf's dictionaries tell no times: start and gap are those of kernels that run one after the "
        "other");
    return std::move(profile_);
  }

 private:
  void OpenCall(const std::vector<std::string>& texts, int64_t tid) {
    const auto [thread, added] = thread_of_.try_emplace(tid, static_cast<uint32_t>(profile_.threads.size()));
    if (added) profile_.threads.emplace_back().tid = tid;
    thread_ = thread->second;
    last_tid_ = tid;
    last_texts_ = texts;
    GrowingArray<Profile::Range>& ranges = profile_.threads[thread_].ranges;
    first_range_ = ranges.size();
    for (const std::string& text : texts) {
      const auto [label, sequence_number] = labels_.Find(text);
      Profile::Range range;
      // Outer ranges begin earlier and end later.
      range.start = now_++;
      range.end = 0;
      range.label = label;
      range.sequence_number = sequence_number < kNone ? static_cast<uint32_t>(sequence_number) : kNone;
      ranges.push_back(range);
      ++profile_.num_ranges;
    }
  }

  void CloseCall() {
    if (profile_.threads.empty()) return;
    GrowingArray<Profile::Range>& ranges = profile_.threads[thread_].ranges;
    for (size_t i = ranges.size(); i-- > first_range_;) ranges[i].end = ++now_;
    first_range_ = ranges.size();
    ++now_;
  }

  void AddKernel(const Literal& line) {
    Profile::Launch launch;
    launch.start = now_;
    launch.thread = thread_;
    launch.nanoseconds = kNone;
    Profile::Kernel kernel = {};
    kernel.start = now_;
    now_ += std::max<int64_t>(IntegerOf(line, "kDuration", 0), 0);
    kernel.end = now_;
    kernel.name = NumberOf(std::string(line.FindText("kLongName")), name_of_, profile_.kernel_names);
    kernel.geometry = GeometryOf(line);
    kernel.launch = static_cast<uint32_t>(profile_.launches.size());
    kernel.stream = static_cast<int32_t>(IntegerOf(line, "stream", -1));
    kernel.device = static_cast<int16_t>(IntegerOf(line, "device", -1));
    profile_.launches.push_back(launch);
    profile_.kernels.push_back(kernel);
  }

  static uint32_t NumberOf(const std::string& text, std::map<std::string, uint32_t>& numbers,
                           std::vector<std::string>& texts) {
    const auto [entry, added] = numbers.try_emplace(text, static_cast<uint32_t>(texts.size()));
    if (added) texts.push_back(text);
    return entry->second;
  }

  uint32_t GeometryOf(const Literal& line) {
    std::array<int64_t, 6> sizes = {};
    for (const auto& [name, first] : {std::pair("grid", 0), std::pair("block", 3)}) {
      const Literal* const list = line.Find(name);
      const auto shape = list == nullptr ? std::nullopt : list->ToShape();
      if (shape.has_value() && shape->size() == 3)
        std::copy(shape->begin(), shape->end(), sizes.begin() + first);
    }
    const auto [entry, added] =
        geometry_of_.try_emplace(sizes, static_cast<uint32_t>(profile_.geometries.size()));
    if (added)
      profile_.geometries.push_back({{sizes[0], sizes[1], sizes[2]}, {sizes[3], sizes[4], sizes[5]}});
    return entry->second;
  }

  Profile profile_;
  LabelTable labels_;
  std::map<int64_t, uint32_t> thread_of_;
  std::map<std::string, uint32_t> name_of_;
  std::map<std::array<int64_t, 6>, uint32_t> geometry_of_;
  int64_t now_ = 0;
  uint32_t thread_ = 0;
  size_t first_range_ = 0;
  std::vector<std::string> last_texts_;
  int64_t last_tid_ = 0;
  int64_t last_sub_ = 0;
};

}  // namespace

bool IsPyProfDictionary(std::string_view line) {
  const std::optional<Literal> dictionary = ParseLiteral(line);
  return dictionary.has_value() && IsKernel(*dictionary);
}

absl::StatusOr<Profile> ReadPyProf(std::istream& lines, const std::string& path, const std::string& first) {
  ProfileOfKernels kernels;
  int64_t num_kernels = 0;
  int64_t num_bad_lines = 0;
  std::string text = first;
  do {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::optional<Literal> line = ParseLiteral(text);
    if (line.has_value() && IsKernel(*line)) {
      kernels.Add(*line);
      ++num_kernels;
    } else {
      ++num_bad_lines;
    }
  } while (std::getline(lines, text));
  if (num_kernels == 0) return absl::InvalidArgumentError(absl::StrCat(path, ": no dictionaries of PyProf"));
  Profile profile = kernels.Finish(path);
  if (num_bad_lines > 0) {
    profile.notes.push_back(
        absl::StrCat(num_bad_lines, " lines are no dictionaries of PyProf and were left out"));
  }
  return profile;
}

}  // namespace ott::kernels
