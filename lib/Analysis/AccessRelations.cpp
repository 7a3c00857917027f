// SPDX-License-Identifier: Apache-2.0
/// \file
/// The access relations of loads and stores, by what their values hang on.

#include "mega/Analysis/TileAccess.h"
#include "mega/IR/LatentHeads.h"

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mega;

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

int64_t elementsOf(Value value) { return typeOf(value).getNumElements(); }

/// Builds relations from a stage's tile number.
class AccessBuilder {
public:
  explicit AccessBuilder(MLIRContext *context)
      : context(context), tile(getAffineDimExpr(0, context)) {}

  AffineExpr getTile() const { return tile; }
  AffineExpr symbol(unsigned index) const {
    return getAffineSymbolExpr(index, context);
  }

  AccessAttr get(ArrayRef<AffineExpr> results,
                 ArrayRef<int64_t> extents) const {
    auto map = AffineMap::get(1, extents.size(), results, context);
    return AccessAttr::get(context, AffineMapAttr::get(map), extents);
  }

  /// `count` elements from `start`, a function of the tile number.
  AccessAttr range(AffineExpr start, int64_t count) const {
    return get({start + symbol(0)}, {count});
  }

  /// Every element, for every tile.
  AccessAttr all(int64_t count) const {
    return range(getAffineConstantExpr(0, context), count);
  }

private:
  MLIRContext *context;
  AffineExpr tile;
};

AffineExpr localTile(AnchorOpInterface anchor, const AccessBuilder &access) {
  return access.getTile() - anchor.getTilingAttr().getBegin();
}

/// Elements of operand `value` that a tile of `anchor` reads.
AccessAttr readRelation(AnchorOpInterface anchor, Value value,
                        const AccessBuilder &access) {
  AffineExpr local = localTile(anchor, access);
  int64_t count = elementsOf(value);
  return TypeSwitch<Operation *, AccessAttr>(anchor)
      .Case([&](DeltaRuleOp op) {
        int64_t strip = op.getTileExtent();
        int64_t heads = typeOf(op.getQ()).getDimSize(0);
        int64_t strips = op.getTileCount() / heads;
        // A value that is the keys too is read by heads.
        if (value == op.getV() && llvm::count(op->getOperands(), value) == 1)
          return access.range(local * strip, strip);
        return access.range(local.floorDiv(strips) * (count / heads),
                            count / heads);
      })
      .Case([&](LatentQueryOp op) {
        int64_t heads = typeOf(op.getResult()).getDimSize(0);
        return access.range(local.floorDiv(op.getTileCount() / heads) *
                                (count / heads),
                            count / heads);
      })
      .Case([&](ElementwiseOp) { return access.range(local, 1); })
      .Default([&](Operation *) { return access.all(count); });
}

/// The elementwise anchor that computes every use of `value` element by
/// element, so that an element is read with its tile; null if there is none. A
/// value that is used twice is computed once, by every CTA, if it costs
/// anything.
ElementwiseOp elementwiseUser(Value value) {
  bool costly = !isa<LoadOp, ReshapeOp>(value.getDefiningOp());
  if (costly && !value.hasOneUse())
    return nullptr;
  ElementwiseOp only;
  for (Operation *user : value.getUsers()) {
    auto anchor = dyn_cast<ElementwiseOp>(user);
    if (isa<MapOp, ReshapeOp>(user))
      anchor = elementwiseUser(user->getResult(0));
    if (!anchor || (only && only != anchor))
      return nullptr;
    only = anchor;
  }
  return only;
}

/// A value that one anchor reads directly is read tile by tile; anything a
/// prologue op touches first is read whole.
AccessAttr loadRelation(Value loaded, bool sums, const AccessBuilder &access) {
  if (ElementwiseOp anchor = elementwiseUser(loaded)) {
    AffineExpr local = localTile(anchor, access);
    if (!sums)
      return access.range(local, 1);
    auto load = loaded.getDefiningOp<LoadSumOp>();
    return access.get({access.symbol(0) * elementsOf(loaded) + local},
                      {load.getBuffer().getType().getShape()[0]});
  }
  int64_t whole = sums ? loaded.getDefiningOp<LoadSumOp>()
                             .getBuffer()
                             .getType()
                             .getNumElements()
                       : elementsOf(loaded);
  AnchorOpInterface only;
  for (Operation *user : loaded.getUsers()) {
    auto anchor = dyn_cast<AnchorOpInterface>(user);
    if (sums || !anchor || (only && anchor != only))
      return access.all(whole);
    only = anchor;
  }
  return only ? readRelation(only, loaded, access) : access.all(whole);
}

/// Elements that slices drop before `value`, on the way from its anchor.
int64_t offsetFromAnchor(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa<AnchorOpInterface>(op))
    return 0;
  for (Value operand : op->getOperands())
    if (anchorBehind(operand)) {
      auto slice = dyn_cast<SliceOp>(op);
      return offsetFromAnchor(operand) +
             (slice ? static_cast<int64_t>(slice.getOffset()) : 0);
    }
  return 0;
}

/// Elements of `store`'s buffer that the owner of a tile writes.
AccessAttr writeRelation(AnchorOpInterface anchor, StoreOp store,
                         const AccessBuilder &access) {
  int64_t count = elementsOf(store.getValue());
  if (!anchor)
    return access.all(count);
  TilingAttr tiling = anchor.getTilingAttr();
  int64_t extent = tiling.getExtent();
  AffineExpr local = localTile(anchor, access), inner = access.symbol(0);
  BufferType buffer = store.getBuffer().getType();
  // Rows of outputs whose tiles do not fill them: an index for each dimension.
  auto rows = [&](int64_t columns) {
    int64_t strips = llvm::divideCeil(columns, extent);
    return access.get(
        {local.floorDiv(strips), (local % strips) * extent + inner},
        {std::min(extent, columns)});
  };
  if (auto scores = dyn_cast<LatentScoresOp>(anchor.getOperation())) {
    // A group's heads in one chunk; the last group may have fewer.
    ArrayRef<int64_t> shape = typeOf(scores.getContext()).getShape();
    int64_t groups = scores.getTileCount() / shape[0];
    AffineExpr chunk = local.floorDiv(groups);
    AffineExpr head = (local % groups) * kLatentHeads;
    int64_t heads = std::min(shape[1], kLatentHeads);
    if (store.getValue() != scores.getContext())
      return access.get({head + inner, chunk}, {heads});
    return access.get({chunk, head + access.symbol(1), inner},
                      {shape[2], heads});
  }
  if (auto value = dyn_cast<LatentValueOp>(anchor.getOperation());
      value && tiling.getSplit()) {
    // A tile is a head and one slot.
    int64_t slots = buffer.getShape()[0];
    int64_t columns = count / typeOf(value.getContext()).getDimSize(1);
    return access.range(
        (local % slots) * count + local.floorDiv(slots) * columns, columns);
  }
  // A contributor's slot depends on the run-time grid: all slots of the tile.
  if (tiling.getSplit())
    return access.get({access.symbol(1), local * extent + inner},
                      {std::min(extent, count), buffer.getShape()[0]});
  if (isa<ExpertGateUpOp, LatentQueryOp>(anchor.getOperation())) {
    int64_t columns = typeOf(store.getValue()).getShape().back();
    if (columns % extent != 0 && buffer.getShape().size() == 2)
      return rows(columns);
  }
  return access.range(local * extent - offsetFromAnchor(store.getValue()),
                      std::min(extent, count));
}

} // namespace

AccessAttr mega::deriveAccess(Operation *op) {
  AccessBuilder access(op->getContext());
  return TypeSwitch<Operation *, AccessAttr>(op)
      .Case([&](LoadOp load) {
        return loadRelation(load.getResult(), /*sums=*/false, access);
      })
      .Case([&](LoadSumOp load) {
        return loadRelation(load.getResult(), /*sums=*/true, access);
      })
      .Case([&](StoreOp store) {
        return writeRelation(anchorBehind(store.getValue()), store, access);
      });
}
