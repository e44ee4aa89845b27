// The moment at which a call stops waiting.

#ifndef OTT_DIST_COMM_DEADLINE_H_
#define OTT_DIST_COMM_DEADLINE_H_

#include <algorithm>
#include <chrono>

namespace ott {

// A moment of this process's monotonic clock. Copyable; safe to read from any thread.
//
//   communicator->Barrier(Deadline::After(std::chrono::seconds(5)));
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline At(Clock::time_point time) { return Deadline(Clock::now(), time); }
  static Deadline After(std::chrono::nanoseconds duration) {
    const Clock::time_point now = Clock::now();
    return Deadline(now,
                    duration > Clock::time_point::max() - now ? Clock::time_point::max() : now + duration);
  }
  static Deadline Never() { return At(Clock::time_point::max()); }
  // Takes what is there already and waits for nothing.
  static Deadline Now() { return After(std::chrono::nanoseconds(0)); }

  Clock::time_point time() const { return time_; }
  bool IsNever() const { return time_ == Clock::time_point::max(); }
  bool Passed() const { return Clock::now() >= time_; }
  // Returns 0 once passed.
  std::chrono::nanoseconds Remaining() const {
    const Clock::time_point now = Clock::now();
    return time_ <= now ? std::chrono::nanoseconds(0) : time_ - now;
  }
  // Returns a moment a little before this one. A rank that merges what others send gives up then, so that
  // those that wait for its answer still hear whose fault it was. steps: how many ranks its answer passes on
  // its way.
  Deadline Before(int steps) const {
    if (IsNever()) return *this;
    constexpr std::chrono::nanoseconds kLongestStep = std::chrono::milliseconds(100);
    const std::chrono::nanoseconds remaining = Remaining();
    const std::chrono::nanoseconds step = std::min(remaining / 16, kLongestStep);
    return After(remaining - std::min(remaining / 2, steps * step));
  }
  // Seconds between its making and the moment itself, for messages.
  double Seconds() const { return std::max(0.0, std::chrono::duration<double>(time_ - made_).count()); }

 private:
  Deadline(Clock::time_point made, Clock::time_point time) : made_(made), time_(time) {}

  Clock::time_point made_;
  Clock::time_point time_;
};

}  // namespace ott

#endif  // OTT_DIST_COMM_DEADLINE_H_
