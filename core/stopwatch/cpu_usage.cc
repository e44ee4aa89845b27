#include "ott/core/stopwatch/cpu_usage.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>

#include "absl/status/status.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// The beginning of the file, where the line of all CPUs is.
absl::StatusOr<std::string> ReadProcStat() {
  const int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, "cannot open /proc/stat for CPU usage");
  char contents[512];
  const ssize_t size = read(file, contents, sizeof(contents));
  const int error = errno;
  close(file);
  if (size < 0) return absl::ErrnoToStatus(error, "cannot read /proc/stat for CPU usage");
  return std::string(contents, static_cast<size_t>(size));
}

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

absl::StatusOr<CpuTimes> ParseProcStat(std::string_view contents, double ticks_per_second) {
  // The guests' times, which follow, are in user and nice.
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  const int found = std::sscanf(std::string(contents.substr(0, contents.find('\n'))).c_str(),
                                "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &iowait,
                                &irq, &softirq, &steal);
  if (found < 4) return absl::InvalidArgumentError("/proc/stat does not begin with the times of all CPUs");
  CpuTimes times;
  times.all_total = (user + nice + system + idle + iowait + irq + softirq + steal) / ticks_per_second;
  times.all_busy = times.all_total - (idle + iowait) / ticks_per_second;
  return times;
}

absl::StatusOr<CpuTimes> ReadCpuTimes() {
  OTT_ASSIGN_OR_RETURN(const std::string contents, ReadProcStat());
  OTT_ASSIGN_OR_RETURN(CpuTimes times, ParseProcStat(contents, static_cast<double>(sysconf(_SC_CLK_TCK))));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  times.process_user = Seconds(usage.ru_utime);
  times.process_system = Seconds(usage.ru_stime);
  times.wall = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return times;
}

void CpuUsage::Add(const CpuTimes& start, const CpuTimes& end) {
  sums_.all_busy += end.all_busy - start.all_busy;
  sums_.all_total += end.all_total - start.all_total;
  sums_.process_user += end.process_user - start.process_user;
  sums_.process_system += end.process_system - start.process_system;
  sums_.wall += end.wall - start.wall;
}

double CpuUsage::all_percent() const {
  // Sums round, each by itself.
  return std::min(Percent(sums_.all_busy, sums_.all_total), 100.0);
}
double CpuUsage::process_user_percent() const { return Percent(sums_.process_user, sums_.wall); }
double CpuUsage::process_system_percent() const { return Percent(sums_.process_system, sums_.wall); }

}  // namespace ott
