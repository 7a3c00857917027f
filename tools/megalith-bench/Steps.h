// SPDX-License-Identifier: Apache-2.0
/// \file
/// Times steps of several bundles in turn.

#ifndef MEGALITH_TOOLS_BENCH_STEPS_H
#define MEGALITH_TOOLS_BENCH_STEPS_H

#include "Stream.h"
#include "Variant.h"

namespace megalith::bench {

/// One bundle at one context.
struct StepTimes {
  int64_t context = 0;
  std::vector<double> each;   ///< us between the events around each step
  std::vector<double> rounds; ///< us a step, back to back, one for each round
  std::vector<double> host;   ///< us of the host a step, one for each round
};

/// times[variant][context]. Every round visits all bundles at all contexts,
/// starting with another bundle each time, and then the stream, so that what
/// changes during the run (clocks, heat) changes for all.
std::vector<std::vector<StepTimes>>
timeSteps(Gpu &gpu, std::vector<std::unique_ptr<Variant>> &variants,
          const std::vector<int64_t> &contexts, int steps, ReadStream &stream);

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_STEPS_H
