// A range that holds the truth with a stated probability.

#ifndef OTT_CORE_STATISTICS_INTERVAL_H_
#define OTT_CORE_STATISTICS_INTERVAL_H_

namespace ott {

struct Interval {
  double low = 0;
  double high = 0;
};

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_INTERVAL_H_
