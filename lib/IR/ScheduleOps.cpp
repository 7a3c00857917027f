// SPDX-License-Identifier: Apache-2.0
/// \file
/// Level 2: counters, and what of their rules one op can tell. Rules about the
/// whole schedule belong to -mega-verify-schedule.

#include "SymbolChecks.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mega;

//===----------------------------------------------------------------------===//
// What ops share
//===----------------------------------------------------------------------===//

AnchorOpInterface mega::anchorBehind(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return nullptr;
  if (auto anchor = dyn_cast<AnchorOpInterface>(op))
    return anchor;
  for (Value operand : op->getOperands())
    if (AnchorOpInterface anchor = anchorBehind(operand))
      return anchor;
  return nullptr;
}

int64_t mega::signalsOfTile(AnchorOpInterface anchor) {
  TilingAttr tiling = anchor.getTilingAttr();
  return tiling && tiling.getSplit() ? anchor.getReductionSteps() : 1;
}

static std::optional<int64_t> evaluate(AffineExpr expr, int64_t tile) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (isa<AffineDimExpr>(expr))
    return tile;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<int64_t> lhs = evaluate(binary.getLHS(), tile);
  std::optional<int64_t> rhs = evaluate(binary.getRHS(), tile);
  if (!lhs || !rhs)
    return std::nullopt;
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return *lhs + *rhs;
  case AffineExprKind::Mul:
    return *lhs * *rhs;
  default:
    break;
  }
  if (*rhs <= 0)
    return std::nullopt;
  int64_t quotient = llvm::divideFloorSigned(*lhs, *rhs);
  int64_t remainder = *lhs - quotient * *rhs;
  switch (binary.getKind()) {
  case AffineExprKind::FloorDiv:
    return quotient;
  case AffineExprKind::CeilDiv:
    return quotient + (remainder != 0);
  case AffineExprKind::Mod:
    return remainder;
  default:
    return std::nullopt;
  }
}

std::optional<int64_t> mega::evaluateAt(AffineMap map, int64_t tile) {
  return evaluate(map.getResult(0), tile);
}

/// The set behind `counters`, with `map` from tiles [0, tiles) into it.
static LogicalResult verifyMap(Operation *op, Value counters, AffineMap map,
                               std::optional<int64_t> tiles) {
  if (map.getNumDims() != 1 || map.getNumSymbols() != 0 ||
      map.getNumResults() != 1)
    return op->emitOpError("has a map with ")
           << map.getNumDims() << " dimensions, " << map.getNumSymbols()
           << " symbols and " << map.getNumResults()
           << " results, expected one dimension and one result";
  auto set = counters.getDefiningOp<CountersOp>();
  if (!set)
    return op->emitOpError("uses counters that no mega.counters makes");
  for (int64_t tile = 0; tile < tiles.value_or(0); ++tile) {
    std::optional<int64_t> counter = evaluateAt(map, tile);
    if (!counter)
      return op->emitOpError("has a map that divides by what is not positive, "
                             "expected a positive divisor");
    if (*counter < 0 || *counter >= static_cast<int64_t>(set.getCount()))
      return op->emitOpError("maps tile ")
             << tile << " to counter " << *counter << " of '" << set.getName()
             << "', expected one in [0, " << set.getCount() << ")";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// CountersOp
//===----------------------------------------------------------------------===//

LogicalResult CountersOp::verify() {
  int64_t count = getCount();
  if (count <= 0)
    return emitOpError("has count ") << count << ", expected at least 1";
  if (getOffset() && static_cast<int64_t>(*getOffset()) % kCounterStride != 0)
    return emitOpError("has offset ")
           << *getOffset() << ", expected a multiple of " << kCounterStride;
  return success();
}

//===----------------------------------------------------------------------===//
// SignalOp
//===----------------------------------------------------------------------===//

LogicalResult SignalOp::verify() {
  AnchorOpInterface anchor = anchorBehind(getValue());
  if (!anchor)
    return emitOpError("counts tiles of a prologue value, expected a value "
                       "that hangs on an anchor");
  std::optional<int64_t> tiles;
  if (TilingAttr tiling = anchor.getTilingAttr())
    tiles = tiling.getCount();
  return verifyMap(*this, getCounters(), getMap(), tiles);
}

//===----------------------------------------------------------------------===//
// WaitOp
//===----------------------------------------------------------------------===//

LogicalResult WaitOp::verify() {
  if (static_cast<int64_t>(getTarget()) <= 0)
    return emitOpError("has target ")
           << static_cast<int64_t>(getTarget()) << ", expected at least 1";
  return verifyMap(*this, getCounters(), getMap(),
                   cast<StageOp>((*this)->getParentOp()).getTiles());
}
