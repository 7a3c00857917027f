// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which elements each tile of a stage touches. The relations are exact: what
/// is not in them is not touched. They read the IR and decide nothing.

#ifndef MEGA_ANALYSIS_TILEACCESS_H
#define MEGA_ANALYSIS_TILEACCESS_H

#include "mega/Analysis/StageAccess.h"

#include "mlir/IR/AffineMap.h"

namespace mega {

/// The relation from tiles to elements that `op`, a load or store of a
/// partitioned stage, has by what its value hangs on.
AccessAttr deriveAccess(mlir::Operation *op);

/// One access of a stage, with its elements by tile.
struct TileAccess : StageAccess {
  /// Whose tiles do it; null: every CTA does it, in the prologue.
  AnchorOpInterface anchor;
  /// Tiles [begin, end) of the stage's list; [0, 1) in the prologue.
  int64_t begin = 0, end = 1;
  /// Elements of tile d0 as { map(d0, s) : 0 <= s_i < extents_i }, clipped to
  /// `shape`: row-major numbers, or an index for each dimension.
  mlir::AffineMap map;
  llvm::SmallVector<int64_t> extents;
  /// Of the buffer, or the state; a cache counts as its one new row.
  llvm::SmallVector<int64_t> shape;

  bool isPrologue() const { return !anchor; }

  /// Calls `visit(first, length)` for runs of row-major elements that together
  /// are what tile `tile` touches.
  void forEachRun(int64_t tile,
                  llvm::function_ref<void(int64_t, int64_t)> visit) const;
};

/// All accesses of `stage` in program order, those of `collectAccesses`.
llvm::SmallVector<TileAccess> collectTileAccesses(StageOp stage);

} // namespace mega

#endif // MEGA_ANALYSIS_TILEACCESS_H
