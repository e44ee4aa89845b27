// The state of each rank of a job, read from recorders of a run or from dumps of PyTorch's Flight Recorder.
// diagnosis.h reasons about it.

#ifndef OTT_QUESTIONS_HANG_JOB_STATE_H_
#define OTT_QUESTIONS_HANG_JOB_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ott {

// An operation as one rank has it. Times are nanoseconds since 1970; 0: not known.
struct JobOperation {
  enum class Progress : uint8_t { kEnqueued, kEntered, kCompleted };
  enum class Direction : uint8_t { kCollective, kSend, kReceive };

  int32_t group = 0;  // index into JobState::groups
  int32_t name = 0;   // index into JobState::names
  int64_t sequence = 0;
  int64_t size = -1;       // in bytes or elements, the same on all ranks; -1: not known, or need not agree
  int64_t iteration = -1;  // -1: not known
  int64_t entered_ns = 0;
  int32_t peer = -1;  // rank in the job; of sends and receives
  Direction direction = Direction::kCollective;
  Progress progress = Progress::kEnqueued;
  // True if no member can complete it before all have entered it; not so of a broadcast, say.
  bool synchronizes = true;
};

// The highest numbers of collective operations of a group that a rank reached.
struct GroupPosition {
  int32_t group = 0;
  int64_t enqueued = 0;
  int64_t entered = 0;
  int64_t completed = 0;
};

struct RankState {
  enum class Process : uint8_t {
    kUnknown,
    kAlive,
    kStopped,
    kDead,
    kSilent,  // dead or stopped
  };

  // Empty if the rank's state was read, else why not; then nothing below is known.
  std::string problem = "no recorder";
  std::string host;
  Process process = Process::kUnknown;
  bool finished = false;  // has ended its training
  bool left = false;      // has left its training without ending it
  // When and by whom it was ended by SIGTERM, or by kFlightInterrupt; 0 and "": not known.
  int64_t terminated_ns = 0;
  std::string terminated_by;
  int64_t iteration = -1;  // that it is in
  // The innermost measurement that runs; "" if none or not known.
  std::string place;
  int64_t place_since_ns = 0;
  // The share of one CPU that its training's thread took there; -1: not known.
  double cpu_share = -1;
  std::string last_completed;
  int64_t last_event_ns = 0;
  // The time of the rank's last sign of life, or of the reading while it lives. Its waits end there.
  int64_t now_ns = 0;
  // In the order in which the rank called them; not all of them, but all that it has not completed.
  std::vector<JobOperation> operations;
  // Ascending by group. A member of a group without a position: it is not known.
  std::vector<GroupPosition> positions;

  bool known() const { return problem.empty(); }
  // Computes for all that is known, rather than waits: more than what a machine takes that has ten times as
  // much to do as CPUs.
  bool computes() const { return cpu_share >= 0.1; }
  // Returns null if it is not known.
  const GroupPosition* Position(int32_t group) const;
  // Returns what the rank has of an operation that it has entered and not completed; null: nothing.
  const JobOperation* Entered(const JobOperation& operation) const;
  // Returns true if the rank has the other half of what another sends to it or receives from it.
  bool HasOtherHalf(int other, const JobOperation& of_other, JobOperation::Progress progress) const;
};

struct JobGroup {
  std::string name;
  std::vector<int> ranks;  // ascending
  // True if the program said who is in it. Where it did not, undeclared_group.h tells what is known.
  bool is_declared = true;
};

// All text in it is valid UTF-8.
struct JobState {
  std::vector<RankState> ranks;
  std::vector<JobGroup> groups;
  std::vector<std::string> names;
  // The scheduler's job, such as "Slurm job 4711", and when its time is over, in seconds since 1970; "" and
  // 0: not known.
  std::string job;
  int64_t job_ends_s = 0;
  // True if times are known, so that a wait that is short is no hang.
  bool has_times = false;
  // True if the source tells entered from enqueued. Where not, what the rank gave out first and has not
  // completed is taken for entered.
  bool records_entry = true;
  // True if the source is Gloo's, which shows no sends and receives, and what completed a moment later.
  bool is_of_gloo = false;
  // Notes that readers of the verdict should know, such as an unreadable file.
  std::vector<std::string> notes;

  int32_t Name(std::string_view name);

 private:
  std::map<std::string, int32_t, std::less<>> index_of_name_;
};

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_JOB_STATE_H_
