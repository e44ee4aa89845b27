// Jobs in a few words.

#ifndef OTT_QUESTIONS_HANG_JOB_FOR_TEST_H_
#define OTT_QUESTIONS_HANG_JOB_FOR_TEST_H_

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/questions/hang/job_state.h"

namespace ott {

// Ranks that have a clock at 1000 s and did their last thing at 900 s, in "data".
class JobForTest {
 public:
  static constexpr int64_t kSecond = 1000000000;

  explicit JobForTest(int num_ranks) {
    job.has_times = true;
    job.ranks.resize(num_ranks);
    for (RankState& rank : job.ranks) {
      rank.problem.clear();
      rank.process = RankState::Process::kAlive;
      rank.iteration = 103;
      rank.place = "data";
      rank.place_since_ns = rank.last_event_ns = 900 * kSecond;
      rank.now_ns = 1000 * kSecond;
    }
  }

  int Group(std::string name, std::vector<int> ranks) {
    job.groups.push_back({std::move(name), std::move(ranks)});
    const int group = static_cast<int>(job.groups.size()) - 1;
    for (const int rank : job.groups[group].ranks) job.ranks[rank].positions.push_back({group, 0, 0, 0});
    return group;
  }

  // Lets the rank complete all up to a number.
  void Complete(int rank, int group, int64_t sequence) {
    GroupPosition& position = PositionOf(rank, group);
    position.enqueued = position.entered = position.completed = sequence;
  }

  JobOperation& Call(int rank, int group, int64_t sequence, const std::string& name,
                     JobOperation::Progress progress = JobOperation::Progress::kEntered) {
    JobOperation operation;
    operation.group = group;
    operation.sequence = sequence;
    operation.name = job.Name(name);
    operation.iteration = 103;
    operation.entered_ns = 950 * kSecond;
    operation.progress = progress;
    if (progress == JobOperation::Progress::kEntered) {
      job.ranks[rank].last_event_ns = job.ranks[rank].place_since_ns = operation.entered_ns;
      job.ranks[rank].place = name;
    }
    GroupPosition& position = PositionOf(rank, group);
    position.enqueued = std::max(position.enqueued, sequence);
    if (progress != JobOperation::Progress::kEnqueued)
      position.entered = std::max(position.entered, sequence);
    if (progress == JobOperation::Progress::kCompleted)
      position.completed = std::max(position.completed, sequence);
    job.ranks[rank].operations.push_back(operation);
    return job.ranks[rank].operations.back();
  }

  void Send(int rank, int group, int peer, JobOperation::Direction direction) {
    JobOperation operation;
    operation.group = group;
    operation.name = job.Name(direction == JobOperation::Direction::kSend ? "send" : "recv");
    operation.direction = direction;
    operation.peer = peer;
    operation.progress = JobOperation::Progress::kEntered;
    operation.entered_ns = 950 * kSecond;
    job.ranks[rank].operations.push_back(operation);
  }

  JobState job;

 private:
  GroupPosition& PositionOf(int rank, int group) {
    for (GroupPosition& position : job.ranks[rank].positions) {
      if (position.group == group) return position;
    }
    return job.ranks[rank].positions.emplace_back(GroupPosition{group, 0, 0, 0});
  }
};

// Any ranks in any operations, of which some completed others before.
inline JobState AnyJob(std::mt19937& random) {
  const int num_ranks = 2 + static_cast<int>(random() % 4);
  JobForTest test(num_ranks);
  for (int group = 0; group < 3; ++group) {
    std::vector<int> members;
    for (int rank = 0; rank < num_ranks; ++rank) {
      if (random() % 3 > 0) members.push_back(rank);
    }
    test.Group(absl::StrCat("group ", group), members);
    test.job.groups[group].is_declared = random() % 2 == 0;
    for (const int rank : members) {
      if (random() % 6 == 0) {
        test.job.ranks[rank].positions.pop_back();
        continue;
      }
      const auto name = [&] { return random() % 4 == 0 ? "reduce" : "sum"; };
      const int64_t num_completed = 1 + static_cast<int64_t>(random() % 3);
      for (int64_t i = 1; i <= num_completed; ++i) {
        test.Call(rank, group, i, name(), JobOperation::Progress::kCompleted).synchronizes = random() % 4 > 0;
      }
      if (random() % 2 == 0) {
        test.Call(rank, group, 1 + test.job.ranks[rank].Position(group)->entered, name(),
                  random() % 3 == 0 ? JobOperation::Progress::kEnqueued : JobOperation::Progress::kEntered);
      }
    }
    for (const int rank : members) {
      if (random() % 4 > 0) continue;
      test.Send(rank, group, static_cast<int>(random() % (num_ranks + 2)) - 1,
                random() % 2 == 0 ? JobOperation::Direction::kSend : JobOperation::Direction::kReceive);
      if (random() % 3 == 0)
        test.job.ranks[rank].operations.back().progress = JobOperation::Progress::kEnqueued;
    }
  }
  return test.job;
}

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_JOB_FOR_TEST_H_
