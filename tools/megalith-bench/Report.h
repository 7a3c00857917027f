// SPDX-License-Identifier: Apache-2.0
/// \file
/// What was measured, as tables and as JSON (docs/measuring.md has the keys).

#ifndef MEGALITH_TOOLS_BENCH_REPORT_H
#define MEGALITH_TOOLS_BENCH_REPORT_H

#include "Phases.h"
#include "Steps.h"

#include <optional>

namespace megalith::bench {

/// One bundle's results.
struct Measured {
  const Variant *variant;
  std::vector<StepTimes> times;
  std::optional<PhaseTable> phases; ///< if it is instrumented
};

/// A whole run.
struct Session {
  DeviceFacts device;
  double gigahertz = 0;
  double streamRate = 0; ///< GB/s
  uint64_t streamBytes = 0;
  std::vector<Measured> bundles;
};

/// Tables for people.
std::string textOf(const Session &run);

/// The same and more for programs; keys stay.
nlohmann::ordered_json jsonOf(const Session &run);

} // namespace megalith::bench

#endif // MEGALITH_TOOLS_BENCH_REPORT_H
