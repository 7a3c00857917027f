// SPDX-License-Identifier: Apache-2.0
/// \file
/// Accesses of stages with their elements by tile.

#include "mega/Analysis/TileAccess.h"

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <functional>

using namespace mlir;
using namespace mega;

namespace {

/// Fills in who does an access, and which elements each tile touches.
class AccessReader {
public:
  explicit AccessReader(StageOp stage)
      : stage(stage), context(stage.getContext()) {}

  TileAccess read(const StageAccess &base) {
    TileAccess access;
    static_cast<StageAccess &>(access) = base;
    access.shape = shapeOf(base.resource);
    TypeSwitch<Operation *>(base.op)
        .Case<LoadOp, LoadSumOp>([&](auto load) {
          AccessAttr attr = load.getAccessAttr();
          AnchorOpInterface anchor = readerOf(load.getResult());
          // What does not depend on the tile is read before the tiles.
          if (!attr || !attr.getMap().getValue().isFunctionOfDim(0) || !anchor)
            return takeWhole(access);
          takeTiles(access, anchor);
          takeRelation(access, attr);
        })
        .Case([&](StoreOp store) {
          takeTiles(access, anchorBehind(store.getValue()));
          AccessAttr attr = store.getAccessAttr();
          if (access.isPrologue() || !attr)
            return takeWhole(access);
          takeRelation(access, attr);
        })
        .Case([&](ShortConvOp conv) {
          takeTiles(access, anchorBehind(conv.getX()));
          if (access.isPrologue())
            return takeWhole(access);
          // The taps of the tile's channels.
          access.map = AffineMap::get(
              1, 2, {symbol(1), firstOutput(access, conv.getX()) + symbol(0)},
              context);
          access.extents = {access.anchor.getTilingAttr().getExtent(),
                            access.shape[0]};
        })
        .Case([&](CacheAppendOp append) {
          takeTiles(access, anchorBehind(append.getX()));
          if (access.isPrologue())
            return takeWhole(access);
          access.map = AffineMap::get(
              1, 1, firstOutput(access, append.getX()) + symbol(0), context);
          access.extents = {access.anchor.getTilingAttr().getExtent()};
        })
        .Case([&](DeltaRuleOp delta) {
          takeTiles(access, delta);
          if (access.isPrologue())
            return takeWhole(access);
          int64_t strip = delta.getTileExtent();
          int64_t strips = access.shape[2] / strip;
          AffineExpr local = tile() - delta.getTilingAttr().getBegin();
          access.map = AffineMap::get(1, 2,
                                      {local.floorDiv(strips), symbol(1),
                                       (local % strips) * strip + symbol(0)},
                                      context);
          access.extents = {strip, access.shape[1]};
        })
        .Default([&](Operation *op) {
          // Any row, as the position decides.
          takeTiles(access, dyn_cast<AnchorOpInterface>(op));
          takeWhole(access);
        });
    return access;
  }

private:
  AffineExpr tile() const { return getAffineDimExpr(0, context); }
  AffineExpr symbol(unsigned index) const {
    return getAffineSymbolExpr(index, context);
  }

  SmallVector<int64_t> shapeOf(Resource resource) const {
    if (auto buffer = dyn_cast<Value>(resource))
      return SmallVector<int64_t>(
          cast<BufferType>(buffer.getType()).getShape());
    auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(
        stage, cast<StringAttr>(resource));
    ArrayRef<int64_t> shape = state.getTensorType().getShape();
    return SmallVector<int64_t>(state.isCache() ? shape.drop_front() : shape);
  }

  /// The anchor that all uses of a loaded value lead to.
  static AnchorOpInterface readerOf(Value value) {
    AnchorOpInterface only;
    for (Operation *user : value.getUsers()) {
      auto anchor = dyn_cast<AnchorOpInterface>(user);
      if (isa<MapOp, ReshapeOp>(user))
        anchor = readerOf(user->getResult(0));
      if (!anchor || (only && only != anchor))
        return nullptr;
      only = anchor;
    }
    return only;
  }

  void takeTiles(TileAccess &access, AnchorOpInterface anchor) const {
    if (!anchor || !anchor.getTilingAttr())
      return;
    access.anchor = anchor;
    access.begin = anchor.getTilingAttr().getBegin();
    access.end = access.begin + anchor.getTilingAttr().getCount();
  }

  void takeWhole(TileAccess &access) const {
    int64_t count = 1;
    for (int64_t dim : access.shape)
      count *= dim;
    access.map = AffineMap::get(1, 1, symbol(0), context);
    access.extents = {count};
  }

  void takeRelation(TileAccess &access, AccessAttr attr) const {
    AffineMap map = attr.getMap().getValue();
    bool known =
        map.getNumResults() == 1 || map.getNumResults() == access.shape.size();
    if (!known || llvm::is_contained(attr.getExtents(), -1))
      return takeWhole(access);
    access.map = map;
    access.extents.assign(attr.getExtents().begin(), attr.getExtents().end());
  }

  /// The first of the consecutive outputs that the tile holds of `value`.
  AffineExpr firstOutput(const TileAccess &access, Value value) const {
    TilingAttr tiling = AnchorOpInterface(access.anchor).getTilingAttr();
    int64_t dropped = 0;
    while (!isa<AnchorOpInterface>(value.getDefiningOp())) {
      Operation *op = value.getDefiningOp();
      if (auto slice = dyn_cast<SliceOp>(op))
        dropped += slice.getOffset();
      value = *llvm::find_if(op->getOperands(), [](Value operand) {
        return bool(anchorBehind(operand));
      });
    }
    return (tile() - tiling.getBegin()) * tiling.getExtent() - dropped;
  }

  StageOp stage;
  MLIRContext *context;
};

/// The value of `expr` for a tile and the given symbols.
int64_t evaluate(AffineExpr expr, int64_t tile, ArrayRef<int64_t> symbols) {
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (isa<AffineDimExpr>(expr))
    return tile;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluate(binary.getLHS(), tile, symbols);
  int64_t rhs = evaluate(binary.getRHS(), tile, symbols);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(lhs, rhs);
  default:
    return llvm::mod(lhs, rhs);
  }
}

} // namespace

void TileAccess::forEachRun(int64_t tile,
                            function_ref<void(int64_t, int64_t)> visit) const {
  int64_t elements = 1;
  for (int64_t dim : shape)
    elements *= dim;
  bool flat = map.getNumResults() == 1;
  // The first symbol runs through consecutive elements where nothing but the
  // last index depends on it, by steps of one.
  AffineExpr last = map.getResults().back();
  AffineExpr first = getAffineSymbolExpr(0, map.getContext());
  bool runs = !extents.empty() && !(last - first).isFunctionOfSymbol(0) &&
              llvm::none_of(map.getResults().drop_back(), [](AffineExpr expr) {
                return expr.isFunctionOfSymbol(0);
              });
  SmallVector<int64_t> symbols(extents.size(), 0);
  std::function<void(unsigned)> walk = [&](unsigned index) {
    if (index < symbols.size()) {
      for (symbols[index] = 0; symbols[index] < extents[index];
           ++symbols[index])
        walk(index + 1);
      symbols[index] = 0;
      return;
    }
    int64_t row = 0, bound = flat ? elements : shape.back();
    for (auto [position, expr] :
         llvm::enumerate(map.getResults().drop_back())) {
      int64_t value = evaluate(expr, tile, symbols);
      if (value < 0 || value >= shape[position])
        return;
      row = row * shape[position] + value;
    }
    int64_t from = evaluate(last, tile, symbols);
    int64_t to = from + (runs ? extents[0] : 1);
    from = std::max<int64_t>(from, 0);
    to = std::min(to, bound);
    if (from < to)
      visit(row * bound + from, to - from);
  };
  walk(runs ? 1 : 0);
}

SmallVector<TileAccess> mega::collectTileAccesses(StageOp stage) {
  AccessReader reader(stage);
  SmallVector<TileAccess> accesses;
  for (const StageAccess &access : collectAccesses(stage))
    accesses.push_back(reader.read(access));
  return accesses;
}
