// SPDX-License-Identifier: Apache-2.0
/// \file
/// Groups of tiles that depend on each other, and counters for them.

#include "CounterEdges.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mega;

namespace {

/// A run of elements, and the tile that touches it.
struct Run {
  int64_t first, end;
  int64_t tile;
};

SmallVector<Run> runsOf(const TileAccess &access) {
  SmallVector<Run> runs;
  for (int64_t tile = access.begin; tile < access.end; ++tile)
    access.forEachRun(tile, [&](int64_t first, int64_t length) {
      runs.push_back({first, first + length, tile});
    });
  llvm::stable_sort(
      runs, [](const Run &a, const Run &b) { return a.first < b.first; });
  return runs;
}

/// The groups of tiles that depend on each other: classes over the earlier
/// stage's tiles, then the later one's.
class TileGroups {
public:
  TileGroups(ArrayRef<AccessPair> pairs, int64_t earlierTiles,
             int64_t laterTiles)
      : earlierTiles(earlierTiles), laterTiles(laterTiles),
        classes(earlierTiles + laterTiles) {
    for (auto [earlier, later] : pairs)
      join(runsOf(*earlier), runsOf(*later));
    classes.compress();
  }

  unsigned groupOfEarlier(int64_t tile) const { return classes[tile]; }
  unsigned groupOfLater(int64_t tile) const {
    return classes[earlierTiles + tile];
  }

  /// Length of the runs of the later stage's tiles that form the groups, in
  /// ascending order; 0 if they do not.
  int64_t laterRun() const {
    return runLength(laterTiles,
                     [&](int64_t tile) { return groupOfLater(tile); });
  }

  /// The same for tiles [begin, end) of the earlier stage, whose groups come in
  /// the later stage's order.
  int64_t earlierRun(int64_t begin, int64_t end, int64_t laterRun) const {
    int64_t run = runLength(end - begin, [&](int64_t tile) {
      return groupOfEarlier(begin + tile);
    });
    if (run == 0)
      return 0;
    for (int64_t tile = begin; tile < end; ++tile) {
      int64_t later = (tile - begin) / run * laterRun;
      if (later >= laterTiles || groupOfEarlier(tile) != groupOfLater(later))
        return 0;
    }
    return run;
  }

private:
  void join(ArrayRef<Run> earlier, ArrayRef<Run> later) {
    for (const Run &b : later)
      for (const Run &a : earlier) {
        if (a.first >= b.end)
          break;
        if (a.end > b.first)
          classes.join(a.tile, earlierTiles + b.tile);
      }
  }

  template <typename Group>
  static int64_t runLength(int64_t tiles, Group group) {
    int64_t run = 1;
    while (run < tiles && group(run) == group(0))
      ++run;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      bool same = tile % run != 0 && group(tile) == group(tile - 1);
      bool next =
          tile % run == 0 && (tile == 0 || group(tile) != group(tile - 1));
      if (!same && !next)
        return 0;
    }
    return run;
  }

  int64_t earlierTiles, laterTiles;
  llvm::IntEqClasses classes;
};

} // namespace

std::optional<CounterEdge> mega::planCounters(ArrayRef<AccessPair> pairs,
                                              int64_t laterTiles,
                                              int64_t waitLimit) {
  llvm::SetVector<Operation *> anchors;
  int64_t earlierTiles = 0, wanted = 0;
  bool byTile = true;
  for (auto [earlier, later] : pairs) {
    // Every CTA does it: no tile's owner can tell that all have.
    if (earlier->isPrologue())
      return std::nullopt;
    if (anchors.insert(AnchorOpInterface(earlier->anchor)))
      wanted += earlier->end - earlier->begin;
    earlierTiles = std::max(earlierTiles, earlier->end);
    byTile &= !later->isPrologue();
  }
  MLIRContext *context = anchors.front()->getContext();
  AffineExpr tile = getAffineDimExpr(0, context);
  auto tilesOf = [](Operation *anchor) {
    return cast<AnchorOpInterface>(anchor).getTilingAttr();
  };

  if (byTile) {
    TileGroups groups(pairs, earlierTiles, laterTiles);
    CounterEdge edge;
    int64_t laterRun = groups.laterRun(), tilesOfGroup = 0;
    edge.count = laterRun == 0 ? 1 : llvm::divideCeil(laterTiles, laterRun);
    bool regular = edge.count > 1;
    for (Operation *anchor : anchors) {
      if (!regular)
        break;
      TilingAttr tiling = tilesOf(anchor);
      int64_t run = groups.earlierRun(
          tiling.getBegin(), tiling.getBegin() + tiling.getCount(), laterRun);
      // Every counter gets as many signals.
      regular = run != 0 && tiling.getCount() == run * edge.count;
      tilesOfGroup += run;
      edge.target += run * signalsOfTile(cast<AnchorOpInterface>(anchor));
      if (regular)
        edge.signals.push_back({cast<AnchorOpInterface>(anchor),
                                AffineMap::get(1, 0, tile.floorDiv(run))});
    }
    if (regular && tilesOfGroup <= waitLimit) {
      edge.wait = AffineMap::get(1, 0, tile.floorDiv(laterRun));
      return edge;
    }
  }

  if (wanted > waitLimit)
    return std::nullopt;
  CounterEdge edge;
  edge.wait = AffineMap::get(1, 0, getAffineConstantExpr(0, context));
  for (Operation *anchor : anchors) {
    edge.signals.push_back({cast<AnchorOpInterface>(anchor), edge.wait});
    edge.target += tilesOf(anchor).getCount() *
                   signalsOfTile(cast<AnchorOpInterface>(anchor));
  }
  return edge;
}
