// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which dependences of one stage on another a set of counters can cover, and
/// how: the scheduler's question. It changes nothing.

#ifndef MEGA_LIB_TRANSFORMS_COUNTEREDGES_H
#define MEGA_LIB_TRANSFORMS_COUNTEREDGES_H

#include "mega/Analysis/TileAccess.h"

namespace mega {

/// Two accesses that depend on each other, the earlier one first.
using AccessPair = std::pair<const TileAccess *, const TileAccess *>;

/// A set of counters that covers what one stage waits for of another.
struct CounterEdge {
  struct Signal {
    AnchorOpInterface anchor;
    mlir::AffineMap map; ///< from the anchor's tile to the counter
  };
  llvm::SmallVector<Signal> signals;
  mlir::AffineMap wait; ///< from the later stage's tile to the counter
  int64_t count = 1;    ///< counters in the set
  int64_t target = 0;   ///< signals that each counter gets
};

/// Counters for `pairs`, accesses of one stage and of a later one with
/// `laterTiles` tiles, so that no counter stands for more than `waitLimit`
/// tiles; nothing if there are none. One counter for each independent group of
/// tiles if the groups are runs of equal length, else one for the whole stage.
std::optional<CounterEdge> planCounters(llvm::ArrayRef<AccessPair> pairs,
                                        int64_t laterTiles, int64_t waitLimit);

} // namespace mega

#endif // MEGA_LIB_TRANSFORMS_COUNTEREDGES_H
