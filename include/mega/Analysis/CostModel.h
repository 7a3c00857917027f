// SPDX-License-Identifier: Apache-2.0
/// \file
/// Predicts how long each phase of a scheduled program takes, and the token. It
/// reads IR of level 2 or 3 and decides nothing.
///
/// A phase's work is a sum of terms: how often something happens to the CTA
/// that has most of it, times a coefficient of the machine file
/// (`costs.phase`). After the phase comes its synchronisation. The terms are a
/// table, in CostModel.cpp; docs/cost-model.md says how coefficients are
/// fitted, and how far off the predictions are.

#ifndef MEGA_ANALYSIS_COSTMODEL_H
#define MEGA_ANALYSIS_COSTMODEL_H

#include "mega/Analysis/MachineCosts.h"
#include "mega/Analysis/StageWork.h"

namespace mega {

/// One term of a phase's work.
struct CostTerm {
  llvm::StringLiteral key;  ///< of its coefficient in `costs.phase`
  llvm::StringLiteral what; ///< what the coefficient is multiplied with
  bool perTile;             ///< a CTA with fewer tiles has less of it
};

/// All terms, in the order of PhaseCost::amounts.
llvm::ArrayRef<CostTerm> costTerms();

/// The coefficients of what a barrier takes in a step beyond its own latency, and
/// a stage's wait for counters: CTAs that arrive late, and for counters what the
/// stage could have loaded before a barrier and the signals.
constexpr llvm::StringLiteral kSkewKey = "skew_us";
constexpr llvm::StringLiteral kCounterSkewKey = "counter_skew_us";

/// Microseconds of a barrier, and of a stage's wait for counters.
double barrierUs(const MachineCosts &costs);
double counterUs(const MachineCosts &costs);

/// One phase.
struct PhaseCost {
  PhaseOp phase;
  llvm::SmallVector<StageWork> stages; ///< in the phase's order
  llvm::SmallVector<double> amounts;   ///< of each term
  double workUs = 0;
  double syncUs = 0; ///< of counters in it and of what stands behind it

  int64_t weightBytes() const;
  double waveEfficiency() const; ///< weighted by bytes
};

/// The whole token.
struct TokenCost {
  llvm::SmallVector<PhaseCost> phases;
  int64_t barriers = 0;
  int64_t counterWaits = 0; ///< stages that wait for counters
  double totalUs = 0; ///< with the launch
  int64_t weightBytes = 0, stateBytes = 0, cacheBytes = 0;
  double rooflineUs = 0;
};

/// `container` is a mega.program at level 2 or a mega.kernel.
TokenCost predict(mlir::Operation *container, const MachineCosts &costs,
                  const WorkSetting &setting);

/// The coefficients in `costs` moved so that the phases' work is as near to
/// `measured` as non-negative coefficients can make it, relatively, and no
/// further from the present ones than the measurements ask for.
/// `measured[i]` is the work of phases[i] in microseconds; below 0: not known.
llvm::StringMap<double> fitPhaseCosts(const TokenCost &cost,
                                      llvm::ArrayRef<double> measured,
                                      const MachineCosts &costs);

} // namespace mega

#endif // MEGA_ANALYSIS_COSTMODEL_H
