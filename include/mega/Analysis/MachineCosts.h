// SPDX-License-Identifier: Apache-2.0
/// \file
/// What things cost on a machine: the `costs` of a machine file
/// (docs/machines.md) as values. Predictions read them; no pass must.

#ifndef MEGA_ANALYSIS_MACHINECOSTS_H
#define MEGA_ANALYSIS_MACHINECOSTS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace mega {

/// Costs of waiting for other CTAs with so many bytes in flight an SM.
struct LoadedCosts {
  double kib = 0;
  std::optional<double> gbps, barrierUs, edgeUs, flaggedEdgeUs, counterUs;
};

/// A point of the read stream's rate.
struct StreamRate {
  double mib = 0, gbps = 0;
};

struct MachineCosts {
  /// Measured on such a machine, or placeholders.
  bool calibrated = false;
  double clockGhz = 1, launchUs = 0, flagUs = 0;
  llvm::SmallVector<StreamRate> stream;    ///< sizes ascend
  llvm::SmallVector<LoadedCosts> inFlight; ///< sizes ascend, the first is 0
  /// Coefficients of the cost model's terms, by name; those not named are 0.
  llvm::StringMap<double> phase;

  /// GB/s of a stream of `bytes`: between the points by their sizes'
  /// logarithm, beyond them as at the nearest.
  double streamRate(double bytes) const;

  /// A cost of waiting at `kib` in flight, between the rows that have it; 0 if
  /// none has.
  double waitAt(std::optional<double> LoadedCosts::*cost, double kib) const;
};

} // namespace mega

#endif // MEGA_ANALYSIS_MACHINECOSTS_H
