#include "ott/questions/hang/watchdog.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "ott/core/base/config.pb.h"
#include "ott/core/base/file.h"
#include "ott/core/base/observer_thread.h"
#include "ott/core/base/proto_json.h"
#include "ott/questions/hang/diagnosis.h"
#include "ott/questions/hang/found_hang.h"
#include "ott/questions/hang/hang_answer.h"
#include "ott/questions/hang/hang_report.h"
#include "ott/questions/hang/run_state.h"

namespace ott {
namespace {

constexpr std::chrono::milliseconds kBeat(1000);
// A file on a network is written out every so many heartbeats for those who read it elsewhere.
constexpr int kBeatsBetweenFlushes = 3;
// The first rank that asks takes a wait of this share of its limit for a hang: the others came a little
// later.
constexpr double kShareOfWait = 0.8;
// Asking all ranks elsewhere takes at most so long.
constexpr std::chrono::nanoseconds kTimeToAskAll = std::chrono::seconds(20);
// Seconds in which a rank has diagnosed.
constexpr double kLongestTurn = 60;

std::string TurnPath(const std::string& run_dir) { return run_dir + "/hang.turn"; }

// Seconds since a file was written; nothing if there is none.
std::optional<double> AgeOf(const std::string& path) {
  struct stat info = {};
  timespec now = {};
  if (stat(path.c_str(), &info) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0) return std::nullopt;
  return static_cast<double>(now.tv_sec - info.st_mtim.tv_sec) +
         static_cast<double>(now.tv_nsec - info.st_mtim.tv_nsec) * 1e-9;
}

// No other rank that sees this directory takes it until the file is removed.
bool TakeTurnIn(const std::string& run_dir) {
  // Whoever had it may be gone.
  if (AgeOf(TurnPath(run_dir)).value_or(0) > kLongestTurn) unlink(TurnPath(run_dir).c_str());
  const int fd = open(TurnPath(run_dir).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  close(fd);
  return true;
}

void WriteVerdict(const std::string& run_dir, const std::string& json) {
  const absl::Status written = WriteFileAtomically(HangVerdictPath(run_dir), json);
  if (!written.ok()) std::fprintf(stderr, "ott: %s\n", std::string(written.message()).c_str());
}

// Returns true if others see what is mapped there only once it is written out.
bool IsOnNetwork(const std::string& dir) {
  struct statfs info = {};
  if (statfs(dir.c_str(), &info) != 0) return false;
  switch (static_cast<uint32_t>(info.f_type)) {
    case 0x6969:      // NFS
    case 0x0bd00bd0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS
    case 0x00c36400:  // Ceph
    case 0x65735546:  // FUSE
    case 0xff534d42:  // CIFS
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string HangVerdictPath(const std::string& run_dir) { return run_dir + "/hang.json"; }

HangWatchdog::Options HangWatchdog::FromConfig(const HangConfig& config) {
  Options options;
  options.after_seconds = config.after_seconds();
  if (config.reaction() == HangConfig::REACTION_ABORT) options.reaction = Reaction::kAbort;
  return options;
}

HangWatchdog::HangWatchdog(FlightRecorder* recorder, const Clock& clock, Options options)
    : recorder_(recorder), clock_(clock), started_(clock.Ticks()), options_(std::move(options)) {
  if (thread_.Start([this] { Run(); })) return;
  std::fprintf(stderr,
               "ott: %s: no thread could be started; this rank's flight recorder has no heartbeat%s\n",
               options_.run_dir.c_str(), options_.after_seconds > 0 ? ", and it finds no hang" : "");
}

HangWatchdog::~HangWatchdog() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.Join();
}

void HangWatchdog::SetOnHang(std::function<void(const HangVerdict&)> on_hang) {
  const std::lock_guard<std::mutex> lock(mutex_);
  options_.on_hang = std::move(on_hang);
}

void HangWatchdog::Run() {
  const ObserverThread marked;
  const bool on_network = IsOnNetwork(options_.run_dir);
  // Four looks in the time that a rank may stand.
  const auto interval =
      options_.after_seconds > 0
          ? std::min(kBeat, std::chrono::milliseconds(
                                std::max(1, static_cast<int>(std::min(options_.after_seconds, 1e6) * 250))))
          : kBeat;
  std::unique_lock<std::mutex> lock(mutex_);
  for (int beat = 1; !wake_.wait_for(lock, interval, [this] { return ends_; }); ++beat) {
    lock.unlock();
    recorder_->Beat();
    if (on_network && beat % kBeatsBetweenFlushes == 0) recorder_->Flush();
    if (options_.after_seconds > 0) Watch();
    lock.lock();
  }
}

double HangWatchdog::IdleSeconds() const {
  const uint64_t now = clock_.Ticks();
  const uint64_t last = std::max(started_, recorder_->LastEvent());
  return now > last ? static_cast<double>(clock_.ToPicoseconds(now - last)) * 1e-12 : 0;
}

void HangWatchdog::SetExchange(const RecorderExchange* exchange) { exchange_ = exchange; }

RecorderExchange::Answers HangWatchdog::AnswersOf(const std::string& run_dir, int rank) {
  RecorderExchange::Answers answers;
  answers.recorder = [path = FlightPath(run_dir, rank)] { return ReadFile(path); };
  answers.take_turn = [run_dir] { return TakeTurnIn(run_dir); };
  answers.set_verdict = [run_dir](const std::string& verdict) {
    if (verdict.empty()) {
      unlink(TurnPath(run_dir).c_str());
    } else {
      WriteVerdict(run_dir, verdict);
    }
  };
  return answers;
}

bool HangWatchdog::TakeTurn() {
  turn_of_ = -1;
  if (!TakeTurnIn(options_.run_dir)) return false;
  const RecorderExchange* const exchange = exchange_;
  if (exchange == nullptr) return true;
  // Hosts that do not share the directory ask the first rank that answers, which is the same for all.
  for (int rank = 0; rank < exchange->size(); ++rank) {
    if (access(FlightPath(options_.run_dir, rank).c_str(), F_OK) == 0) return true;
    const absl::StatusOr<bool> may = exchange->AskForTurn(rank, Deadline::After(kTimeToAnswer));
    if (!may.ok()) continue;
    turn_of_ = rank;
    return *may;
  }
  return true;
}

void HangWatchdog::Watch() {
  if (IdleSeconds() < options_.after_seconds) return;
  const uint64_t last = recorder_->LastEvent();
  if (reacted_at_ == std::max<uint64_t>(last, 1)) return;
  // Another rank's verdict is this one's, too, unless this rank has moved since: then it is judged again.
  if (AgeOf(HangVerdictPath(options_.run_dir)).value_or(0) > IdleSeconds()) {
    unlink(TurnPath(options_.run_dir).c_str());
  } else if (const auto found = hang::ReadFoundHang(options_.run_dir); !found.ok() || *found) {
    if (found.ok()) {
      reacted_at_ = std::max<uint64_t>(last, 1);
      React(**found);
    }
    return;
  }
  if (TakeTurn()) Diagnose();
}

void HangWatchdog::Diagnose() {
  RunStateEnvironment environment = RunStateEnvironment::Real();
  elsewhere_.clear();
  const RecorderExchange* const exchange = exchange_;
  if (exchange != nullptr) {
    environment.ask_for_recorder = [this, exchange, all = Deadline::After(kTimeToAskAll)](int rank) {
      absl::StatusOr<std::string> recorder =
          exchange->AskForRecorder(rank, Deadline::After(std::min(kTimeToAnswer, all.Remaining())));
      if (recorder.ok()) elsewhere_.push_back(rank);
      return recorder;
    };
  }
  const absl::StatusOr<JobState> job = ReadRunState(options_.run_dir, environment);
  if (!job.ok()) {
    std::fprintf(stderr, "ott: why the job stands cannot be told: %s\n",
                 std::string(job.status().message()).c_str());
    return;
  }
  // Others came a little later than this rank, which was the first.
  HangVerdict verdict = DiagnoseHang(*job, {kShareOfWait * options_.after_seconds});
  auto found = hang::ReadFoundHang(options_.run_dir);
  const bool is_known = found.ok() && *found && hang::StillHolds(**found, verdict);
  if (is_known) verdict = **std::move(found);
  if (verdict.answer() == HangVerdict::NOT_HANGING) {
    unlink(TurnPath(options_.run_dir).c_str());
    if (turn_of_ >= 0) exchange->SendVerdict(turn_of_, "", Deadline::After(kTimeToAnswer)).IgnoreError();
    return;
  }
  if (!is_known) {
    Answer answer = hang::AnswerHang(verdict, std::nullopt);
    hang::AddNextOf(options_.run_dir, &answer);
    std::fprintf(stderr, "ott: the job stands: %s\n%s%s", TextOf(answer).c_str(),
                 FormatHangRanks(verdict).c_str(), FormatNext(answer).c_str());
  }
  const std::string json = ProtoToJson(verdict, JsonLayout::kIndented);
  WriteVerdict(options_.run_dir, json);
  const Deadline all = Deadline::After(kTimeToAskAll);
  for (const int rank : elsewhere_) {
    // A rank that does not answer any more finds out by itself.
    exchange->SendVerdict(rank, json, Deadline::After(std::min(kTimeToAnswer, all.Remaining())))
        .IgnoreError();
  }
  reacted_at_ = std::max<uint64_t>(recorder_->LastEvent(), 1);
  React(verdict);
}

void HangWatchdog::React(const HangVerdict& verdict) {
  std::function<void(const HangVerdict&)> on_hang;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    on_hang = options_.on_hang;
  }
  if (on_hang) on_hang(verdict);
  if (options_.reaction == Reaction::kAbort) {
    std::fprintf(stderr, "ott: ending the process, as hang.reaction says\n");
    std::abort();
  }
}

}  // namespace ott
