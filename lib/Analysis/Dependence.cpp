// SPDX-License-Identifier: Apache-2.0
/// \file
/// Dependences between stages, with their tiles and shapes.

#include "mega/Analysis/Dependence.h"
#include "mega/Analysis/TileRelation.h"

#include "mlir/Analysis/Presburger/PresburgerRelation.h"

using namespace mlir;
using namespace mega;
using presburger::IntegerRelation;
using presburger::PresburgerRelation;
using presburger::PresburgerSet;

StringRef mega::describe(EdgeShape shape) {
  switch (shape) {
  case EdgeShape::AllToAll:
    return "all-to-all";
  case EdgeShape::TileLocal:
    return "tile-local";
  case EdgeShape::Scalar:
    return "scalar";
  case EdgeShape::Index:
    return "index";
  }
  llvm_unreachable("covered switch");
}

DependenceKind mega::kindOf(const TileAccess &earlier,
                            const TileAccess &later) {
  return !earlier.isWrite ? DependenceKind::WriteAfterRead
         : later.isWrite  ? DependenceKind::WriteAfterWrite
                          : DependenceKind::ReadAfterWrite;
}

/// The alloc behind a buffer that has its place in the workspace.
static AllocOp placedAlloc(Resource resource) {
  auto buffer = dyn_cast<Value>(resource);
  auto alloc = buffer ? buffer.getDefiningOp<AllocOp>() : AllocOp();
  return alloc && alloc.getOffset() ? alloc : AllocOp();
}

std::optional<IntegerRelation> mega::dependentTiles(const TileAccess &earlier,
                                                    const TileAccess &later) {
  if (!earlier.isWrite && !later.isWrite)
    return std::nullopt;
  bool reuse = earlier.resource != later.resource;
  if (reuse && (!placedAlloc(earlier.resource) || !placedAlloc(later.resource)))
    return std::nullopt;
  IntegerRelation tiles =
      reuse ? sharedBytes(earlier, later) : sharedElements(earlier, later);
  if (tiles.isIntegerEmpty())
    return std::nullopt;
  return tiles;
}

/// Whether all tiles of the later stage wait for the same ones.
static bool isAllToAll(const Dependence &edge) {
  if (edge.earlier->isPrologue() || edge.later->isPrologue())
    return true;
  PresburgerRelation pairs(edge.tiles);
  PresburgerRelation all(allPairs({edge.earlier->begin, edge.earlier->end},
                                  {edge.later->begin, edge.later->end}));
  return all.intersectDomain(pairs.getDomainSet()).isSubsetOf(pairs);
}

static EdgeShape shapeOf(const Dependence &edge) {
  if (!isAllToAll(edge))
    return EdgeShape::TileLocal;
  if (auto buffer = dyn_cast<Value>(edge.later->resource)) {
    auto type = cast<BufferType>(buffer.getType());
    if (type.getElementType().isInteger())
      return EdgeShape::Index;
    if (type.getNumElements() == 1)
      return EdgeShape::Scalar;
  }
  return EdgeShape::AllToAll;
}

SmallVector<int64_t> Dependence::tilesBefore(int64_t tile) const {
  SmallVector<int64_t> result;
  IntegerRelation ofTile = tiles;
  ofTile.addBound(presburger::BoundType::EQ, 1, tile);
  for (int64_t first = earlier->begin; first < earlier->end; ++first) {
    IntegerRelation pair = ofTile;
    pair.addBound(presburger::BoundType::EQ, 0, first);
    if (!pair.isIntegerEmpty())
      result.push_back(first);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// DependenceAnalysis
//===----------------------------------------------------------------------===//

DependenceAnalysis::DependenceAnalysis(Operation *container) {
  container->walk([&](StageOp stage) {
    stages.push_back(
        std::make_unique<Stage>(Stage{stage, collectTileAccesses(stage)}));
  });
  for (size_t later = 0; later < stages.size(); ++later)
    for (size_t earlier = 0; earlier < later; ++earlier)
      addPairs(*stages[earlier], *stages[later], /*carried=*/false);
  for (auto &earlier : stages)
    for (auto &later : stages)
      addPairs(*earlier, *later, /*carried=*/true);
}

void DependenceAnalysis::addPairs(const Stage &earlier, const Stage &later,
                                  bool carried) {
  for (const TileAccess &a : earlier.accesses)
    for (const TileAccess &b : later.accesses) {
      // The caller's vectors are new in each step, and a buffer's contents.
      auto buffer = dyn_cast<Value>(a.resource);
      DependenceKind kind = kindOf(a, b);
      if (carried && buffer &&
          (isa<BlockArgument>(buffer) ||
           kind == DependenceKind::ReadAfterWrite))
        continue;
      // Only bytes in common: what the later stage reads, another wrote.
      if (a.resource != b.resource && kind == DependenceKind::ReadAfterWrite)
        continue;
      std::optional<IntegerRelation> tiles = dependentTiles(a, b);
      if (!tiles)
        continue;
      dependences.push_back({earlier.op, later.op, &a, &b, kind,
                             EdgeShape::AllToAll, carried, std::move(*tiles)});
      dependences.back().shape = shapeOf(dependences.back());
    }
}
