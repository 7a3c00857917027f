// SPDX-License-Identifier: Apache-2.0
/// \file
/// A whole measurement of some bundles.

#ifndef MEGALITH_TOOLS_BENCH_MEASURE_H
#define MEGALITH_TOOLS_BENCH_MEASURE_H

#include "Options.h"
#include "Report.h"

#include <functional>

namespace megalith::bench {

/// Times all bundles of `options` on `gpu`, whose kernels are loaded, and hands
/// the results to `report` while the bundles live.
void measureBundles(Gpu &gpu, const Options &options,
                    const std::function<void(const Session &)> &report);

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_MEASURE_H
