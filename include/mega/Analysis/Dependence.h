// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which tiles of two stages depend on each other: the facts that scheduler,
/// checker and reports share. Each decides for itself what to do with them.

#ifndef MEGA_ANALYSIS_DEPENDENCE_H
#define MEGA_ANALYSIS_DEPENDENCE_H

#include "mega/Analysis/TileAccess.h"

#include "mlir/Analysis/Presburger/IntegerRelation.h"

#include <memory>
#include <vector>

namespace mega {

using DependenceKind = StageDependence::Kind;

/// How much of the earlier stage one tile of the later one waits for.
enum class EdgeShape {
  AllToAll,  ///< every tile for all that any tile waits for
  TileLocal, ///< different tiles for different ones: a head, a column strip
  Scalar,    ///< every tile, for one number
  Index      ///< every tile, for numbers that decide what it reads
};

/// "all-to-all" and so on.
llvm::StringRef describe(EdgeShape shape);

/// The kind of a dependence between two accesses of one place.
DependenceKind kindOf(const TileAccess &earlier, const TileAccess &later);

/// { p -> c : tile p of `earlier` and tile c of `later` touch one element, and
/// one of them writes it }; nothing if there are none. Buffers that share bytes
/// of the workspace count as one place. A prologue is its one tile 0.
std::optional<mlir::presburger::IntegerRelation>
dependentTiles(const TileAccess &earlier, const TileAccess &later);

/// One dependence between two accesses of different stages, or of one stage in
/// two consecutive steps.
struct Dependence {
  StageOp earlierStage, laterStage;
  const TileAccess *earlier, *later;
  DependenceKind kind;
  EdgeShape shape;
  /// The later access belongs to the next step.
  bool carried;
  mlir::presburger::IntegerRelation tiles;

  /// True if the accesses have nothing in common but bytes of the workspace.
  bool isReuse() const { return earlier->resource != later->resource; }

  /// Tiles of the earlier stage that tile `tile` of the later one depends on.
  llvm::SmallVector<int64_t> tilesBefore(int64_t tile) const;
};

/// All dependences of a program or kernel, in program order.
class DependenceAnalysis {
public:
  explicit DependenceAnalysis(mlir::Operation *container);

  llvm::ArrayRef<Dependence> getDependences() const { return dependences; }

private:
  struct Stage {
    StageOp op;
    llvm::SmallVector<TileAccess> accesses;
  };

  void addPairs(const Stage &earlier, const Stage &later, bool carried);

  std::vector<std::unique_ptr<Stage>> stages;
  std::vector<Dependence> dependences;
};

} // namespace mega

#endif // MEGA_ANALYSIS_DEPENDENCE_H
