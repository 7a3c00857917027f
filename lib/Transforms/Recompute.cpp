// SPDX-License-Identifier: Apache-2.0
/// \file
/// Clones prologues. The clone reads what the original read and rounds where it
/// rounded, so the value is the same.

#include "Recompute.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mega;

bool mega::canRecompute(StoreOp store, LoadOp load) {
  return !anchorBehind(store.getValue()) &&
         store.getValue().getType() == load.getResult().getType();
}

/// A load before `point` that reads what `op`, a load, reads; null if none
/// does.
static Operation *sameLoad(Operation *op, Operation *point) {
  for (Operation &other : *point->getBlock()) {
    if (&other == point)
      return nullptr;
    if (other.getName() == op->getName() &&
        other.getOperands() == op->getOperands() &&
        other.getResultTypes() == op->getResultTypes())
      return &other;
  }
  return nullptr;
}

/// Clones what computes `value` before `point`.
static Value cloneValue(Value value, Operation *point, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (isa<LoadOp, LoadSumOp>(op)) {
    if (Operation *other = sameLoad(op, point))
      return other->getResult(0);
  }
  for (Value operand : op->getOperands())
    if (!isa<BufferType>(operand.getType()))
      mapping.map(operand, cloneValue(operand, point, mapping));
  OpBuilder builder(point);
  Operation *clone = builder.clone(*op, mapping);
  return clone->getResult(cast<OpResult>(value).getResultNumber());
}

void mega::recompute(StoreOp store, LoadOp load, IRMapping &mapping) {
  Value value = cloneValue(store.getValue(), load, mapping);
  load.getResult().replaceAllUsesWith(value);
  load.erase();
}

void mega::dropIfUnread(AllocOp alloc) {
  if (alloc.getProbe() ||
      !llvm::all_of(alloc.getBuffer().getUsers(), llvm::IsaPred<StoreOp>))
    return;
  for (Operation *user :
       llvm::make_early_inc_range(alloc.getBuffer().getUsers()))
    user->erase();
  alloc.erase();
}
