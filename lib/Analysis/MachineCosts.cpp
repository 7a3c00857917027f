// SPDX-License-Identifier: Apache-2.0
/// \file
/// Interpolation in a machine's tables.

#include "mega/Analysis/MachineCosts.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mega;

/// A point of a table.
using Point = std::pair<double, double>;

/// The table's value at `x`; `points` ascend.
static double interpolate(llvm::ArrayRef<Point> points, double x) {
  if (points.empty())
    return 0;
  if (x <= points.front().first)
    return points.front().second;
  for (auto [a, b] : llvm::zip(points.drop_back(), points.drop_front()))
    if (x <= b.first)
      return a.second +
             (b.second - a.second) * (x - a.first) / (b.first - a.first);
  return points.back().second;
}

double MachineCosts::streamRate(double bytes) const {
  llvm::SmallVector<Point> points;
  for (const StreamRate &rate : stream)
    points.push_back({std::log2(rate.mib), rate.gbps});
  return interpolate(points, std::log2(std::max(bytes, 1.0) / (1 << 20)));
}

double MachineCosts::waitAt(std::optional<double> LoadedCosts::*cost,
                            double kib) const {
  llvm::SmallVector<Point> points;
  for (const LoadedCosts &row : inFlight)
    if (const std::optional<double> &value = row.*cost)
      points.push_back({row.kib, *value});
  return interpolate(points, kib);
}
