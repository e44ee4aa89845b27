// Holds what is compared: the processes of two sides, and the times that each of them took.

#ifndef OTT_QUESTIONS_FASTER_SAMPLES_H_
#define OTT_QUESTIONS_FASTER_SAMPLES_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ott::faster {

struct MeasurementSamples {
  std::string name;
  // One for each iteration (or repetition) in which it ran, in order; positive and finite.
  std::vector<double> seconds;
  // The share of all iterations.
  double share_of_iterations = 1;
  // How many iterations there were, if `seconds` are of a part of them.
  std::optional<size_t> num_iterations = std::nullopt;
};

// One process, or one job of many ranks: what is independent of the others. Its iterations are not.
struct Process {
  std::string name;  // a path, or "A, run 3"
  std::vector<MeasurementSamples> measurements;
  // Conditions that must be the same on both sides for a difference to be the program's: "machine", "CPU",
  // "ranks", "library".
  std::map<std::string, std::string> conditions;
  // When it started, in seconds since 1970.
  std::optional<double> started;
  // CPUs that others kept busy meanwhile.
  std::optional<double> cpus_of_others;
  // The block of processes that were run in turn: two of each side make a block.
  std::optional<size_t> block;
};

struct Samples {
  std::vector<Process> a;
  std::vector<Process> b;
  // The measurement that the answer is about; empty: all of them alike.
  std::string primary;
  // True if all processes do the same iterations, so that another number of them is a process that was cut
  // short.
  bool iterations_must_match = false;
  // Things to know about the machine, said in the answer.
  std::vector<std::string> notes;
};

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_SAMPLES_H_
