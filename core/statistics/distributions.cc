#include "ott/core/statistics/distributions.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "ott/core/base/check.h"

namespace ott {
namespace {

namespace policies = boost::math::policies;

// Arguments are checked here, and a result beyond what a double holds is as good as infinite.
using NoExceptions = policies::policy<
    policies::domain_error<policies::ignore_error>, policies::pole_error<policies::ignore_error>,
    policies::overflow_error<policies::ignore_error>, policies::evaluation_error<policies::ignore_error>>;
using Normal = boost::math::normal_distribution<double, NoExceptions>;
using StudentT = boost::math::students_t_distribution<double, NoExceptions>;

}  // namespace

double NormalQuantile(double probability) {
  OTT_CHECK(probability > 0 && probability < 1) << "probability " << probability;
  return quantile(Normal(), probability);
}

double NormalProbability(double value) { return std::erfc(-value / std::sqrt(2.0)) / 2; }

double StudentTQuantile(double probability, double degrees_of_freedom) {
  OTT_CHECK(probability > 0 && probability < 1) << "probability " << probability;
  OTT_CHECK(degrees_of_freedom > 0) << degrees_of_freedom << " degrees of freedom";
  return quantile(StudentT(degrees_of_freedom), probability);
}

double StudentTTwoSidedPValue(double t, double degrees_of_freedom) {
  OTT_CHECK(degrees_of_freedom > 0) << degrees_of_freedom << " degrees of freedom";
  // The minimum of 1 and no number is 1.
  return std::min(1.0, 2 * cdf(StudentT(degrees_of_freedom), -std::abs(t)));
}

}  // namespace ott
