// SPDX-License-Identifier: Apache-2.0
/// \file
/// Order statistics of samples.

#ifndef MEGALITH_TOOLS_BENCH_STATISTICS_H
#define MEGALITH_TOOLS_BENCH_STATISTICS_H

#include <algorithm>
#include <vector>

namespace megalith::bench {

/// The sample below which a `fraction` of the others lie; 0 for no samples.
inline double quantile(std::vector<double> samples, double fraction) {
  if (samples.empty())
    return 0;
  std::sort(samples.begin(), samples.end());
  size_t index = size_t(fraction * double(samples.size()));
  return samples[std::min(index, samples.size() - 1)];
}

inline double median(const std::vector<double> &samples) {
  return quantile(samples, 0.5);
}

/// Least, middle and largest of some samples.
struct Spread {
  double min = 0, median = 0, max = 0;
};

inline Spread spreadOf(const std::vector<double> &samples) {
  return {quantile(samples, 0), median(samples), quantile(samples, 1)};
}

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_STATISTICS_H
