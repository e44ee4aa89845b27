#include "ott/questions/hang/job_state.h"

#include <algorithm>

namespace ott {

const GroupPosition* RankState::Position(int32_t group) const {
  const auto found = std::lower_bound(positions.begin(), positions.end(), group,
                                      [](const GroupPosition& a, int32_t b) { return a.group < b; });
  return found != positions.end() && found->group == group ? &*found : nullptr;
}

const JobOperation* RankState::Entered(const JobOperation& operation) const {
  const auto found = std::find_if(operations.begin(), operations.end(), [&](const JobOperation& own) {
    return own.progress == JobOperation::Progress::kEntered && own.group == operation.group &&
           own.sequence == operation.sequence && own.direction == operation.direction;
  });
  return found != operations.end() ? &*found : nullptr;
}

bool RankState::HasOtherHalf(int other, const JobOperation& of_other, JobOperation::Progress progress) const {
  return std::any_of(operations.begin(), operations.end(), [&](const JobOperation& own) {
    return own.progress == progress && own.group == of_other.group && own.peer == other &&
           own.direction != JobOperation::Direction::kCollective && own.direction != of_other.direction;
  });
}

int32_t JobState::Name(std::string_view name) {
  const auto found = index_of_name_.find(name);
  if (found != index_of_name_.end()) return found->second;
  names.emplace_back(name);
  return index_of_name_[std::string(name)] = static_cast<int32_t>(names.size()) - 1;
}

}  // namespace ott
