// SPDX-License-Identifier: Apache-2.0
/// \file
/// Measures what a machine file says about costs (docs/machines.md).

#ifndef MEGALITH_TOOLS_BENCH_CALIBRATE_H
#define MEGALITH_TOOLS_BENCH_CALIBRATE_H

#include "Gpu.h"

#include <nlohmann/json.hpp>

namespace megalith::bench {

/// The machine file for the device. Keys of `base` that are not measured stay;
/// those that an empty `base` lacks are made from the device. Throws if `base`
/// is of another arch.
nlohmann::ordered_json calibrate(Gpu &gpu, nlohmann::ordered_json base);

/// A few lines of what was measured.
std::string summaryOf(const nlohmann::ordered_json &machine);

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_CALIBRATE_H
