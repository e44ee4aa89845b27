// Measures what differs between runs that should be equal, and the tolerances that follow from it.

#ifndef OTT_QUESTIONS_RIGHT_CALIBRATE_NOISE_H_
#define OTT_QUESTIONS_RIGHT_CALIBRATE_NOISE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ott/dist/check/tolerances.pb.h"

namespace ott::calibrate {

// A run like the others may be found different so often, for one direction in which they differ.
inline constexpr double kFalseAlarmProbability = 0.01;
// Many tensors and iterations are many directions, of which few runs show few.
inline constexpr double kMinFactor = 5;

// A run whose difference from the others takes more than so many times the tolerance that these give is no
// repetition of them: Student's t is that large with a chance of 1 in 1000 for one direction.
inline constexpr double kOutlier = 3;

// Returns the multiple of the noise of so many runs that their difference from one more stays within, except
// with kFalseAlarmProbability: Student's t, as differences of normal variables are distributed. The noise is
// the root mean square of the differences of each two of the runs. 63.7 for 2, 9.9 for 3, 5.8 for 4,
// kMinFactor from 5 on.
// REQUIRES: num_runs >= 2
double FactorFor(int num_runs);

// The largest absolute differences of tensors between each two runs, by iteration. Not thread-safe.
class Noise {
 public:
  void AddIteration(int64_t iteration) { iterations_.insert(iteration); }
  // Adds a difference; the largest of several counts.
  void Add(const std::string& tensor, int64_t iteration, int run, int other, double difference);
  // Adds what one rounding may change in the tensor's largest number.
  void AddRounding(const std::string& tensor, int64_t iteration, double rounding);

  // Returns true if the tensor differs between any two runs.
  bool Has(const std::string& tensor) const { return tensors_.count(tensor) != 0; }
  bool AreEqual(int run, int other) const;

  // factor times the noise between `runs`, and one rounding at least. In an iteration it is the largest of
  // those of the dumps before, then and after, as runs may be alike by chance. raised: times which it is
  // more, of some tensors.
  Tolerances Fit(const std::vector<int>& runs, double factor,
                 const std::map<std::string, double>& raised = {}) const;

  // The part of a tolerance that a difference takes, and where: more than 1 is a false alarm, infinity a
  // difference where the others are equal bit for bit in all iterations.
  struct Part {
    double part = 0;
    std::string tensor;
    int64_t iteration = 0;
  };
  // Says how each of the runs, left out, would have compared with the others by the tolerances that they
  // give.
  struct LeftOut : Part {
    int run = 0;
    // The largest part beyond kOutlier of the first iteration that has one; nullopt if there is none.
    std::optional<Part> outlier;
    // The largest part of each tensor.
    std::map<std::string, double> of_tensors;
  };
  // factor: absent: FactorFor() the number of the others.
  // REQUIRES: at least three runs
  std::vector<LeftOut> LeaveOneOut(const std::vector<int>& runs, std::optional<double> factor) const;

  // Returns how many times larger than FactorFor() the factors of tensors are to be so that none of these is
  // a false alarm.
  static std::map<std::string, double> Raised(const std::vector<LeftOut>& left_out);

  // Returns the tolerances as multiples of the largest difference between `runs`, of all tensors and
  // iterations in which there is one: the median, and the largest.
  std::pair<double, double> Looseness(const std::vector<int>& runs, double factor,
                                      const std::map<std::string, double>& raised = {}) const;

 private:
  struct Sample {
    std::map<std::pair<int, int>, double> differences;  // by the lower and the higher run
    double rounding = 0;
  };
  using Samples = std::map<int64_t, Sample>;

  static double Between(const Sample& sample, int run, int other);
  static double Largest(const Sample& sample, const std::vector<int>& runs);
  static double RootMeanSquare(const Sample& sample, const std::vector<int>& runs);
  // Returns an empty map if the runs have the same in all iterations.
  static std::map<int64_t, double> AtolOf(const Samples& samples, const std::vector<int>& runs,
                                          double factor);

  std::set<int64_t> iterations_;
  std::map<std::string, Samples> tensors_;
};

}  // namespace ott::calibrate

#endif  // OTT_QUESTIONS_RIGHT_CALIBRATE_NOISE_H_
