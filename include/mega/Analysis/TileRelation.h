// SPDX-License-Identifier: Apache-2.0
/// \file
/// Relations between the tiles of two stages, as Presburger relations: which
/// pairs touch one element, which pairs a counter orders.

#ifndef MEGA_ANALYSIS_TILERELATION_H
#define MEGA_ANALYSIS_TILERELATION_H

#include "mega/Analysis/TileAccess.h"

#include "mlir/Analysis/Presburger/IntegerRelation.h"

namespace mega {

/// Tiles [begin, end) of a stage's list.
struct TileRange {
  int64_t begin, end;
};

/// { p -> c : tile p of `a` and tile c of `b` touch one element }; a prologue
/// is its one tile 0.
mlir::presburger::IntegerRelation sharedElements(const TileAccess &a,
                                                 const TileAccess &b);

/// The same for one byte of the workspace; both are buffers with an offset.
mlir::presburger::IntegerRelation sharedBytes(const TileAccess &a,
                                              const TileAccess &b);

/// { p -> c : signal(p - signallers.begin) = wait(c) }.
mlir::presburger::IntegerRelation sameCounter(mlir::AffineMap signal,
                                              TileRange signallers,
                                              mlir::AffineMap wait,
                                              TileRange waiters);

/// { p -> c } for all p and c.
mlir::presburger::IntegerRelation allPairs(TileRange first, TileRange second);

} // namespace mega

#endif // MEGA_ANALYSIS_TILERELATION_H
