// SPDX-License-Identifier: Apache-2.0
/// \file
/// Gives every anchor of a program its tiles and every load and store the
/// relation from tiles to elements.

#include "mega/Transforms/Passes.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mega {
#define GEN_PASS_DEF_PARTITIONPASS
#include "mega/Transforms/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

int64_t elementsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

/// Builds relations over the flat element index of a buffer.
class AccessBuilder {
public:
  explicit AccessBuilder(MLIRContext *context)
      : context(context), tile(getAffineDimExpr(0, context)),
        inner(getAffineSymbolExpr(0, context)) {}

  /// `count` elements from `start`, a function of the tile number.
  AccessAttr range(AffineExpr start, int64_t count) const {
    auto map = AffineMap::get(1, 1, start + inner, context);
    return AccessAttr::get(context, AffineMapAttr::get(map), {count});
  }

  /// Every element, for every tile.
  AccessAttr all(int64_t count) const {
    return range(getAffineConstantExpr(0, context), count);
  }

  AffineExpr getTile() const { return tile; }

private:
  MLIRContext *context;
  AffineExpr tile, inner;
};

/// The anchor that an epilogue value hangs on; null for a prologue value.
Operation *anchorBehind(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<AnchorOpInterface>(op))
    return op;
  for (Value operand : op->getOperands())
    if (Operation *anchor = anchorBehind(operand))
      return anchor;
  return nullptr;
}

/// Elements of operand `value` that a tile of `anchor` reads.
AccessAttr readRelation(Operation *anchor, Value value,
                        const AccessBuilder &access) {
  AffineExpr local = access.getTile() -
                     cast<AnchorOpInterface>(anchor).getTilingAttr().getBegin();
  int64_t count = elementsOf(value);
  return TypeSwitch<Operation *, AccessAttr>(anchor)
      .Case([&](DeltaRuleOp op) {
        int64_t strip = op.getTileExtent();
        int64_t heads =
            cast<RankedTensorType>(op.getQ().getType()).getDimSize(0);
        int64_t strips = op.getTileCount() / heads;
        if (value == op.getV())
          return access.range(local * strip, strip);
        return access.range(local.floorDiv(strips) * (count / heads),
                            count / heads);
      })
      .Case([&](LatentQueryOp op) {
        int64_t heads =
            cast<RankedTensorType>(op.getResult().getType()).getDimSize(0);
        return access.range(local.floorDiv(op.getTileCount() / heads) *
                                (count / heads),
                            count / heads);
      })
      .Case([&](ElementwiseOp) { return access.range(local, 1); })
      .Default([&](Operation *) { return access.all(count); });
}

/// Elements of `value` that the owner of a tile writes.
AccessAttr writeRelation(Operation *anchor, StoreOp store,
                         const AccessBuilder &access) {
  int64_t count = elementsOf(store.getValue());
  if (!anchor)
    return access.all(count);
  TilingAttr tiling = cast<AnchorOpInterface>(anchor).getTilingAttr();
  AffineExpr local = access.getTile() - tiling.getBegin();
  if (auto scores = dyn_cast<LatentScoresOp>(anchor)) {
    int64_t perChunk = count / scores.getTileCount();
    return access.range(local * perChunk, perChunk);
  }
  // A contributor's slot depends on the run-time grid: all slots of the tile.
  if (tiling.getSplit())
    return access.all(store.getBuffer().getType().getNumElements());
  return access.range(local * tiling.getExtent(),
                      std::min(tiling.getExtent(), count));
}

struct PartitionPass : public mega::impl::PartitionPassBase<PartitionPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([](StageOp stage) { partition(stage); });
  }

private:
  static void partition(StageOp stage) {
    MLIRContext *context = stage.getContext();
    int64_t next = 0;
    for (Operation &op : stage.getBody().front())
      if (auto anchor = dyn_cast<AnchorOpInterface>(op)) {
        TilingAttr old = anchor.getTilingAttr();
        int64_t count = anchor.getTileCount();
        anchor.setTilingAttr(TilingAttr::get(context, next, count,
                                             anchor.getTileExtent(),
                                             old && old.getSplit()));
        next += count;
      }
    OpBuilder builder(context);
    stage.setTilesAttr(builder.getI64IntegerAttr(next));

    AccessBuilder access(context);
    for (Operation &op : stage.getBody().front())
      TypeSwitch<Operation *>(&op)
          .Case<LoadOp, LoadSumOp>([&](auto load) {
            load.setAccessAttr(loadRelation(load.getResult(), access));
          })
          .Case([&](StoreOp store) {
            store.setAccessAttr(
                writeRelation(anchorBehind(store.getValue()), store, access));
          });
  }

  /// A value that one anchor reads directly is read tile by tile; anything a
  /// prologue op touches first is read whole.
  static AccessAttr loadRelation(Value loaded, const AccessBuilder &access) {
    Operation *only = nullptr;
    for (Operation *user : loaded.getUsers()) {
      if (!isa<AnchorOpInterface>(user) || (only && user != only))
        return access.all(elementsOf(loaded));
      only = user;
    }
    return only ? readRelation(only, loaded, access)
                : access.all(elementsOf(loaded));
  }
};

} // namespace
