// SPDX-License-Identifier: Apache-2.0
/// \file
/// Router and experts, whole and in halves.

#include "SymbolChecks.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mega;

LogicalResult RouterOp::verify() {
  RankedTensorType logits = tensorTypeOf(getLogits());
  RankedTensorType ids = tensorTypeOf(getIds()),
                   weights = tensorTypeOf(getWeights());
  if (logits.getRank() != 1)
    return emitOpError("has logits ") << logits << ", expected a rank-1 tensor";
  if (weights.getShape() != ids.getShape())
    return emitOpError("has ids ")
           << ids << " and weights " << weights << ", expected one size";
  if (ids.getDimSize(0) < 1 || ids.getDimSize(0) > logits.getDimSize(0))
    return emitOpError("chooses ")
           << ids.getDimSize(0)
           << " experts, expected at least 1 and at most the "
           << logits.getDimSize(0) << " there are";
  return success();
}

LogicalResult RouterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getBiasAttr())
    return success();
  auto bias = lookupDenseWeight(*this, symbols, getBiasAttr(), 1);
  if (failed(bias))
    return failure();
  return expectSize(*this, "bias @" + *getBias(), "elements",
                    bias->getDimSize(0),
                    tensorTypeOf(getLogits()).getDimSize(0));
}

/// Checks one gate/up/down triple against the operand and result sizes.
static LogicalResult verifyTriple(ExpertsOp op, SymbolTableCollection &symbols,
                                  FlatSymbolRefAttr gateName,
                                  FlatSymbolRefAttr upName,
                                  FlatSymbolRefAttr downName) {
  auto gate = lookupQuantWeight(op, symbols, gateName);
  auto up = lookupQuantWeight(op, symbols, upName);
  auto down = lookupQuantWeight(op, symbols, downName);
  if (failed(gate) || failed(up) || failed(down))
    return failure();
  for (auto [name, type] : {std::pair(gateName, *gate), std::pair(upName, *up),
                            std::pair(downName, *down)})
    if (type.getShape().size() != 3)
      return op.emitOpError("uses weight ")
             << name << " of type " << type << ", expected a stack of experts";
  if (*gate != *up)
    return op.emitOpError("has gate ")
           << *gate << " and up " << *up << ", expected one type";
  if (failed(expectSize(op, "weight @" + gateName.getValue(), "inputs",
                        gate->getInFeatures(),
                        tensorTypeOf(op.getX()).getNumElements())) ||
      failed(expectSize(op, "weight @" + downName.getValue(), "inputs",
                        down->getInFeatures(), gate->getOutFeatures())) ||
      failed(expectSize(op, "weight @" + downName.getValue(), "outputs",
                        down->getOutFeatures(),
                        tensorTypeOf(op.getResult()).getNumElements())))
    return failure();
  return expectSize(op, "weight @" + downName.getValue(), "experts",
                    down->getStack(), gate->getStack());
}

LogicalResult ExpertsOp::verify() {
  if (tensorTypeOf(getX()).getRank() != 1 ||
      tensorTypeOf(getResult()).getRank() != 1)
    return emitOpError("maps ")
           << getX().getType() << " to " << getResult().getType()
           << ", expected rank-1 tensors";
  if (tensorTypeOf(getIds()).getShape() !=
      tensorTypeOf(getWeights()).getShape())
    return emitOpError("has ids ")
           << getIds().getType() << " and weights " << getWeights().getType()
           << ", expected one size";
  // The custom syntax takes the three together; the generic one does not.
  int shared = bool(getSharedGateAttr()) + bool(getSharedUpAttr()) +
               bool(getSharedDownAttr());
  if (shared != 0 && shared != 3)
    return emitOpError("names ")
           << shared << " shared weights, expected gate, up and down or none";
  return verifyScalarRegion(*this, getActivation(), 2);
}

LogicalResult ExpertsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyTriple(*this, symbols, getGateAttr(), getUpAttr(),
                          getDownAttr())))
    return failure();
  auto gate = lookupQuantWeight(*this, symbols, getGateAttr());
  if (tensorTypeOf(getIds()).getDimSize(0) > gate->getStack())
    return emitOpError("takes ")
           << tensorTypeOf(getIds()).getDimSize(0)
           << " experts, expected at most the " << gate->getStack()
           << " of weight @" << getGate();
  if (!getSharedGateAttr())
    return success();
  if (failed(verifyTriple(*this, symbols, getSharedGateAttr(),
                          getSharedUpAttr(), getSharedDownAttr())))
    return failure();
  auto shared = lookupQuantWeight(*this, symbols, getSharedGateAttr());
  if (shared->getOutFeatures() != gate->getOutFeatures() ||
      shared->getGroup() != gate->getGroup())
    return emitOpError("has shared gate ")
           << *shared << " beside gate " << *gate
           << ", expected one hidden size and group";
  return success();
}

//===----------------------------------------------------------------------===//
// Halves
//===----------------------------------------------------------------------===//

LogicalResult ExpertGateUpOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto gate = lookupQuantWeight(*this, symbols, getGateAttr());
  auto up = lookupQuantWeight(*this, symbols, getUpAttr());
  return success(succeeded(gate) && succeeded(up));
}
// Gate and up share a unit, half its rows each.
int64_t ExpertGateUpOp::getTileExtent() { return kUnitOutputs / 2; }
int64_t ExpertGateUpOp::getTileCount() {
  ArrayRef<int64_t> shape = tensorTypeOf(getResult()).getShape();
  return shape[0] * llvm::divideCeil(shape[1], getTileExtent());
}
bool ExpertGateUpOp::canSplit() { return false; }
int64_t ExpertGateUpOp::getReductionSteps() {
  return llvm::divideCeil(tensorTypeOf(getX()).getNumElements(), kUnitInputs);
}

LogicalResult ExpertDownOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return lookupQuantWeight(*this, symbols, getDownAttr());
}
int64_t ExpertDownOp::getTileExtent() { return kUnitOutputs; }
int64_t ExpertDownOp::getTileCount() {
  return llvm::divideCeil(tensorTypeOf(getResult()).getNumElements(),
                          getTileExtent());
}
bool ExpertDownOp::canSplit() { return true; }
int64_t ExpertDownOp::getReductionSteps() {
  ArrayRef<int64_t> hidden = tensorTypeOf(getHidden()).getShape();
  return hidden[0] * llvm::divideCeil(hidden[1], kUnitInputs);
}
