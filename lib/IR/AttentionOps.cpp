// SPDX-License-Identifier: Apache-2.0
/// \file
/// Caches and latent attention, whole and in thirds.

#include "SymbolChecks.h"

#include "mega/IR/LatentHeads.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mega;

LogicalResult CacheAppendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto state = lookupState(*this, symbols, getStateAttr());
  if (failed(state))
    return failure();
  if (state->hasStaticShape())
    return emitOpError("appends to state @")
           << getState() << " of type " << *state
           << ", expected a cache with a dynamic leading dimension";
  int64_t row = 1;
  for (int64_t dim : state->getShape().drop_front())
    row *= dim;
  if (state->getElementType() != tensorTypeOf(getX()).getElementType())
    return emitOpError("appends ")
           << getX().getType() << " to state @" << getState() << " of type "
           << *state << ", expected one element type";
  return expectSize(*this, "appended value", "elements",
                    tensorTypeOf(getX()).getNumElements(), row);
}

LogicalResult LatentAttentionOp::verify() {
  RankedTensorType q = tensorTypeOf(getQ()), o = tensorTypeOf(getResult());
  if (q.getRank() != 2 || o.getRank() != 2 ||
      q.getDimSize(0) != o.getDimSize(0))
    return emitOpError("maps ")
           << q << " to " << o
           << ", expected rank-2 tensors with one number of heads";
  return success();
}

LogicalResult
LatentAttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto latent = lookupState(*this, symbols, getLatentAttr());
  auto rope = lookupState(*this, symbols, getRopeAttr());
  auto weight = lookupQuantWeight(*this, symbols, getWeightAttr());
  if (failed(latent) || failed(rope) || failed(weight))
    return failure();
  for (auto [name, type] :
       {std::pair(getLatent(), *latent), std::pair(getRope(), *rope)})
    if (type.hasStaticShape() || type.getRank() != 2 ||
        !type.getElementType().isBF16())
      return emitOpError("uses state @")
             << name << " of type " << type << ", expected tensor<?xNxbf16>";
  RankedTensorType q = tensorTypeOf(getQ()), o = tensorTypeOf(getResult());
  int64_t keys = q.getDimSize(1) - rope->getDimSize(1);
  if (keys <= 0)
    return emitOpError("has queries of ")
           << q.getDimSize(1) << " elements, expected more than the rope "
           << "cache's width " << rope->getDimSize(1);
  if (weight->getShape().size() != 2)
    return emitOpError("uses weight @") << getWeight() << " of type " << *weight
                                        << ", expected a single matrix";
  if (failed(expectSize(*this, "weight @" + getWeight(), "inputs",
                        weight->getInFeatures(), latent->getDimSize(1))))
    return failure();
  return expectSize(*this, "weight @" + getWeight(), "outputs",
                    weight->getOutFeatures(),
                    q.getDimSize(0) * (keys + o.getDimSize(1)));
}

//===----------------------------------------------------------------------===//
// Thirds
//===----------------------------------------------------------------------===//

LogicalResult LatentQueryOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return lookupQuantWeight(*this, symbols, getWeightAttr());
}
int64_t LatentQueryOp::getTileExtent() { return kUnitInputs; }
int64_t LatentQueryOp::getTileCount() {
  ArrayRef<int64_t> shape = tensorTypeOf(getResult()).getShape();
  return shape[0] * llvm::divideCeil(shape[1], kUnitInputs);
}
bool LatentQueryOp::canSplit() { return false; }
int64_t LatentQueryOp::getReductionSteps() { return 1; }

LogicalResult LatentScoresOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto latent = lookupState(*this, symbols, getLatentAttr());
  auto rope = lookupState(*this, symbols, getRopeAttr());
  return success(succeeded(latent) && succeeded(rope));
}
// A longer context makes the chunks longer, not more.
int64_t LatentScoresOp::getTileExtent() { return 1; }
int64_t LatentScoresOp::getTileCount() {
  RankedTensorType context = tensorTypeOf(getContext());
  return context.getDimSize(0) *
         llvm::divideCeil(context.getDimSize(1), kLatentHeads);
}
bool LatentScoresOp::canSplit() { return false; }
int64_t LatentScoresOp::getReductionSteps() { return 1; }

LogicalResult LatentValueOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return lookupQuantWeight(*this, symbols, getWeightAttr());
}
int64_t LatentValueOp::getTileExtent() { return kUnitInputs; }
int64_t LatentValueOp::getTileCount() {
  RankedTensorType context = tensorTypeOf(getContext());
  return context.getDimSize(1) *
         llvm::divideCeil(context.getDimSize(2), kUnitInputs);
}
bool LatentValueOp::canSplit() { return true; }
// Its tiles are slices of the reduction already.
int64_t LatentValueOp::getReductionSteps() { return 1; }
