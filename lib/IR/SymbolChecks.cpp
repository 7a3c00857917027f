// SPDX-License-Identifier: Apache-2.0
/// \file
/// Symbol lookups with located errors.

#include "SymbolChecks.h"

using namespace mlir;
using namespace mega;

FailureOr<Type> mega::lookupWeight(Operation *op,
                                   SymbolTableCollection &symbols,
                                   FlatSymbolRefAttr name) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(op, name);
  if (!weight)
    return op->emitOpError("uses weight ")
           << name << ", which no mega.weight declares";
  return weight.getType();
}

FailureOr<QuantType> mega::lookupQuantWeight(Operation *op,
                                             SymbolTableCollection &symbols,
                                             FlatSymbolRefAttr name) {
  FailureOr<Type> type = lookupWeight(op, symbols, name);
  if (failed(type))
    return failure();
  if (auto quant = dyn_cast<QuantType>(*type))
    return quant;
  return op->emitOpError("uses weight ")
         << name << " of type " << *type << ", expected a !mega.quant";
}

FailureOr<RankedTensorType>
mega::lookupDenseWeight(Operation *op, SymbolTableCollection &symbols,
                        FlatSymbolRefAttr name, int64_t rank) {
  FailureOr<Type> type = lookupWeight(op, symbols, name);
  if (failed(type))
    return failure();
  auto tensor = dyn_cast<RankedTensorType>(*type);
  if (!tensor || tensor.getRank() != rank)
    return op->emitOpError("uses weight ")
           << name << " of type " << *type << ", expected a rank-" << rank
           << " tensor";
  return tensor;
}

FailureOr<RankedTensorType> mega::lookupState(Operation *op,
                                              SymbolTableCollection &symbols,
                                              FlatSymbolRefAttr name) {
  auto state = symbols.lookupNearestSymbolFrom<StateOp>(op, name);
  if (!state)
    return op->emitOpError("uses state ")
           << name << ", which no mega.state declares";
  return state.getTensorType();
}

LogicalResult mega::expectSize(Operation *op, Twine subject, StringRef unit,
                               int64_t found, int64_t wanted) {
  if (found == wanted)
    return success();
  return op->emitOpError() << subject << " has " << found << " " << unit
                           << ", expected " << wanted;
}
