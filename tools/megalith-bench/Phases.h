// SPDX-License-Identifier: Apache-2.0
/// \file
/// The phase table of an instrumented bundle.

#ifndef MEGALITH_TOOLS_BENCH_PHASES_H
#define MEGALITH_TOOLS_BENCH_PHASES_H

#include "Statistics.h"
#include "Variant.h"

namespace megalith::bench {

/// Microseconds of one phase: over CTAs, each the median over steps.
struct PhaseTimes {
  Spread work; ///< from the phase's start to its last warp's end
  Spread wait; ///< from there to the next phase's start: the barrier and skew
  double meanWork = 0, meanWait = 0;
};

/// All phases, and the stamps of the step in the middle by total time.
struct PhaseTable {
  int64_t context = 0;
  int steps = 0, grid = 0;
  std::vector<PhaseTimes> phases;
  std::vector<uint32_t> stamps; ///< as Variant::stamps
};

/// SM clocks in GHz, while something runs.
double measureClock(Gpu &gpu);

/// The table from the stamps of several steps.
PhaseTable tabulate(const std::vector<std::vector<uint32_t>> &stamps,
                    size_t phases, int grid, double gigahertz);

/// Runs `steps` steps, after some that do not count.
PhaseTable measurePhases(Variant &variant, int64_t context, int steps,
                         double gigahertz);

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_PHASES_H
